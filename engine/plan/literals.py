"""Constants: the type of a Python value, and what text means as a value of another type.

The rules are DuckDB 2.0's: numbers round half away from zero, dates take `-`, `/` or spaces, a time zone after a timestamp is
ignored, intervals are lists of numbers and units.
"""

from __future__ import annotations

import math
import re
import struct
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TypeVar

from ..errors import ConversionError, OutOfRange, Span, TypeMismatch, check_text
from .calendar import EPOCH
from .expr import Interval, Literal, Value
from .functions.dates import PARTS
from .text.number_text import (
    SPACE,
    parse_boolean,
    parse_date,
    parse_double,
    parse_number,
    parse_timestamp,
)
from .types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HUGEINT,
    INTEGER,
    INTERVAL,
    MAX_DECIMAL_DIGITS,
    NULL,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    UBIGINT,
    UINTEGER,
    USMALLINT,
    UTINYINT,
    VARCHAR,
    DataType,
    Kind,
    decimal,
)

Parsed = TypeVar("Parsed")
_EXACT = Context(prec=200)
MOST_BITS_SHOWN = 1000  # of an integer in a message
_MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
}
_DAYS = {"day": 1, "week": 7}
MONTHS = {
    "month": 1,
    "quarter": 3,
    "year": 12,
    "decade": 120,
    "century": 1200,
    "millennium": 12000,
}
_DAY_MICROS = 24 * _MICROS["hour"]
_NUMPY_TYPES = {
    "int8": TINYINT,
    "int16": SMALLINT,
    "int32": INTEGER,
    "int64": BIGINT,
    "uint8": UTINYINT,
    "uint16": USMALLINT,
    "uint32": UINTEGER,
    "uint64": UBIGINT,
    "float16": FLOAT,
    "float32": FLOAT,
}


class BeyondPython(ValueError):
    """A date or timestamp that DuckDB has and Python's `datetime` has not."""


def literal(value: object, span: Span | None = None) -> Literal:
    """Return the constant for a Python or NumPy value; raises `TypeMismatch` for a value without a SQL type."""
    known = _NUMPY_TYPES.get(type(value).__name__) if hasattr(value, "dtype") else None
    if hasattr(value, "dtype") and hasattr(value, "item"):
        value = _from_numpy(value)
    match value:
        case None:
            return Literal(None, NULL, span)
        case bool():
            return Literal(value, BOOLEAN, span)
        case int():
            return Literal(value, known, span) if known else integer(value, span)
        case float():
            return Literal(value, known or DOUBLE, span)
        case Decimal():
            return exact(value, span)
        case str():
            check_text(value, "A text")
            return Literal(value, VARCHAR, span)
        case datetime() if value.tzinfo is None:
            if getattr(value, "nanosecond", 0):  # of pandas' Timestamp
                raise _nanoseconds(value)
            return Literal(value, TIMESTAMP, span)
        case date() if not isinstance(value, datetime):
            return Literal(value, DATE, span)
        case timedelta():
            if getattr(value, "nanoseconds", 0):  # of pandas' Timedelta
                raise _nanoseconds(value)
            micros = value.seconds * 1_000_000 + value.microseconds
            return Literal(Interval(0, value.days, micros), INTERVAL, span)
        case Interval():
            return Literal(value, INTERVAL, span)
    raise TypeMismatch(
        f"A value of the Python type {type(value).__name__} has no SQL type here: pass a number, string, "
        "bool, date, naive datetime, timedelta or None.",
        span,
    )


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


def integer(value: int, span: Span | None = None) -> Literal:
    """Return an integer constant: INTEGER, BIGINT or HUGEINT, the first that holds it."""
    for data_type in (INTEGER, BIGINT):
        low, high = data_type.integer_range
        if low <= value <= high:
            return Literal(value, data_type, span)
    if abs(value) >= 10**MAX_DECIMAL_DIGITS:
        # Python turns no integer of thousands of digits into text
        shown = value if value.bit_length() < MOST_BITS_SHOWN else f"of {value.bit_length()} bits"
        raise OutOfRange(f"The integer {shown} has more than {MAX_DECIMAL_DIGITS} digits.", span)
    return Literal(Decimal(value), HUGEINT, span)


def exact(value: Decimal, span: Span | None = None) -> Literal:
    """Return a DECIMAL constant of exactly the digits written, or a DOUBLE beyond 38 of them."""
    if not value.is_finite():
        return Literal(float(value), DOUBLE, span)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    whole = max(1, len(digits) + exponent)
    if whole + scale > MAX_DECIMAL_DIGITS:
        return Literal(float(value), DOUBLE, span)
    return Literal(value, decimal(whole + scale, scale), span)


def number(text: str, leading_zero: bool = True, span: Span | None = None) -> Literal:
    """Return the constant that a number in SQL stands for; `.5` (no `leading_zero`) is a digit shorter than `0.5`."""
    text = text.replace("_", "")
    if "e" in text.lower():
        return Literal(float(text), DOUBLE, span)
    if "." not in text:
        return integer(int(text), span)
    found = exact(Decimal(text), span)
    if not leading_zero and found.type.is_decimal and found.type.precision > found.type.scale:
        return Literal(found.value, decimal(found.type.precision - 1, found.type.scale), span)
    return found


def convert(value: Value, source: DataType, target: DataType, span: Span | None = None) -> Value:
    """Return a constant of `source` as a value of `target`; raises `ConversionError` as a cast does.

    Covers text to anything and numbers, booleans, dates among themselves.  A moment outside of the years of Python's dates
    raises `BeyondPython`: a backend reads the text.
    """
    if value is None or source == target:
        return value
    if target.kind is Kind.NULL:  # of an operator whose other side is NULL
        return None
    try:
        return _convert(value, target)
    except BeyondPython:
        raise
    except (ValueError, ArithmeticError, struct.error):
        shown = f"'{value}'" if isinstance(value, str) else str(value)
        hint = _HINTS.get(target.kind, "") if target != HUGEINT else _DIGITS_OF_HUGEINT
        raise ConversionError(f"{shown} cannot be read as {target}{hint}.", span) from None


_DIGITS_OF_HUGEINT = f": it has {MAX_DECIMAL_DIGITS} digits here, and DOUBLE holds more, rounded"
_HINTS = {
    Kind.DATE: ": a date is written 'YYYY-MM-DD'",
    Kind.TIMESTAMP: ": a timestamp is written 'YYYY-MM-DD HH:MM:SS'",
    Kind.INTERVAL: ": an interval is written '3 months 2 days'",
    Kind.BOOLEAN: ": it is true or false",
}


def _convert(value: Value, target: DataType) -> Value:
    if target.kind is Kind.DATE:
        return _to_date(value)
    if target.kind is Kind.TIMESTAMP:
        return _to_timestamp(value)
    if target.kind is Kind.INTERVAL:
        if not isinstance(value, str):
            raise ValueError
        return parse_interval(value)
    if target.kind is Kind.BOOLEAN:
        return _to_boolean(value)
    if target.is_float:
        return _to_float(value, target)
    if target.is_integer or target.is_decimal:
        return _to_exact(value, target)
    if isinstance(value, str):
        return value
    raise ValueError


def _to_boolean(value: Value) -> bool:
    if isinstance(value, str):
        return _known(parse_boolean(value))
    if isinstance(value, int | float | Decimal):
        return value != 0
    raise ValueError


def _known(value: Parsed | None) -> Parsed:
    """Return what a parser found; ValueError for nothing."""
    if value is None:
        raise ValueError
    return value


def _to_float(value: Value, target: DataType) -> float:
    if isinstance(value, str):
        return _known(parse_double(value, target))
    if not isinstance(value, int | float | Decimal):
        raise ValueError
    result = float(value)
    if target.kind is Kind.FLOAT:
        result = struct.unpack("f", struct.pack("f", result))[0]
        if isinstance(value, float) and math.isinf(result) and not math.isinf(value):
            raise ValueError
    return result


def _to_exact(value: Value, target: DataType) -> Value:
    """Round to the scale of an integer or decimal type; ValueError when the digits do not fit."""
    if isinstance(value, str):
        unscaled = _known(parse_number(value, target))
        found = Decimal(unscaled).scaleb(-target.scale, _EXACT)
    elif isinstance(value, float):
        found = _of_float(value, target)
    elif isinstance(value, int | Decimal):
        found = Decimal(value)
    else:
        raise ValueError
    if not found.is_finite():
        raise ValueError
    rounded = found.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, _EXACT)
    low, high = target.integer_range
    if not low <= rounded.scaleb(target.scale, _EXACT) <= high:
        raise ValueError
    return int(rounded) if target.is_integer else rounded


def _of_float(value: float, target: DataType) -> Decimal:
    """Round as backends do: to integers half to even, to decimals in the arithmetic of doubles."""
    if target.is_whole:
        return Decimal(round(value))
    size = value * 10.0**target.scale
    if not abs(size) < 10.0**target.precision:  # a double: 1e38 lies a little below 10^38
        raise ValueError
    scaled = Decimal(size)
    return scaled.quantize(Decimal(1), ROUND_HALF_UP, _EXACT).scaleb(-target.scale, _EXACT)


def _to_timestamp(value: Value) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if not isinstance(value, str):
        raise ValueError
    micros = parse_timestamp(value)
    if micros is None:
        raise ValueError
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise BeyondPython from None


def _to_date(value: Value) -> date:
    if not isinstance(value, str):
        return _to_timestamp(value).date()
    days = parse_date(value)
    if days is None:
        raise ValueError
    try:
        return EPOCH.date() + timedelta(days=days)
    except OverflowError:
        raise BeyondPython from None


_CLOCK = re.compile(r"(-?)(\d+):([0-5]?\d)(?::([0-5]?\d)(?:\.(\d*))?)?$", re.ASCII)
_QUANTITY = re.compile(rf"(-?\d+(?:\.\d*)?)[{SPACE}]*([a-zA-Z]+)[{SPACE}]*", re.ASCII)
_SECONDS = re.compile(r"-?\d+(?:\.\d*)?", re.ASCII)


def parse_interval(text: str) -> Interval:
    """Read `1 year 2 mons`, `1.5 days`, `3 weeks ago`, `1 day -01:30:00`; a number alone is seconds.  Raises ValueError."""
    rest = text.strip(SPACE).removeprefix("@").strip(SPACE)
    if _SECONDS.fullmatch(rest):
        return spread(Decimal(rest), "second")
    ago = rest.lower().endswith(" ago")
    rest = rest[:-4].rstrip(SPACE) if ago else rest
    months = days = micros = 0
    if not rest:
        raise ValueError
    while rest:
        if quantity := _QUANTITY.match(rest):
            rest, part = rest[quantity.end() :], spread(Decimal(quantity[1]), quantity[2])
        elif not ago and (clock := _CLOCK.match(rest)):
            rest, part = "", Interval(0, 0, _clock_micros(clock))
        else:
            raise ValueError
        months, days, micros = months + part.months, days + part.days, micros + part.micros
    sign = -1 if ago else 1
    return _held(Interval(sign * months, sign * days, sign * micros))


def _held(value: Interval) -> Interval:
    """Return an interval; raises ValueError where a part does not fit its bits."""
    months, days = (-(2**31) <= part < 2**31 for part in (value.months, value.days))
    if not (months and days and -(2**63) <= value.micros < 2**63):
        raise ValueError(value)
    return value


def _clock_micros(clock: re.Match[str]) -> int:
    hours, minutes, seconds = (int(part or 0) for part in clock.group(2, 3, 4))
    fraction = int((clock.group(5) or "").ljust(6, "0")[:6])
    micros = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + fraction
    return -micros if clock.group(1) == "-" else micros


def spread(quantity: Decimal, unit: str) -> Interval:
    """Return a number of a unit as an interval; fractions of months become days of 30, those of days microseconds.

    Those of seconds and milliseconds round to microseconds, the others are cut.  Raises ValueError.
    """
    return _held(_spread(quantity, unit))


def _spread(quantity: Decimal, unit: str) -> Interval:
    name = PARTS.get(unit.lower())
    if name in ("second", "millisecond"):
        return Interval(0, 0, int((quantity * _MICROS[name]).quantize(1, ROUND_HALF_UP, _EXACT)))
    if name in _MICROS:
        return Interval(0, 0, int(quantity * _MICROS[name]))
    if name in _DAYS:
        exact_days = quantity * _DAYS[name]
        days = int(exact_days)
        return Interval(0, days, int((exact_days - days) * _DAY_MICROS))
    if name in MONTHS:
        exact_months = quantity * MONTHS[name]
        months = int(exact_months)
        rest = _spread((exact_months - months) * 30, "day")
        return Interval(months, rest.days, rest.micros)
    raise ValueError(unit)


def interval(quantity: Decimal, unit: str) -> Interval:
    """Return INTERVAL 'quantity' unit, where DuckDB cuts fractions of all units above the second."""
    name = PARTS.get(unit.lower(), unit)
    fractional = name in ("second", "millisecond")
    return spread(quantity if fractional else Decimal(int(quantity)), name)
