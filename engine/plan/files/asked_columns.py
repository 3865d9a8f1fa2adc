"""The columns that a query asks files for, and which of them are still to be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..copies import commons_of, nodes_of
from ..logical import CatalogTable, Logical, Scan


class UnreadColumns(Exception):
    """A query cannot be planned before columns of files are read; no error that leaves the engine."""

    def __init__(self, columns: Mapping[CatalogTable, frozenset[str]]) -> None:
        super().__init__()
        self.columns = columns


def check_columns_read(bound: Logical, optimized: Logical) -> None:
    """Raise `UnreadColumns` for the tables of a query that lack columns, or rows, which its optimized plan asks for: those of `converted_table`."""
    tables = [scan.table for scan in _scans(bound) if hasattr(scan.table, "lacks")]
    asked: dict[Any, frozenset[str]] = dict.fromkeys(tables, frozenset())
    if not asked:
        return
    for scan in _scans(optimized):
        if scan.table in asked:
            asked[scan.table] |= frozenset(scan.sources)
    unread = {table: columns for table, columns in asked.items() if table.lacks(columns)}
    if unread:
        raise UnreadColumns(unread)


def _scans(plan: Logical) -> Iterator[Scan]:
    for part in (plan, *(common.plan for common in commons_of(plan))):
        for node in nodes_of(part):
            if isinstance(node, Scan):
                yield node
