"""What a connection keeps beside tables and views: prepared statements, variables, macros and Python functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import TypeAlias

from ..expr import Literal
from ..types import DataType
from ..udf.python_function import PythonFunction


@dataclass(frozen=True)
class StoredText:
    """A text that is bound wherever its name is used."""

    name: str
    text: str


@dataclass(frozen=True)
class Macro(StoredText):
    """A macro: its text is an expression, or with `is_table` a query, over parameters, of which the last may have defaults."""

    parameters: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    is_table: bool = False


@dataclass(frozen=True)
class UserType:
    """A type that CREATE TYPE gave a name."""

    name: str
    type: DataType


@dataclass
class SessionObjects:
    """By names in lower case; macros, functions and types are part of transactions."""

    prepared: dict[str, StoredText] = field(default_factory=dict)
    variables: dict[str, Literal] = field(default_factory=dict)
    macros: dict[str, Macro] = field(default_factory=dict)
    functions: dict[str, PythonFunction] = field(default_factory=dict)
    types: dict[str, UserType] = field(default_factory=dict)
    seeds: Random = field(default_factory=Random)  # of random() and samples
    began: datetime | None = None  # the transaction, if one is open

    def named(self) -> Named:
        """Return what a transaction that is rolled back puts in its place again."""
        return dict(self.macros), dict(self.functions), dict(self.types)

    def restore(self, named: Named) -> None:
        self.macros, self.functions, self.types = named


Named: TypeAlias = tuple[dict[str, Macro], dict[str, PythonFunction], dict[str, UserType]]
