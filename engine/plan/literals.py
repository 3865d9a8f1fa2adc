"""Constants: the type of a Python value, and what text means as a value of another type.

The rules are DuckDB 2.0's: numbers round half away from zero, dates take `-`, `/` or spaces, a time zone after a timestamp is
ignored, intervals are lists of numbers and units.
"""

from __future__ import annotations

import math
import struct
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TypeVar

from ..errors import ConversionError, Located, OutOfRange, Span, TypeMismatch, check_value
from . import types as ty
from .calendar import EPOCH
from .coercion import castable
from .expr import Interval, Literal, Value, physical
from .json import documents
from .temporal import ticks
from .text.interval_reading import parse_interval
from .text.number_text import (
    NoSuchValue,
    parse_boolean,
    parse_date,
    parse_double,
    parse_number,
    parse_time,
    parse_timestamp,
)
from .text.uuid_text import parse_uuid

Parsed = TypeVar("Parsed")
_EXACT = Context(prec=200)
MOST_BITS_SHOWN = 1000  # of an integer in a message
_NUMPY_TYPES = {
    "int8": ty.TINYINT,
    "int16": ty.SMALLINT,
    "int32": ty.INTEGER,
    "int64": ty.BIGINT,
    "uint8": ty.UTINYINT,
    "uint16": ty.USMALLINT,
    "uint32": ty.UINTEGER,
    "uint64": ty.UBIGINT,
    "float16": ty.FLOAT,
    "float32": ty.FLOAT,
}


class BeyondPython(NoSuchValue):
    """A date or timestamp that DuckDB has and Python's `datetime` has not."""


def literal(value: object, span: Span | None = None) -> Literal:
    """Return the constant for a Python or NumPy value; raises `TypeMismatch` for a value without a SQL type."""
    known = _NUMPY_TYPES.get(type(value).__name__) if hasattr(value, "dtype") else None
    if hasattr(value, "dtype") and hasattr(value, "item"):
        value = _from_numpy(value)
    check_value(value, span)
    match value:
        case None:
            return Literal(None, ty.NULL, span)
        case bool():
            return Literal(value, ty.BOOLEAN, span)
        case int():
            return Literal(value, known, span) if known else integer(value, span)
        case float():
            return Literal(value, known or ty.DOUBLE, span)
        case Decimal():
            return exact(value, span)
        case str():
            return Literal(value, ty.VARCHAR, span)
        case datetime() if value.tzinfo is None:
            if getattr(value, "nanosecond", 0):  # of pandas' Timestamp
                raise _nanoseconds(value)
            return Literal(value, ty.TIMESTAMP, span)
        case date() if not isinstance(value, datetime):
            return Literal(value, ty.DATE, span)
        case timedelta():
            if getattr(value, "nanoseconds", 0):  # of pandas' Timedelta
                raise _nanoseconds(value)
            micros = value.seconds * 1_000_000 + value.microseconds
            return Literal(Interval(0, value.days, micros), ty.INTERVAL, span)
        case datetime() | time():
            return _moment(value, span)
        case Interval() | bytes() | uuid.UUID():
            return _whole(value, span)
    raise TypeMismatch(
        f"A value of the Python type {type(value).__name__} has no SQL type here: pass a number, string, bytes, "
        "UUID, bool, date, time without a zone, datetime, timedelta or None, or a list or dictionary of them.",
        span,
    )


def _whole(value: Interval | bytes | uuid.UUID, span: Span | None) -> Literal:
    """Return a value whose parts no operator sees."""
    if isinstance(value, uuid.UUID):
        return Literal(value.bytes, ty.UUID, span)
    return Literal(value, ty.BLOB if isinstance(value, bytes) else ty.INTERVAL, span)


def _moment(value: datetime | time, span: Span | None) -> Literal:
    """Return a datetime that has a zone, or a time of day that has none."""
    if isinstance(value, datetime):
        if getattr(value, "nanosecond", 0):
            raise _nanoseconds(value)
        in_utc = value.astimezone(UTC).replace(tzinfo=None)
        return Literal(physical(in_utc, ty.TIMESTAMP), ty.TIMESTAMPTZ, span)
    if value.tzinfo is not None:
        raise TypeMismatch("A time with a zone has no SQL type here: leave out the zone.", span)
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return Literal(seconds * 1_000_000 + value.microsecond, ty.TIME, span)


def _from_numpy(value: object) -> object:
    """Return the Python value of a NumPy scalar; raises `TypeMismatch` for nanoseconds that are no whole microseconds."""
    if type(value).__name__ in ("datetime64", "timedelta64"):
        unit = str(value.dtype)  # type: ignore[attr-defined]
        coarse = unit if unit.endswith("[D]") else f"{type(value).__name__}[us]"
        cut = value.astype(coarse)  # type: ignore[attr-defined]
        if cut.item() is not None and cut != value:  # NaT is not equal to itself
            raise _nanoseconds(value)
        return cut.item()
    return value.item()  # type: ignore[attr-defined]


def _nanoseconds(value: object) -> TypeMismatch:
    return TypeMismatch(
        f"{value} has nanoseconds, of which TIMESTAMP and INTERVAL have no digits: round it."
    )


def fits(value: Value, target: ty.DataType) -> bool:
    """Whether an exact numeric constant is a value of an integer or decimal type."""
    if not isinstance(value, int | Decimal) or isinstance(value, bool):
        return False
    unscaled = Decimal(value).scaleb(target.scale, ty.DIGITS)
    low, high = target.integer_range
    return low <= unscaled <= high and unscaled == unscaled.to_integral_value()


def integer(value: int, span: Span | None = None) -> Literal:
    """Return an integer constant: INTEGER, BIGINT or HUGEINT, the first that holds it."""
    for data_type in (ty.INTEGER, ty.BIGINT):
        low, high = data_type.integer_range
        if low <= value <= high:
            return Literal(value, data_type, span)
    if abs(value) >= 10**ty.MAX_DECIMAL_DIGITS:
        # Python turns no integer of thousands of digits into text
        shown = value if value.bit_length() < MOST_BITS_SHOWN else f"of {value.bit_length()} bits"
        raise OutOfRange(f"The integer {shown} has more than {ty.MAX_DECIMAL_DIGITS} digits.", span)
    return Literal(Decimal(value), ty.HUGEINT, span)


def exact(value: Decimal, span: Span | None = None) -> Literal:
    """Return a DECIMAL constant of exactly the digits written, or a DOUBLE beyond 38 of them."""
    if not value.is_finite():
        return Literal(float(value), ty.DOUBLE, span)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    whole = max(1, len(digits) + exponent)
    if whole + scale > ty.MAX_DECIMAL_DIGITS:
        return Literal(float(value), ty.DOUBLE, span)
    return Literal(value, ty.decimal(whole + scale, scale), span)


def number(text: str, leading_zero: bool = True, span: Span | None = None) -> Literal:
    """Return the constant that a number in SQL stands for; `.5` (no `leading_zero`) is a digit shorter than `0.5`."""
    text = text.replace("_", "")
    if "e" in text.lower():
        return Literal(float(text), ty.DOUBLE, span)
    if "." not in text:
        return integer(int(text), span)
    found = exact(Decimal(text), span)
    if not leading_zero and found.type.is_decimal and found.type.precision > found.type.scale:
        return Literal(found.value, ty.decimal(found.type.precision - 1, found.type.scale), span)
    return found


def convert(
    value: Value, source: ty.DataType, target: ty.DataType, span: Span | None = None
) -> Value:
    """Return a constant of `source` as a value of `target`; raises `ConversionError` as a cast does.

    Covers text to anything and numbers, booleans, dates among themselves.  A moment outside of the years of Python's dates
    raises `BeyondPython`: a backend reads the text.  So do bytes, a list or a struct.
    """
    if value is None or source == target:
        return value
    if source.is_enum:
        assert isinstance(value, int)
        return convert(source.names[value], ty.VARCHAR, target, span)
    if {source.kind, target.kind} & {ty.Kind.BLOB, ty.Kind.UUID} and not castable(source, target):
        raise ConversionError(f"A {source} cannot become a {target}: cast it to text before.", span)
    if {source.name, target.name} & {"JSON", "BIT"}:
        return _json(value, source, target, span)
    if source.is_ranked or (target.is_ranked and target.kind is not ty.Kind.UUID):
        raise BeyondPython
    if target.kind is ty.Kind.NULL:  # of an operator whose other side is NULL
        return None
    try:
        return _convert(value, source, target)
    except BeyondPython:
        raise
    except (NoSuchValue, ArithmeticError):
        shown = f"'{value}'" if isinstance(value, str) else str(value)
        hint = _HINTS.get(target.kind, "") if target != ty.HUGEINT else _DIGITS_OF_HUGEINT
        raise ConversionError(f"{shown} cannot be read as {target}{hint}.", span) from None


def _json(value: Value, source: ty.DataType, target: ty.DataType, span: Span | None) -> Value:
    if not isinstance(value, str) or {source, target} != {ty.JSON, ty.VARCHAR}:
        raise BeyondPython
    with Located(span):
        documents.read(value)
    return value


_DIGITS_OF_HUGEINT = f": it has {ty.MAX_DECIMAL_DIGITS} digits here, and DOUBLE holds more, rounded"
_HINTS = {
    ty.Kind.DATE: ": a date is written 'YYYY-MM-DD'",
    ty.Kind.TIME: ": a time is written 'HH:MM:SS'",
    **dict.fromkeys(ticks.PLAIN, ": a timestamp is written 'YYYY-MM-DD HH:MM:SS'"),
    ty.Kind.INTERVAL: ": an interval is written '3 months 2 days'",
    ty.Kind.BOOLEAN: ": it is true or false",
    ty.Kind.UUID: ": a UUID has 32 hexadecimal digits",
}


def _convert(value: Value, source: ty.DataType, target: ty.DataType) -> Value:
    if target.is_temporal and not isinstance(value, str):
        return _counted(value, source, target)
    if target.is_ticks and target.kind is not ty.Kind.TIMESTAMP:
        assert isinstance(value, str)
        return _known(parse_ticks(value, target))
    if target.kind is ty.Kind.DATE:
        return _to_date(value)
    if target.kind is ty.Kind.TIMESTAMP:
        return _to_timestamp(value)
    if target.kind is ty.Kind.INTERVAL:
        if not isinstance(value, str):
            raise NoSuchValue
        return parse_interval(value)
    if target.is_enum:
        if value not in target.names:
            raise NoSuchValue
        return target.names.index(value)
    if target.kind is ty.Kind.BOOLEAN:
        return _to_boolean(value)
    if target.kind is ty.Kind.UUID:
        assert isinstance(value, str)
        return _known(parse_uuid(value))
    if target.is_float:
        return _to_float(value, target)
    if target.is_integer or target.is_decimal:
        return _to_exact(value, target)
    if isinstance(value, str):
        return value
    raise NoSuchValue


def parse_ticks(text: str, target: ty.DataType) -> int | None:
    """Return the count that a text stands for as a TIME or a timestamp without a zone, None for no value of it."""
    if target.kind is ty.Kind.TIME:
        return parse_time(text)
    if target.kind is ty.Kind.TIMESTAMP_NS:
        return parse_timestamp(text, digits=9)
    micros = parse_timestamp(text)
    return None if micros is None else ticks.convert(micros, ty.TIMESTAMP, target)


def _counted(value: Value, source: ty.DataType, target: ty.DataType) -> Value:
    """Return a date, a time or a timestamp as one of another type; `NoSuchValue` where there is none."""
    if not source.is_temporal or not ticks.castable(source, target):
        raise NoSuchValue
    count = physical(value, source)
    assert isinstance(count, int)
    found = ticks.convert(count, source, target)
    try:
        if target.kind is ty.Kind.DATE:
            return EPOCH.date() + timedelta(days=found)
        if target.kind is ty.Kind.TIMESTAMP:
            return EPOCH + timedelta(microseconds=found)
    except OverflowError:
        raise BeyondPython from None
    return found


def _to_boolean(value: Value) -> bool:
    if isinstance(value, str):
        return _known(parse_boolean(value))
    if isinstance(value, int | float | Decimal):
        return value != 0
    raise NoSuchValue


def _known(value: Parsed | None) -> Parsed:
    """Return what a parser found; `NoSuchValue` for nothing."""
    if value is None:
        raise NoSuchValue
    return value


def _to_float(value: Value, target: ty.DataType) -> float:
    if isinstance(value, str):
        return _known(parse_double(value, target))
    if not isinstance(value, int | float | Decimal):
        raise NoSuchValue
    result = float(value)
    if target.kind is ty.Kind.FLOAT:
        result = struct.unpack("f", struct.pack("f", result))[0]
        if isinstance(value, float) and math.isinf(result) and not math.isinf(value):
            raise NoSuchValue
    return result


def _to_exact(value: Value, target: ty.DataType) -> Value:
    """Round to the scale of an integer or decimal type; `NoSuchValue` when the digits do not fit."""
    if isinstance(value, str):
        unscaled = _known(parse_number(value, target))
        found = Decimal(unscaled).scaleb(-target.scale, _EXACT)
    elif isinstance(value, float):
        found = _of_float(value, target)
    elif isinstance(value, int | Decimal):
        found = Decimal(value)
    else:
        raise NoSuchValue
    if not found.is_finite():
        raise NoSuchValue
    rounded = found.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, _EXACT)
    low, high = target.integer_range
    if not low <= rounded.scaleb(target.scale, _EXACT) <= high:
        raise NoSuchValue
    return int(rounded) if target.is_integer else rounded


def _of_float(value: float, target: ty.DataType) -> Decimal:
    """Round as backends do: to integers half to even, to decimals in the arithmetic of doubles."""
    if target.is_whole:
        if not math.isfinite(value):
            raise NoSuchValue
        return Decimal(round(value))
    size = value * 10.0**target.scale
    if not abs(size) < 10.0**target.precision:  # a double: 1e38 lies a little below 10^38
        raise NoSuchValue
    scaled = Decimal(size)
    return scaled.quantize(Decimal(1), ROUND_HALF_UP, _EXACT).scaleb(-target.scale, _EXACT)


def _to_timestamp(value: Value) -> datetime:
    if not isinstance(value, str):
        raise NoSuchValue
    micros = parse_timestamp(value)
    if micros is None:
        raise NoSuchValue
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise BeyondPython from None


def _to_date(value: Value) -> date:
    if not isinstance(value, str):
        raise NoSuchValue
    days = parse_date(value)
    if days is None:
        raise NoSuchValue
    try:
        return EPOCH.date() + timedelta(days=days)
    except OverflowError:
        raise BeyondPython from None
