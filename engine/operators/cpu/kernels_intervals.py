"""INTERVAL arithmetic: months, days and microseconds are kept apart; Arrow stores the last as nanoseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import ExecutionError, OutOfRange
from ...plan.expr import Call
from ...plan.types import INTERVAL, TIMESTAMP
from . import kernels_calendar as calendar
from .kernels_calendar import MICROS_A_DAY, toward_zero
from .vectors import SPAN, Array, Mask, Vector, both_valid

_INT32 = 2**31
MICROS_LIMIT = (2**63 - 1) // 1000  # Arrow's nanoseconds hold about 292 years
_HOUR, _MINUTE = 3_600_000_000, 60_000_000


def micros(data: Array) -> Array:
    return data["nanos"] // 1000


def interval(parts: Sequence[Any], valid: Mask | None) -> Vector:
    """Build intervals of months, days and microseconds; raises `OutOfRange` where a part does not fit."""
    months, days, micros = (np.asarray(part) for part in parts)
    shape = np.broadcast_shapes(*map(np.shape, parts))
    wrong = np.zeros(shape, bool)
    for values, limit in ((months, _INT32), (days, _INT32), (micros, MICROS_LIMIT)):
        wrong = wrong | ~((values < limit) & (values >= -limit))
    wrong = wrong if valid is None else wrong & valid
    if wrong.any():
        raise OutOfRange(
            "Interval value out of range: months and days hold 32 bits, the time 292 years."
        )
    out = np.empty(shape, SPAN)
    with np.errstate(all="ignore"):
        out["months"], out["days"] = months, days
        out["nanos"] = micros.astype(np.int64) * 1000
    return Vector(INTERVAL, out, valid)


INTERVAL_PARTS: dict[str, Callable[[Array], Array]] = {
    "millennium": lambda d: _months(d, 12_000),
    "century": lambda d: _months(d, 1200),
    "decade": lambda d: _months(d, 120),
    "year": lambda d: _months(d, 12),
    "quarter": lambda d: toward_zero(np.fmod(d["months"].astype(np.int64), 12), 3) + 1,
    "month": lambda d: np.fmod(d["months"].astype(np.int64), 12),
    "day": lambda d: d["days"].astype(np.int64),
    "hour": lambda d: toward_zero(micros(d), _HOUR),
    "minute": lambda d: toward_zero(np.fmod(micros(d), _HOUR), _MINUTE),
    "second": lambda d: toward_zero(np.fmod(micros(d), _MINUTE), 1_000_000),
    "millisecond": lambda d: toward_zero(np.fmod(micros(d), _MINUTE), 1000),
    "microsecond": lambda d: np.fmod(micros(d), _MINUTE),
}


def _months(data: Array, length: int) -> Array:
    return toward_zero(data["months"].astype(np.int64), length)


def interval_epoch(data: Array) -> Array:
    """Seconds; a year has 365.25 days and a month of a broken year 30."""
    months = data["months"].astype(np.int64)
    days = toward_zero(months, 12) * 365.25 + np.fmod(months, 12) * 30 + data["days"]
    return days * 86_400 + micros(data) / 1e6


def _shift(call: Call, args: tuple[Vector, ...]) -> Vector:
    """TIMESTAMP +- INTERVAL: first months, clipped to the month's end, then days, then time."""
    start, span = args
    sign = -1 if call.function == "sub_interval" else 1
    valid = both_valid(start, span)
    days, time = start.data // MICROS_A_DAY, start.data % MICROS_A_DAY
    months = span.data["months"].astype(np.int64) * sign
    if (months != 0).any():
        days = calendar.add_months(days, months)
    days = days + span.data["days"].astype(np.int64) * sign
    time = time + micros(span.data) * sign
    days, time = days + time // MICROS_A_DAY, time % MICROS_A_DAY
    wrong = abs(days.astype(np.float64)) >= 106_751_991  # days of 2^63 microseconds
    wrong = wrong if valid is None else wrong & valid
    if wrong.any():
        raise OutOfRange(
            "Date and time not in timestamp range: the interval leads out of the calendar."
        )
    return Vector(TIMESTAMP, days * MICROS_A_DAY + time, valid)


def _timestamp_difference(call: Call, args: tuple[Vector, ...]) -> Vector:
    left, right = args
    difference = left.data - right.data
    days = toward_zero(difference, MICROS_A_DAY)
    return interval((0, days, difference - days * MICROS_A_DAY), both_valid(left, right))


def _parts(data: Array) -> tuple[Array, Array, Array]:
    return data["months"].astype(np.int64), data["days"].astype(np.int64), micros(data)


def _combine(call: Call, args: tuple[Vector, ...]) -> Vector:
    left, right = args
    sign = -1 if call.function == "sub_intervals" else 1
    sums = [a + sign * b for a, b in zip(_parts(left.data), _parts(right.data), strict=True)]
    return interval(sums, both_valid(left, right))


def _negate(call: Call, args: tuple[Vector, ...]) -> Vector:
    return interval([-p for p in _parts(args[0].data)], args[0].valid)


def _multiply(call: Call, args: tuple[Vector, ...]) -> Vector:
    span, factor = args
    valid = both_valid(span, factor)
    if factor.type.is_float:
        return _scaled(span, factor.data, valid)
    # As doubles first: a product that leaves 64 bits must not wrap back into the range.
    rough = [p.astype(np.float64) * factor.data for p in _parts(span.data)]
    interval(rough, valid)
    return interval([p * factor.data for p in _parts(span.data)], valid)


def _divide(call: Call, args: tuple[Vector, ...]) -> Vector:
    span, divisor = args
    valid = both_valid(span, divisor)
    zero = divisor.data == 0
    if (zero if valid is None else zero & valid).any():
        raise ExecutionError(
            "Division of an interval by zero: use nullif(divisor, 0) to get NULL for such rows."
        )
    return _scaled(span, 1 / divisor.data, valid, divisor.data)


def _scaled(
    span: Vector, factor: Array, valid: Mask | None, divisor: Array | None = None
) -> Vector:
    """Fractions of a month become days of 30, those of a day seconds; both are rounded to 6 digits, as in DuckDB and PostgreSQL."""
    months, days, time = (p * factor if divisor is None else p / divisor for p in _parts(span.data))
    whole_months, whole_days = np.trunc(months), np.trunc(days)
    more_days = _six_digits((months - whole_months) * 30)
    whole_more_days = np.trunc(more_days)
    seconds = _six_digits((days - whole_days + more_days - whole_more_days) * 86_400)
    carried = np.trunc(seconds / 86_400)
    time = time + (seconds - carried * 86_400) * 1e6
    return interval((whole_months, whole_days + whole_more_days + carried, np.rint(time)), valid)


def _six_digits(values: Array) -> Array:
    return np.rint(values * 1e6) / 1e6


_MONTHS = {
    "millennia": 12_000,
    "centuries": 1200,
    "decades": 120,
    "years": 12,
    "quarters": 3,
    "months": 1,
}
_DAYS = {"weeks": 7, "days": 1}
_MICROS = {
    "hours": _HOUR,
    "minutes": _MINUTE,
    "seconds": 1_000_000,
    "milliseconds": 1000,
    "microseconds": 1,
}


def _from_number(call: Call, args: tuple[Vector, ...]) -> Vector:
    """to_years(n) and its kin."""
    (arg,) = args
    unit = call.function.removeprefix("to_")
    # As doubles first: a product that leaves 64 bits must not wrap back into the range.
    rough = arg.data.astype(np.float64)
    if unit in _MONTHS:
        interval((rough * _MONTHS[unit], 0, 0), arg.valid)
        return interval((arg.data * _MONTHS[unit], 0, 0), arg.valid)
    if unit in _DAYS:
        interval((0, rough * _DAYS[unit], 0), arg.valid)
        return interval((0, arg.data * _DAYS[unit], 0), arg.valid)
    interval((0, 0, rough * _MICROS[unit]), arg.valid)
    product = arg.data * _MICROS[unit]
    return interval((0, 0, np.rint(product) if arg.type.is_float else product), arg.valid)


KERNELS: dict[str, Any] = {
    "add_interval": _shift,
    "sub_interval": _shift,
    "timestamp_minus_timestamp": _timestamp_difference,
    "add_intervals": _combine,
    "sub_intervals": _combine,
    "neg_interval": _negate,
    "mul_interval": _multiply,
    "div_interval": _divide,
    **{f"to_{unit}": _from_number for unit in (*_MONTHS, *_DAYS, *_MICROS)},
}
