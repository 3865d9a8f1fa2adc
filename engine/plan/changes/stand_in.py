"""Tables whose rows are known when a statement runs: its plans are bound over stand-ins and then given the rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from ...errors import Span
from ...records import dataclass
from ..copies import replace_nodes, with_commons
from ..logical import CatalogTable, Logical, Scan, TableStatistics
from ..types import DataType


@dataclass(frozen=True, eq=False)
class StandIn:
    """A table without rows; with `number` each row has its place in the table as a column of that name, the last."""

    name: str
    fields: tuple[tuple[str, DataType], ...]
    number: str | None = None

    @property
    def identity(self) -> Hashable:
        return None

    def statistics(self) -> TableStatistics:
        return TableStatistics(0, {})


def filled(plan: Logical, tables: Mapping[Any, CatalogTable]) -> Logical:
    """Return a plan that reads tables in the places of others, of their stand-ins most often."""

    def exchanged(node: Logical) -> Logical | None:
        if isinstance(node, Scan) and node.table in tables:
            return replace(node, table=tables[node.table])
        return None

    return with_commons(plan, lambda part: replace_nodes(part, exchanged))


@dataclass(frozen=True)
class Recursion:
    """The rows of `first`, and those of `step`, which reads `working`: the rows of the round before; without `all` no row comes twice.

    With `keys`, the numbers of columns, the last row of each key is kept alone: USING KEY.  `step` may read those of all rounds before as `settled`;
    without `all` a round consists of the rows that differ from those of their key.
    """

    name: str
    first: Logical
    step: Logical
    working: StandIn
    all: bool
    span: Span | None = None
    keys: tuple[int, ...] = ()
    settled: StandIn | None = None
