"""Columns of a result as Python values, and as what CSV and pandas take, over all of DuckDB's range.

Python has no date outside of the years 1 to 9999: there DuckDB's client gives the text of the value, and so does this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import stopping
from ..errors import ExecutionError, TypeMismatch
from ..plan.calendar import (
    INFINITE_DAY,
    INFINITE_MICROS,
    MICROS_A_DAY,
    clock_text,
    date_text,
    interval_text,
    timestamp_text,
)
from ..plan.text.quoted_name import distinct_names
from ..plan.types import HUGEINT, NULL, DataType, Kind, list_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import torch


Row: TypeAlias = tuple[Any, ...]  # as in DB-API: whoever asked knows the types of its values
OBJECTS_AT_A_TIME = 50_000  # some 20 ms


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """Return a column as Decimal, date, datetime, str ...; None for NULL."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        # Of which Python has no more
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    if pa.types.is_nested(column.type):
        return _nested_values(column.combine_chunks()) if len(column) else []
    last = pa.scalar(MICROS_A_DAY, pa.int64()).cast(pa.time64("us"))  # 24:00:00, Arrow's 00:00:00
    if column.type != last.type or column.index(last).as_py() < 0:
        try:
            return list(column.to_pylist())
        except (OverflowError, ValueError):
            if not _is_moment(column.type):
                raise
    values: list[Any] = []
    for value in column:
        try:
            values.append(_beyond(value) if value == last else value.as_py())
        except (OverflowError, ValueError):
            values.append(_beyond(value))
    return values


def _nested_values(array: pa.Array) -> list[object]:
    """Return structs and maps as dicts, arrays as tuples, as DuckDB's client; a map with nested keys has its `key`s and `value`s.

    Arrow gives structs in time that grows with the square of their fields, and has no dates beyond those of Python.
    """
    import pyarrow as pa

    kind, known = array.type, array.is_valid().to_pylist()

    def inside(part: pa.Array) -> list[object]:
        return python_values(pa.chunked_array([part]))

    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        fields = zip(*map(inside, array.flatten()), strict=True)
        rows = fields if names else repeat((), len(array))
        return [
            dict(zip(names, row, strict=True)) if ok else None
            for row, ok in zip(rows, known, strict=True)
        ]
    if pa.types.is_map(kind):
        keys = pa.field("key", kind.key_type, nullable=False)
        array = array.cast(pa.list_(pa.struct([keys, kind.item_field.with_name("value")])))
    values = iter(inside(array.flatten()))
    lists = [list(islice(values, n or 0)) for n in array.value_lengths().to_pylist()]
    made: Callable[[list[Any]], object] = list
    if pa.types.is_map(kind):
        made = partial(_as_dict, pa.types.is_nested(kind.key_type))
    elif pa.types.is_fixed_size_list(kind):
        made = tuple
    return [made(each) if ok else None for each, ok in zip(lists, known, strict=True)]


def _as_dict(has_nested_keys: bool, pairs: list[dict[str, object]]) -> dict[object, object]:
    if has_nested_keys:  # which no dict has
        return {name: [pair[name] for pair in pairs] for name in ("key", "value")}
    return {pair["key"]: pair["value"] for pair in pairs}


def fetched_values(column: pa.ChunkedArray, data_type: DataType) -> list[Any]:
    """Return a column as DuckDB's client gives it: HUGEINT as int, INTERVAL as timedelta, whose months have 30 days."""
    values = python_values(column)
    if data_type == HUGEINT:
        return [None if v is None else int(v) for v in values]
    if data_type.kind is Kind.INTERVAL:
        return [None if v is None else _as_timedelta(v) for v in values]
    if _is_converted(data_type):
        return [_fetched(v, data_type) for v in values]
    return values


def _is_converted(data_type: DataType) -> bool:
    """Whether DuckDB's client gives other values of a type than Arrow: TUPLE, HUGEINT, INTERVAL, and what holds these."""
    own = data_type.is_tuple or data_type == HUGEINT or data_type.kind is Kind.INTERVAL
    return own or any(map(_is_converted, data_type.children))


def _fetched(value: object, data_type: DataType) -> object:
    """Return a nested value as DuckDB's client gives it."""
    return _with_tuples(value, data_type, _is_converted, _leaf)


def _leaf(value: object, data_type: DataType) -> object:
    if data_type == HUGEINT:
        return int(value)  # type: ignore[call-overload]
    return _as_timedelta(value) if isinstance(value, tuple) else value


def _with_tuples(
    value: object,
    data_type: DataType,
    changes: Callable[[DataType], bool] = lambda t: t.holds_tuple,
    leaf: Callable[[object, DataType], object] = lambda value, _: value,
) -> object:
    """Return a value whose structs without names are tuples; `leaf` gives what is not nested, of types that `changes` names."""
    if value is None or not changes(data_type):
        return value
    children = data_type.children
    if not children:
        return leaf(value, data_type)

    def inside(part: object, kind: DataType) -> object:
        return _with_tuples(part, kind, changes, leaf)

    if isinstance(value, list | tuple):
        found = [inside(element, children[0]) for element in value]
        return found if isinstance(value, list) else tuple(found)
    assert isinstance(value, dict)
    if data_type.kind is Kind.MAP:
        key, item = children[0].children
        if not key.is_nested:
            return {inside(k, key): inside(v, item) for k, v in value.items()}
        children = (list_of(key), list_of(item))
    made = {k: inside(v, t) for (k, v), t in zip(value.items(), children, strict=True)}
    return tuple(made.values()) if data_type.is_tuple else made


def shown_values(column: pa.ChunkedArray, data_type: DataType) -> list[object]:
    """Return a column as `python_values` does, with tuples for TUPLEs."""
    values = python_values(column)
    return [_with_tuples(v, data_type) for v in values] if data_type.holds_tuple else values


def _as_timedelta(interval: tuple[int, int, int]) -> timedelta | str:
    """Return text for what Python has no timedelta for."""
    months, days, nanoseconds = interval
    try:
        return timedelta(30 * months + days, microseconds=nanoseconds // 1000)
    except OverflowError:
        return interval_text(*interval)


def _is_moment(arrow: pa.DataType) -> bool:
    import pyarrow as pa

    t = pa.types
    return bool(t.is_date32(arrow) or t.is_timestamp(arrow) or t.is_time(arrow))


_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _beyond(value: pa.Scalar) -> str | date:
    """Return the text of a moment that Python has no value for; DuckDB gives its greatest one for 'infinity'."""
    import pyarrow as pa

    is_date = isinstance(value.value, int) and value.type.bit_width == 32
    infinite = INFINITE_DAY if is_date else INFINITE_MICROS
    kind: type[date] = date if is_date else datetime
    if abs(value.value) == infinite:
        return kind.max if value.value > 0 else kind.min
    if is_date:
        return date_text(value.value)
    text = clock_text if pa.types.is_time(value.type) else timestamp_text
    return text(value.value, _SECOND[value.type.unit])


def has_values_beyond(column: pa.ChunkedArray) -> bool:
    """Whether a column holds a date or timestamp that Python has no value for."""
    import pyarrow as pa
    import pyarrow.compute as pc

    t = column.type
    whole = _is_moment(t) and not (
        pa.types.is_time(t) or (not pa.types.is_date(t) and t.unit == "ns")
    )
    if not whole or not len(column):
        return False
    low, high = (pa.scalar(v, column.type) for v in _limits(column.type))
    found = pc.min_max(column)
    if not found["min"].is_valid:
        return False
    return pc.less(found["min"], low).as_py() or pc.greater(found["max"], high).as_py()


def _limits(arrow: pa.DataType) -> tuple[date, date]:
    kind: type[date] = date if arrow.bit_width == 32 else datetime
    return kind.min, kind.max


def to_pandas(table: pa.Table, types: Sequence[DataType] = ()) -> pd.DataFrame:
    """Return a pandas frame of DuckDB's dtypes, but for DECIMAL, which stays exact, and HUGEINT, which is int64 where all values fit.

    Names that repeat an earlier one get a number.  DATE is datetime64[us], or [ms] for days that leave its range; integers and truth values among which is a NULL have pandas'
    nullable dtypes, since they are no floats.
    """
    import pandas as pd
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if pa.types.is_date32(field.type):
            try:
                micros = table.column(i).cast(pa.timestamp("us"))
            except pa.ArrowInvalid:
                continue
            table = table.set_column(i, field.name, micros)
    table = with_plain_integers(table, types)
    table = table.rename_columns(distinct_names(table.column_names))
    known = types or [NULL] * table.num_columns
    objects = {
        name: pd.Series(_objects(column, data_type), dtype=object)
        for name, column, data_type in zip(table.column_names, table.columns, known, strict=True)
        if data_type.holds_tuple or _is_object(column.type)
    }
    frame = table.drop_columns(list(objects)).to_pandas(date_as_object=False)
    if objects:  # at once: pandas warns of frames to which many columns are added
        frame = pd.DataFrame(
            {name: objects.get(name, frame.get(name)) for name in table.column_names}
        )
    nullable = {
        pa.bool_(): pd.BooleanDtype(),
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint8(): pd.UInt8Dtype(),
        pa.uint16(): pd.UInt16Dtype(),
        pa.uint32(): pd.UInt32Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
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

    for i, data_type in enumerate(types):
        if data_type != HUGEINT:
            continue
        column = table.column(i)
        try:
            whole = column.cast(pa.int64())
        except pa.ArrowInvalid:
            whole = column.cast(pa.float64())
        table = table.set_column(i, table.schema.names[i], whole)
    return table


def numpy_columns(table: pa.Table, types: Sequence[DataType]) -> dict[str, np.ndarray]:
    """Return an array for each column, a masked one where there are NULLs; texts and decimals are objects."""
    import numpy as np
    import pyarrow as pa

    table = with_plain_integers(table, types)
    made: dict[str, np.ndarray] = {}
    names = distinct_names(table.column_names)
    known = types or [NULL] * table.num_columns
    for name, column, data_type in zip(names, table.columns, known, strict=True):
        valid = column.is_valid().to_numpy()
        arrow = column.type
        plain = pa.types.is_integer(arrow) or pa.types.is_floating(arrow)
        if plain or pa.types.is_boolean(arrow):
            filled = column.fill_null(False if pa.types.is_boolean(arrow) else 0)
            values = filled.to_numpy()
        elif pa.types.is_date32(arrow) or (pa.types.is_timestamp(arrow) and arrow.tz is None):
            values = column.to_numpy()
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
        if values.dtype.kind not in "biuf":
            raise TypeMismatch(
                f'The column "{name}" is {data_type}, and a tensor holds numbers and truth values: cast it, or leave it out.'
            )
        if hasattr(values, "mask"):
            raise TypeMismatch(
                f'The column "{name}" has NULLs, which a tensor cannot hold: fill_null(value) or drop_nulls("{name}") first.'
            )
        made[name] = torch.from_numpy(values.copy())
    return made


def _is_object(arrow: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_decimal(arrow) or pa.types.is_interval(arrow) or _holds_uuid(arrow))


def _holds_uuid(arrow: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_nested(arrow):
        return any(_holds_uuid(arrow.field(i).type) for i in range(arrow.num_fields))
    return bool(arrow == pa.uuid())


def _objects(column: pa.ChunkedArray, data_type: DataType) -> np.ndarray:
    """Return a column as an array of Python objects, of which millions take seconds: some at a time, between which it may be stopped."""
    import numpy as np

    values = np.empty(len(column), object)
    for start in range(0, len(column), OBJECTS_AT_A_TIME):
        stopping.check()
        some = column.slice(start, OBJECTS_AT_A_TIME)
        if data_type.holds_tuple or _holds_uuid(column.type):
            # Which pyarrow gives as dicts, and as bytes, and not within lists
            found = shown_values(some, data_type)
            values[start : start + len(some)] = [_with_arrays(v) for v in found]
        else:
            values[start : start + len(some)] = some.to_pandas().to_numpy()
    return values


def _with_arrays(value: object) -> object:
    """Return a value whose lists are arrays of objects, as those that pyarrow makes for pandas."""
    import numpy as np

    if isinstance(value, dict):
        return {name: _with_arrays(inside) for name, inside in value.items()}
    if isinstance(value, tuple):
        return tuple(_with_arrays(inside) for inside in value)
    if not isinstance(value, list):
        return value
    array = np.empty(len(value), object)
    array[:] = [_with_arrays(inside) for inside in value]
    return array


def to_polars(table: pa.Table) -> pl.DataFrame:
    """Return a Polars frame, which has no INTERVAL and no two columns of one name; raises `TypeMismatch` for these."""
    import polars as pl
    import pyarrow as pa

    names = table.column_names
    for field in table.schema:
        if pa.types.is_interval(field.type):
            raise TypeMismatch(
                f'The column "{field.name}" is INTERVAL, which Polars does not have: cast it to VARCHAR, or use to_arrow().'
            )
        if names.count(field.name) > 1:
            raise TypeMismatch(
                f'More than one column is called "{field.name}", which Polars does not take: name them, or use to_arrow().'
            )
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
