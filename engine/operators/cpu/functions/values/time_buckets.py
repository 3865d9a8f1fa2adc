"""What lies between moments: ages, buckets of a width, days since the beginning of Julian's calendar; and moments made of numbers."""

from __future__ import annotations

import math

import numpy as np

from .....errors import ConversionError, ExecutionError
from .....plan.calendar import INFINITE_MICROS, MICROS_A_DAY
from .....plan.expr import Call
from .....plan.text.interval_reading import MONTHS
from .. import kernels_calendar as calendar
from ..kernels_calendar import toward_zero
from ..kernels_dates import LENGTHS, unit_of
from ..kernels_intervals import interval
from ..vectors import Array, Kernel, Mask, Vector, both_valid
from .each_value import ValueFunction

_MONTH = 30  # days
_UNITS_OF_DAYS = {"day": 1, "week": 7}
_JULIAN_EPOCH = 2_440_588  # days before 1970
_ORIGIN_MONTH = 360  # January 2000, since 1970
_ORIGIN = 10_959 * MICROS_A_DAY  # Monday, the 3rd of January 2000


def _age(call: Call, args: tuple[Vector, ...]) -> Vector:
    """Differences of years, months and days as on paper: a day is borrowed from the month of the earlier moment."""
    later, earlier = args
    valid = both_valid(later, earlier)
    first, second = np.broadcast_arrays(later.data, earlier.data)
    ahead = first >= second
    (y1, m1, d1), (y2, m2, d2) = (calendar.civil(data // MICROS_A_DAY) for data in (first, second))
    sign = np.where(ahead, 1, -1)
    time = (first % MICROS_A_DAY - second % MICROS_A_DAY) * sign
    days = (d1 - d2) * sign - (time < 0)
    time = np.where(time < 0, time + MICROS_A_DAY, time)
    months = ((y1 - y2) * 12 + m1 - m2) * sign - (days < 0)
    borrowed = np.where(ahead, calendar.month_days(y2, m2), calendar.month_days(y1, m1))
    days = np.where(days < 0, days + borrowed, days)
    return interval((months * sign, days * sign, time * sign), valid)


def _bucket(call: Call, args: tuple[Vector, ...]) -> Vector:
    width, moment, *origins = args
    valid = both_valid(*args)
    months = width.data["months"].astype(np.int64)
    days = width.data["days"].astype(np.int64)
    passed = width.data["micros"] + days * MICROS_A_DAY
    of_months = months != 0
    mixed = of_months & ((days != 0) | (width.data["micros"] != 0))
    _refuse(mixed & (months > 0), valid, "A width of months has no days and no time beside them.")
    _refuse(np.where(of_months, months, passed) <= 0, valid, "The width of buckets is more than 0.")
    origin = origins[0].data if origins else np.int64(_ORIGIN)
    with np.errstate(all="ignore"):
        length = np.where(of_months | (passed <= 0), 1, passed)
        found = origin + (moment.data - origin) // length * length
    if np.any(of_months):
        start = _months(origins[0].data) if origins else np.int64(_ORIGIN_MONTH)
        length = np.where(of_months & (months > 0), months, 1)
        begin = start + (_months(moment.data) - start) // length * length
        first = calendar.days_from_civil(begin // 12 + 1970, begin % 12 + 1, np.ones_like(begin))
        found = np.where(of_months, first * MICROS_A_DAY, found)
    return Vector(call.type, found, valid)


def _months(data: Array) -> Array:
    """The number of the month that a moment is in, since 1970."""
    year, month, _ = calendar.civil(data // MICROS_A_DAY)
    return (year - 1970) * 12 + month - 1


def _refuse(wrong: Array, valid: Mask | None, words: str) -> None:
    if np.any(wrong if valid is None else wrong & valid):
        raise ExecutionError(words)


def _julian(call: Call, args: tuple[Vector, ...]) -> Vector:
    (moment,) = args
    days, time = moment.data // MICROS_A_DAY, moment.data % MICROS_A_DAY
    return Vector(call.type, days + _JULIAN_EPOCH + time / 1e6 / 86_400, moment.valid)


def _normalized(call: Call, args: tuple[Vector, ...]) -> Vector:
    (span,) = args
    time = span.data["micros"]
    days = span.data["days"].astype(np.int64) + time // MICROS_A_DAY
    months = span.data["months"].astype(np.int64) + days // _MONTH
    return interval((months, days % _MONTH, time % MICROS_A_DAY), span.valid)


def _truncated(call: Call, args: tuple[Vector, ...]) -> Vector:
    """Leave out what is less than a unit, toward zero; months, days and time are counted apart."""
    unit, span = unit_of(args[0]), args[1]
    months = span.data["months"].astype(np.int64)
    days = span.data["days"].astype(np.int64)
    time, nothing = span.data["micros"], np.zeros_like(months)
    if unit in MONTHS:
        length = MONTHS[unit]
        return interval((toward_zero(months, length) * length, nothing, nothing), span.valid)
    if unit in _UNITS_OF_DAYS:
        length = _UNITS_OF_DAYS[unit]
        return interval((months, toward_zero(days, length) * length, nothing), span.valid)
    length = LENGTHS[unit]
    return interval((months, days, toward_zero(time, length) * length), span.valid)


def _time(hours: int, minutes: int, seconds: float) -> int:
    known = 0 <= hours <= 24 and 0 <= minutes < 60 and 0 <= seconds <= 60
    micros = (hours * 60 + minutes) * 60_000_000 + math.floor(seconds * 1e6 + 0.5) if known else -1
    if not 0 <= micros <= MICROS_A_DAY:  # a TIME may be 24:00:00
        raise ConversionError(f"There is no time {hours}:{minutes}:{seconds:f}.")
    return micros


def _nanoseconds(count: int) -> int:
    if abs(count) == INFINITE_MICROS:
        raise ConversionError(f"Timestamp out of range: {count} is what an infinite one has.")
    return count


KERNELS: dict[str, Kernel] = {
    "age": _age,
    "time_bucket": _bucket,
    "julian": _julian,
    "normalized_interval": _normalized,
    "interval_trunc": _truncated,
}
FUNCTIONS: dict[str, ValueFunction] = {"make_time": _time, "make_timestamp_ns": _nanoseconds}
