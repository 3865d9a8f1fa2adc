"""Answers of the Ibis backend: Arrow tables get exactly the types that Ibis expects, and become pandas frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ..plan.temporal.ticks import DAY_SECONDS

if TYPE_CHECKING:
    import pandas as pd


def with_types(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Return a table with the types of a schema: decimals rounded to their scale, intervals as durations.

    Raises `pyarrow.ArrowInvalid` for a value that the type does not hold.
    """
    columns = [_cast(column, f.type) for column, f in zip(table.columns, wanted, strict=True)]
    return pa.table(columns, schema=wanted)


def batches_with_types(
    batches: Iterable[pa.RecordBatch], wanted: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from with_types(pa.Table.from_batches([batch]), wanted).to_batches()


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if column.type == wanted:
        return column
    if pa.types.is_decimal(column.type) and not pa.types.is_floating(wanted):
        column = pc.round(column, getattr(wanted, "scale", 0), "half_towards_infinity")
    if pa.types.is_interval(column.type) and pa.types.is_duration(wanted):
        return pa.chunked_array([pa.array(column.to_pylist(), wanted)])
    if pa.types.is_integer(column.type) and pa.types.is_interval(wanted):  # days between dates
        spans = [None if days is None else (0, days, 0) for days in column.to_pylist()]
        return pa.chunked_array([pa.array(spans, wanted)])
    if pa.types.is_floating(column.type) and pa.types.is_integer(wanted):
        column = pc.trunc(column)
    if pa.types.is_decimal(column.type) and pa.types.is_float16(wanted):
        column = column.cast(pa.float32())
    return column.cast(wanted)


def pandas_of(table: pa.Table, wanted: pa.Schema) -> pd.DataFrame:
    """Return a pandas frame with lists of Python for nested values, where pyarrow would give arrays.

    A fraction that is a DECIMAL to Ibis, as a mean is, stays one: Ibis itself makes the Decimal, as for its DuckDB backend.
    Days between dates, whose type in Arrow pandas would show as offsets, are durations.
    """
    import pandas as pd

    columns = {}
    for field, own in zip(wanted, table.columns, strict=True):
        column = _for_pandas(own, field.type)
        is_nested = pa.types.is_nested(column.type)
        columns[field.name] = column.to_pylist() if is_nested else column.to_pandas()
    return pd.DataFrame(columns)


def _for_pandas(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_floating(column.type) and pa.types.is_decimal(wanted):
        return column
    if pa.types.is_integer(column.type) and pa.types.is_interval(wanted):
        return pc.multiply(column.cast(pa.int64()), DAY_SECONDS).cast(pa.duration("s"))
    return _cast(column, wanted)
