"""What a connection keeps beside its databases: prepared statements, variables and Python functions; and macros and types, which databases keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from ..expr import Expr
from ..types import DataType
from ..udf.python_aggregate import PythonAggregate
from ..udf.python_function import PythonFunction


@dataclass(frozen=True)
class StoredText:
    """A text that is bound wherever its name is used."""

    name: str
    text: str


@dataclass(frozen=True)
class Macro(StoredText):
    """A macro: its text is an expression, or with `is_table` a query, over parameters, of which the last may have defaults.

    Parameters with types take arguments that widen to these; `overloads` are the texts for calls with other arguments.
    """

    parameters: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)  # by names in lower case, as types
    is_table: bool = False
    comment: str | None = None
    types: Mapping[str, DataType] = field(default_factory=dict)
    overloads: tuple[Macro, ...] = ()

    @property
    def written_parameters(self) -> str:
        """The parameters as CREATE MACRO has them."""
        return ", ".join(map(self._written, self.parameters))

    def _written(self, parameter: str) -> str:
        kind, default = (of.get(parameter.lower()) for of in (self.types, self.defaults))
        of_type = "" if kind is None else f" {kind}"
        return f"{parameter}{of_type}" + ("" if default is None else f" := {default}")


@dataclass(frozen=True)
class UserType:
    """A type that CREATE TYPE gave a name."""

    name: str
    type: DataType
    comment: str | None = None


@dataclass
class SessionObjects:
    """By names in lower case; functions are part of transactions."""

    prepared: dict[str, StoredText] = field(default_factory=dict)
    variables: dict[str, Expr] = field(default_factory=dict)
    functions: dict[str, PythonFunction | PythonAggregate] = field(default_factory=dict)
    seeds: Random = field(default_factory=Random)  # of random() and samples
    began: datetime | None = None  # the transaction, if one is open
