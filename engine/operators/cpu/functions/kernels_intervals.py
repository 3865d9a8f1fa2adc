"""INTERVAL arithmetic: months, days and microseconds are kept apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....errors import ExecutionError, OutOfRange
from ....plan.calendar import MICROS_A_DAY
from ....plan.expr import Call
from ....plan.types import INTERVAL, TIME, TIMESTAMP
from . import kernels_calendar as calendar
from .interval_records import SPAN
from .kernels_calendar import toward_zero
from .vectors import Array, Kernel, Mask, Vector, both_valid

_INT32 = 2**31
MICROS_LIMIT = 2**63
_HOUR, _MINUTE = 3_600_000_000, 60_000_000


def micros(data: Array) -> Array:
    return data["micros"]


def interval(parts: Sequence[Array | int], valid: Mask | None) -> Vector:
    """Build intervals of months, days and microseconds; raises `OutOfRange` where a part does not fit."""
    months, days, micros = (np.asarray(part) for part in parts)
    shape = np.broadcast_shapes(*map(np.shape, parts))
    wrong = np.zeros(shape, bool)
    for values, limit in ((months, _INT32), (days, _INT32), (micros, MICROS_LIMIT)):
        wrong = wrong | ~((values < limit) & (values >= -limit))
    wrong = wrong if valid is None else wrong & valid
    if wrong.any():
        raise _out_of_range()
    out = np.empty(shape, SPAN)
    with np.errstate(all="ignore"):
        out["months"], out["days"] = months, days
        out["micros"] = micros
    return Vector(INTERVAL, out, valid)


def _out_of_range() -> OutOfRange:
    return OutOfRange(
        "Interval value out of range: months and days hold 32 bits, the microseconds of the time 64."
    )


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
    passed = micros(span.data)
    days = days + (span.data["days"].astype(np.int64) + passed // MICROS_A_DAY) * sign
    time = time + passed % MICROS_A_DAY * sign
    days, time = days + time // MICROS_A_DAY, time % MICROS_A_DAY
    return Vector(TIMESTAMP, calendar.timestamps(days, time, valid), valid)


def shifted(start: Vector, spans: Array) -> Array:
    """Return timestamps with intervals added."""
    added = Call("add_interval", (), TIMESTAMP)
    return _shift(added, (start, Vector(INTERVAL, spans))).data


def _shift_time(call: Call, args: tuple[Vector, ...]) -> Vector:
    """TIME +- INTERVAL goes around midnight, and knows no days."""
    start, span = args
    sign = -1 if call.function == "sub_interval_of_time" else 1
    passed = np.fmod(micros(span.data), MICROS_A_DAY) * sign
    return Vector(TIME, (start.data + passed) % MICROS_A_DAY, both_valid(start, span))


def _at_time(call: Call, args: tuple[Vector, ...]) -> Vector:
    """DATE + TIME."""
    day, time = args
    valid = both_valid(day, time)
    data = calendar.timestamps(day.data.astype(np.int64), time.data, valid)
    return Vector(TIMESTAMP, data, valid)


def _timestamp_difference(call: Call, args: tuple[Vector, ...]) -> Vector:
    left, right = args
    valid = both_valid(left, right)
    days = left.data // MICROS_A_DAY - right.data // MICROS_A_DAY
    time = left.data % MICROS_A_DAY - right.data % MICROS_A_DAY
    whole = calendar.whole_units(right.data, left.data, MICROS_A_DAY)
    return interval((0, whole, (days - whole) * MICROS_A_DAY + time), valid)


def _parts(data: Array) -> tuple[Array, Array, Array]:
    return data["months"].astype(np.int64), data["days"].astype(np.int64), micros(data)


def _combine(call: Call, args: tuple[Vector, ...]) -> Vector:
    left, right = args
    combine = np.subtract if call.function == "sub_intervals" else np.add
    valid = both_valid(left, right)
    return _exactly(combine, list(zip(_parts(left.data), _parts(right.data), strict=True)), valid)


def _exactly(
    operation: Callable[..., Array], pairs: Sequence[tuple[Array, Array | int]], valid: Mask | None
) -> Vector:
    """Apply an operation of integers part by part; doubles tell where it leaves 64 bits, so that nothing wraps back."""
    rough = [operation(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in pairs]
    with np.errstate(over="ignore"):
        parts = [operation(np.asarray(a, np.int64), np.asarray(b, np.int64)) for a, b in pairs]
    interval((rough[0], rough[1], 0), valid)
    wrapped = abs(rough[2] - parts[2]) > 2.0**62
    if (wrapped if valid is None else wrapped & valid).any():
        raise _out_of_range()
    return interval(parts, valid)


def _negate(call: Call, args: tuple[Vector, ...]) -> Vector:
    (arg,) = args
    return _exactly(np.multiply, [(p, -1) for p in _parts(arg.data)], arg.valid)


def _multiply(call: Call, args: tuple[Vector, ...]) -> Vector:
    span, factor = args
    valid = both_valid(span, factor)
    if factor.type.is_float:
        return _scaled(span, factor.data, valid)
    wrong = (factor.data >= _INT32) | (factor.data < -_INT32)  # for DuckDB the factor is INTEGER
    if (wrong if valid is None else wrong & valid).any():
        raise _out_of_range()
    return _exactly(np.multiply, [(p, factor.data) for p in _parts(span.data)], valid)


def _divide(call: Call, args: tuple[Vector, ...]) -> Vector:
    span, divisor = args
    valid = both_valid(span, divisor)
    zero = divisor.data == 0
    if (zero if valid is None else zero & valid).any():
        raise ExecutionError(
            "Division of an interval by zero: use nullif(divisor, 0) to get NULL for such rows."
        )
    return _scaled(span, 1 / divisor.data, valid)


def _scaled(span: Vector, factor: Array, valid: Mask | None) -> Vector:
    """Fractions of a month become days of 30, those of a day seconds; both are rounded to 6 digits, as in DuckDB and PostgreSQL.

    DuckDB divides by the reciprocal, and its fused multiply-add loses nothing of a product: so does this.
    """
    parts = _parts(span.data)
    months, days, time = (p * factor for p in parts)
    whole_months, whole_days = np.trunc(months), np.trunc(days)
    month_rest = months - whole_months + _lost(parts[0], factor, months)
    day_rest = days - whole_days + _lost(parts[1], factor, days)
    more_days = _six_digits(month_rest * 30)
    whole_more_days = np.trunc(more_days)
    seconds = _six_digits((day_rest + more_days - whole_more_days) * 86_400)
    carried = np.trunc(seconds / 86_400)
    more = (seconds - carried * 86_400) * 1e6
    total = time + more
    back = total - time
    total = total + ((time - (total - back)) + (more - back) + _lost(parts[2], factor, time))
    return interval((whole_months, whole_days + whole_more_days + carried, np.rint(total)), valid)


def _lost(left: Array, right: Array, product: Array) -> Array:
    """Return what rounding took from a product of doubles (Dekker, Veltkamp)."""
    with np.errstate(invalid="ignore", over="ignore"):
        (a, b), (c, d) = (_halves(np.asarray(v, np.float64)) for v in (left, right))
        lost = b * d - (((product - a * c) - b * c) - a * d)
    return np.where(np.isfinite(lost), lost, 0.0)


def _halves(values: Array) -> tuple[Array, Array]:
    """Split doubles into two of 26 bits."""
    scaled = values * 134_217_729.0
    high = scaled - (scaled - values)
    return high, values - high


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
    if arg.type.is_float:
        return interval((0, 0, np.rint(arg.data * _MICROS[unit])), arg.valid)
    lengths = [table.get(unit, 0) for table in (_MONTHS, _DAYS, _MICROS)]
    return _exactly(np.multiply, [(arg.data, length) for length in lengths], arg.valid)


KERNELS: dict[str, Kernel] = {
    "add_interval": _shift,
    "sub_interval": _shift,
    "add_interval_to_time": _shift_time,
    "sub_interval_of_time": _shift_time,
    "at_time": _at_time,
    "timestamp_minus_timestamp": _timestamp_difference,
    "add_intervals": _combine,
    "sub_intervals": _combine,
    "neg_interval": _negate,
    "mul_interval": _multiply,
    "div_interval": _divide,
    **{f"to_{unit}": _from_number for unit in (*_MONTHS, *_DAYS, *_MICROS)},
}
