"""Tables whose rows are known when a statement runs: its plans are bound over stand-ins and then given the rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from ..commons import replace_nodes, with_commons
from ..logical import CatalogTable, Logical, Scan
from ..statistics import TableStatistics
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


def filled(plan: Logical, tables: Mapping[StandIn, CatalogTable]) -> Logical:
    """Return a plan that reads tables in the places of their stand-ins."""

    def exchanged(node: Logical) -> Logical | None:
        if isinstance(node, Scan) and isinstance(node.table, StandIn) and node.table in tables:
            return replace(node, table=tables[node.table])
        return None

    return with_commons(plan, lambda part: replace_nodes(part, exchanged))
