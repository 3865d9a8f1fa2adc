"""Columns that a file has not as its table has them: converted ones, those of other files, and numbers of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ....plan.arrow.arrow_arrays import from_numpy
from ....plan.casts import cast
from ....plan.expr import ColumnRef, new_column
from ....plan.physical import RowGroups
from ....plan.types import DataType, to_arrow
from ....storage.tables.parquet import ParquetTable
from ....storage.tables.schemas import ROW_NUMBER
from ..functions.expressions import evaluate
from ..table import Table, to_physical


def converted(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return values in another type; raises `ConversionError` for one that it has not."""
    column = new_column("value", source)
    return evaluate(cast(ColumnRef(column), target), Table({column.id: array}, len(array)), 1)


def made_column(table: ParquetTable, source: str, part: RowGroups) -> pa.Array:
    """Return a column of some row groups that is not in their file."""
    counts = table.stored_rows[part.file]
    if source == ROW_NUMBER and source not in table.by_file:
        begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        numbers = [np.arange(begins[g], begins[g + 1]) for g in part.groups]
        return from_numpy(np.concatenate(numbers) if numbers else np.empty(0, np.int64))
    rows = sum(counts[g] for g in part.groups)
    kind = table.types[source]
    return to_physical(pa.nulls(rows, to_arrow(kind)), kind)
