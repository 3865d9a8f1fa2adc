"""Columns of a result as Python values, over all of DuckDB's range.

Python has no date outside of the years 1 to 9999: there DuckDB's client gives the text of the value, and so does this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from functools import cache, partial
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np

from ..plan.arrow.arrow_arrays import array_from, bits_of, scalar_from
from ..plan.calendar import (
    EPOCH_DAY,
    INFINITE_DAY,
    INFINITE_MICROS,
    MICROS_A_DAY,
    clock_text,
    date_text,
    interval_text,
    timestamp_text,
)
from ..plan.types import HUGEINT, DataType, Kind, list_of

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa


DAYS = (
    date.min.toordinal() - EPOCH_DAY.toordinal(),
    date.max.toordinal() - EPOCH_DAY.toordinal() + 1,
)
A_DAY = {"D": 1, "s": 86_400, "ms": 86_400_000, "us": MICROS_A_DAY}
NO_MOMENT = np.iinfo(np.int64).min  # NumPy's NaT
MANY = 64  # values, of which the way over NumPy is the shorter one
Row: TypeAlias = tuple[Any, ...]  # as in DB-API: whoever asked knows the types of its values


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """Return a column as Decimal, date, datetime, str ...; None for NULL."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = _as_micros(column)  # of which Python has no more
    if pa.types.is_nested(column.type):
        return _nested_values(column.combine_chunks()) if len(column) else []
    if len(column) >= MANY and (moments := _moments(column)) is not None:
        return list(moments)
    last = _end_of_day()
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


def _moments(column: pa.ChunkedArray) -> Sequence[date | time | None] | None:
    """Return dates, times and timestamps by NumPy, which takes a tenth of Arrow's time; None of other types, and of values that Python has not."""
    import pyarrow as pa

    kind = column.type
    zone = getattr(kind, "tz", None)
    if not _is_moment(kind) or zone not in (None, "UTC"):
        return None
    if pa.types.is_time(kind):
        last = _end_of_day()
        if kind != last.type or column.index(last).as_py() >= 0:
            return None
        clocks = _since_1970(column, "us")
        return clocks and [None if moment is None else moment.time() for moment in clocks]
    moments = _since_1970(column, "D" if pa.types.is_date(kind) else kind.unit)
    if zone is None or moments is None:
        return moments
    utc = ZoneInfo(zone)
    return [None if moment is None else moment.replace(tzinfo=utc) for moment in moments]


def _since_1970(column: pa.ChunkedArray, unit: str) -> list[datetime | None] | None:
    """Return counts of a unit as dates or datetimes; None where one is beyond Python's."""
    counts, valid = _counts(column)
    if _is_beyond(counts, valid, unit):
        return None
    made: list[datetime | None] = np.where(valid, counts, NO_MOMENT).view(f"M8[{unit}]").tolist()
    return made


def _counts(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return what moments are, anything for NULL, and which are not NULL; without Arrow's own way, which imports pandas."""
    array = column.combine_chunks()
    bits, data = array.buffers()
    width = array.type.bit_width // 8
    held = np.frombuffer(data, f"i{width}", len(array), array.offset * width)
    return held.astype(np.int64), bits_of(bits, array.offset, len(array))


def _is_beyond(counts: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_], unit: str) -> bool:
    low, high = (days * A_DAY[unit] for days in DAYS)
    return bool((((counts < low) | (counts >= high)) & valid).any())


@cache
def _end_of_day() -> pa.Scalar:
    """24:00:00, of which Arrow makes 00:00:00."""
    import pyarrow as pa

    return scalar_from(MICROS_A_DAY, pa.int64()).cast(pa.time64("us"))


def _as_micros(nanos: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return timestamps of nanoseconds as those of microseconds; 'infinity' has the same count in both."""
    import pyarrow as pa
    import pyarrow.compute as pc

    micros, counts = pa.timestamp("us", nanos.type.tz), nanos.cast(pa.int64())
    infinite = pc.is_in(counts, value_set=array_from([INFINITE_MICROS, -INFINITE_MICROS]))
    return pc.if_else(infinite, counts.cast(micros), nanos.cast(micros, safe=False))


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
    if has_converted(data_type):
        return [_fetched(v, data_type) for v in values]
    return values


def has_converted(data_type: DataType) -> bool:
    """Whether DuckDB's client gives other values of a type than Arrow: TUPLE, HUGEINT, INTERVAL, and what holds these."""
    own = data_type.is_tuple or data_type == HUGEINT or data_type.kind is Kind.INTERVAL
    return own or any(map(has_converted, data_type.children))


def _fetched(value: object, data_type: DataType) -> object:
    """Return a nested value as DuckDB's client gives it."""
    return _with_tuples(value, data_type, has_converted, _leaf)


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

    t = column.type
    if not len(column) or not _is_moment(t) or pa.types.is_time(t):
        return False
    unit = "D" if pa.types.is_date(t) else t.unit
    return unit != "ns" and _is_beyond(*_counts(column), unit)
