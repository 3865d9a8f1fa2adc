"""Columns of a result as pandas, NumPy, PyTorch and Polars take them, over all of DuckDB's range."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from .. import stopping
from ..errors import ExecutionError, TypeMismatch
from ..plan.arrow.values_type import values_type
from ..plan.text.quoted_name import distinct_names
from ..plan.types import HUGEINT, NULL, DataType
from .python_values import fetched_values, has_converted, shown_values

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import torch


OBJECTS_AT_A_TIME = 50_000  # some 20 ms
NULLABLE = ["boolean", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
LONGEST = timedelta(microseconds=2**63 - 1)  # of NumPy, which wraps around beyond


def to_pandas(
    table: pa.Table,
    types: Sequence[DataType] = (),
    decimals_as_floats: bool = False,
    dates_as_objects: bool = False,
) -> pd.DataFrame:
    """Return a pandas frame of DuckDB's dtypes, but for DECIMAL, which stays exact unless asked otherwise, and HUGEINT, which is int64 where all values fit.

    Names that repeat an earlier one get a number.  DATE is datetime64[us], or [ms] for days that leave its range; integers and truth values among which is a NULL have pandas'
    nullable dtypes, since they are no floats.
    """
    import pandas as pd
    import pyarrow as pa

    if decimals_as_floats:
        table = _with_floats(with_plain_integers(table, types))
    if not dates_as_objects:
        table = _with_plain_columns(table, types)
    table = table.rename_columns(distinct_names(table.column_names))
    known = types or [NULL] * table.num_columns
    objects = {
        name: pd.Series(_objects(column, data_type))
        for name, column, data_type in zip(table.column_names, table.columns, known, strict=True)
        if _is_object(column, data_type)
    }
    frame = table.drop_columns(list(objects)).to_pandas(date_as_object=dates_as_objects)
    if objects:  # at once: pandas warns of frames to which many columns are added
        frame = pd.DataFrame(
            {name: objects.get(name, frame.get(name)) for name in table.column_names}
        )
    nullable = {
        pa.type_for_alias(name.lower()): pd.api.types.pandas_dtype(name) for name in NULLABLE
    }
    for i, column in enumerate(table.columns):
        if column.null_count and column.type in nullable:
            frame.isetitem(i, column.to_pandas(types_mapper=nullable.get))
        elif pa.types.is_dictionary(column.type):  # of an ENUM
            frame.isetitem(i, frame.iloc[:, i].cat.as_ordered())
    return frame


def with_plain_integers(table: pa.Table, types: Sequence[DataType]) -> pa.Table:
    """Return a table with its HUGEINT columns, as those of sums, as int64, or as doubles where a value does not fit."""
    import pyarrow as pa

    whole = (pa.int64(), pa.float64())
    return _cast(table, [whole if data_type == HUGEINT else () for data_type in types])


def _with_plain_columns(table: pa.Table, types: Sequence[DataType]) -> pa.Table:
    """Return a table whose dates are timestamps too, where these reach them all."""
    import pyarrow as pa

    micros = (pa.timestamp("us"),)
    table = with_plain_integers(table, types)
    return _cast(table, [micros if pa.types.is_date32(t) else () for t in table.schema.types])


def _cast(table: pa.Table, wanted: Sequence[Sequence[pa.DataType]]) -> pa.Table:
    """Return a table with each column as the first of the types wanted that holds all its values."""
    import pyarrow as pa

    for i, kinds in enumerate(wanted):
        for kind in kinds:
            with suppress(pa.ArrowInvalid):
                table = table.set_column(i, table.schema.names[i], table.column(i).cast(kind))
                break
    return table


def _with_floats(table: pa.Table) -> pa.Table:
    """Return a table with DECIMAL columns as doubles: the unscaled number, divided, as DuckDB does it."""
    import numpy as np
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if pa.types.is_decimal128(field.type):
            chunks = []
            for chunk in table.column(i).chunks:
                words = np.frombuffer(chunk.buffers()[1] or b"", np.int64).reshape(-1, 2)
                words = words[chunk.offset : chunk.offset + len(chunk)]
                low, high = words[:, 0], words[:, 1]
                valid = chunk.is_valid().to_numpy(zero_copy_only=False)
                if (valid & (high != low >> 63)).any():  # more than an int64
                    made = chunk.to_pandas().to_numpy(np.float64, na_value=np.nan)
                else:
                    made = low / 10.0**field.type.scale
                chunks.append(pa.array(made, mask=~valid))
            table = table.set_column(i, field.name, pa.chunked_array(chunks, pa.float64()))
    return table


def numpy_columns(table: pa.Table, types: Sequence[DataType]) -> dict[str, np.ndarray]:
    """Return an array for each column, a masked one where there are NULLs; texts are objects, and DECIMAL is float64."""
    import numpy as np
    import pyarrow as pa

    table = _with_floats(_with_plain_columns(table, types))
    made: dict[str, np.ndarray] = {}
    names = distinct_names(table.column_names)
    known = types or [NULL] * table.num_columns
    for name, column, data_type in zip(names, table.columns, known, strict=True):
        valid = column.is_valid().to_numpy()
        arrow = column.type
        if _is_number(arrow):
            filled = column.fill_null(False if pa.types.is_boolean(arrow) else 0)
            values = filled.to_numpy()
        elif pa.types.is_date32(arrow) or (pa.types.is_timestamp(arrow) and arrow.tz is None):
            values = column.to_numpy()
        elif pa.types.is_interval(arrow) or pa.types.is_nested(arrow):
            values = _objects(column, data_type)
        else:
            values = np.empty(len(column), object)
            values[:] = shown_values(column, data_type)
        made[name] = values if valid.all() else np.ma.masked_array(values, mask=~valid)
    return made


def torch_columns(table: pa.Table, types: Sequence[DataType]) -> dict[str, torch.Tensor]:
    """Return a tensor for each column; raises `ExecutionError` without PyTorch, `TypeMismatch` for what no tensor holds."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ExecutionError(
            "PyTorch is not installed: pip install torch, or use to_numpy() or fetchnumpy()."
        ) from error
    made: dict[str, torch.Tensor] = {}
    for (name, values), data_type in zip(numpy_columns(table, types).items(), types, strict=True):
        if values.dtype.kind not in "biuf" or (data_type.is_decimal and data_type != HUGEINT):
            raise TypeMismatch(
                f'The column "{name}" is {data_type}, and a tensor holds numbers and truth values: cast it, or leave it out.'
            )
        if hasattr(values, "mask"):
            raise TypeMismatch(
                f'The column "{name}" has NULLs, which a tensor cannot hold: fill_null(value) or drop_nulls("{name}") first.'
            )
        made[name] = torch.from_numpy(values.copy())
    return made


def _is_object(column: pa.ChunkedArray, data_type: DataType) -> bool:
    """Whether pandas gets Python's values: also in place of numbers beside NULLs within a list or struct, of which pyarrow makes floats."""
    import pyarrow as pa

    arrow = column.type
    if pa.types.is_nested(arrow):
        return has_converted(data_type) or any(map(_holds_objects, column.chunks))
    return bool(pa.types.is_decimal(arrow) or pa.types.is_interval(arrow) or arrow == pa.uuid())


def _holds_objects(array: pa.Array) -> bool:
    import pyarrow as pa

    arrow = array.type
    if pa.types.is_struct(arrow) or pa.types.is_map(arrow):
        return True  # dictionaries
    if pa.types.is_nested(arrow):
        return _holds_objects(array.flatten())
    return bool(arrow == pa.uuid() or (_is_number(arrow) and array.null_count))


def _is_number(arrow: pa.DataType) -> bool:
    import pyarrow as pa

    t = pa.types
    return bool(t.is_integer(arrow) or t.is_floating(arrow) or t.is_boolean(arrow))


def _objects(column: pa.ChunkedArray, data_type: DataType) -> np.ndarray:
    """Return a column as an array of Python's values, of which millions take seconds: some at a time, between which it may be stopped.

    INTERVALs are timedelta64, unless one is too long for these.
    """
    import numpy as np
    import pyarrow as pa

    arrow = column.type
    values = np.empty(len(column), object)
    for start in range(0, len(column), OBJECTS_AT_A_TIME):
        stopping.check()
        some = column.slice(start, OBJECTS_AT_A_TIME)
        if pa.types.is_decimal(arrow):
            found = some.to_pandas().to_numpy()
        else:
            found = [_with_arrays(v, arrow) for v in fetched_values(some, data_type)]
        values[start : start + len(some)] = found
    if pa.types.is_interval(arrow):
        known = [v for v in values if v is not None]
        if all(isinstance(v, timedelta) and abs(v) < LONGEST for v in known):
            return values.astype("timedelta64[us]")
    return values


def _with_arrays(value: object, arrow: pa.DataType) -> object:
    """Return a list, and the lists in it, as NumPy's arrays, masked ones where numbers are NULL, and another value as it is: DuckDB's client does."""
    import numpy as np

    kind = getattr(arrow, "value_type", None)
    if kind is None or not isinstance(value, list | tuple):
        return value
    missing = [inside is None for inside in value]
    if _is_number(kind):
        filled = [0 if inside is None else inside for inside in value]
        numbers = np.array(filled, values_type(kind))
        return np.ma.masked_array(numbers, missing) if any(missing) else numbers
    array = np.empty(len(value), object)
    array[:] = [_with_arrays(inside, kind) for inside in value]
    return array


def to_polars(table: pa.Table) -> pl.DataFrame:
    """Return a Polars frame, in which names that repeat an earlier one get a number; it has no INTERVAL: raises `TypeMismatch`."""
    import polars as pl
    import pyarrow as pa

    for field in table.schema:
        if pa.types.is_interval(field.type):
            raise TypeMismatch(
                f'The column "{field.name}" is INTERVAL, which Polars does not have: cast it to VARCHAR, or use to_arrow().'
            )
    frame = pl.from_arrow(table.rename_columns(distinct_names(table.column_names)))
    assert isinstance(frame, pl.DataFrame)
    return frame
