"""Where the rows of some row groups lie among all rows of a table of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...plan.physical import RowGroups
    from .parquet import ParquetTable


def row_ranges(table: ParquetTable, selection: tuple[RowGroups, ...]) -> Iterator[tuple[int, int]]:
    """Yield first and last row (exclusive) of each run of neighbours among the selected row groups."""
    wanted = {(part.file, group) for part in selection for group in part.groups}
    start = position = 0
    for file, groups in enumerate(table.group_rows):
        for group, rows in enumerate(groups):
            if (file, group) not in wanted:
                if start < position:
                    yield start, position
                start = position + rows
            position += rows
    if start < position:
        yield start, position
