"""Tables whose rows lie on the workers of a cluster: what `persist`, CREATE TABLE AS and Dask's dataframes leave there."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ...plan.statistics import TableStatistics
from ...plan.types import DataType
from .memory_table import MemoryTable


class ShardedTable(MemoryTable):
    """At the client `data` has the columns and no row, `rows` counts those of all; a worker's `data` and `rows` are its share.

    Who gets it sent has none of the rows.
    """

    is_sharded = True

    def __init__(self, name: str, data: pa.Table, types: Sequence[DataType], rows: int = 0) -> None:
        super().__init__(name, data, types)
        self.rows = rows

    def __reduce__(self) -> tuple[type[MemoryTable], tuple[object, ...]]:
        return ShardedTable, (
            self.name,
            self.data,
            [t for _, t in self.all_fields],
            self.data.num_rows,
        )

    @property
    def num_rows(self) -> int:
        return self.rows

    def share(self, rows: pa.Table) -> ShardedTable:
        """Return the table with a worker's rows."""
        own = rows.rename_columns(self.data.column_names)
        return ShardedTable(self.name, own, [t for _, t in self.all_fields], own.num_rows)

    def statistics(self) -> TableStatistics:
        return TableStatistics(self.rows)
