"""Shares of a table's row groups, one for each worker of a cluster: runs in the order of the files, of about as many rows each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..plan.physical import RowGroups

if TYPE_CHECKING:
    from .tables.parquet import ParquetTable


def share_of(
    table: ParquetTable, chosen: Sequence[RowGroups], worker: int, workers: int
) -> tuple[RowGroups, ...]:
    """Return the row groups of `chosen` that a worker reads, in their order; none where there are fewer than workers.

    A row group belongs to the worker in whose stretch of the rows its middle lies, so that all workers agree without a word.
    """
    rows = [
        (part.file, group, table.group_rows[part.file][group])
        for part in chosen
        for group in part.groups
    ]
    total = sum(count for _, _, count in rows)
    found: dict[int, list[int]] = {}
    before = 0
    for file, group, count in rows:
        middle = before + count / 2
        if min(int(middle * workers / max(total, 1)), workers - 1) == worker:
            found.setdefault(file, []).append(group)
        before += count
    return tuple(RowGroups(file, tuple(groups)) for file, groups in found.items())
