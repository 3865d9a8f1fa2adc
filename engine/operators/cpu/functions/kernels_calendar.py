"""The proleptic Gregorian calendar over numpy arrays of days since 1970, for every year an int32 of days reaches.

Arithmetic after Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March, so that the leap day
is the last day of a year.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import OutOfRange
from ....plan import calendar
from ....plan.calendar import MICROS_A_DAY
from .vectors import Array, Mask

FARTHEST_DAY = 106_751_991  # from 1970, of a TIMESTAMP
_LAST_TIME = 2**63 - 2 - FARTHEST_DAY * MICROS_A_DAY  # on that day; 2**63 - 1 is infinity

FEW_FORMATTED = 4096  # values that are formatted soon enough
# How far apart values may lie, and how often each comes at least, on the whole
SPREAD, REPEATS = 4, 4


def civil(days: Array) -> tuple[Array, Array, Array]:
    """Return year (astronomical: 0 is 1 BC), month and day."""
    return calendar.civil(days.astype(np.int64))


def days_from_civil(year: Array, month: Array, day: Array) -> Array:
    """Return days since 1970; a day beyond its month's end counts into the next month."""
    return calendar.first_of_month(year, month) + day - 1


_MONTH_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


def month_days(year: Array, month: Array) -> Array:
    """Return the number of days of a month."""
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    return _MONTH_DAYS[np.clip(month, 1, 12) - 1] + (leap & (month == 2))


def by_day(function: Callable[[Array], Array], days: Array) -> Array:
    """Apply `function` to days: once for each day of their range where the range is much shorter than the array."""
    if days.ndim and days.size > 4096:
        low, high = int(days.min()), int(days.max())
        if high - low < days.size // 4:
            return function(np.arange(low, high + 1, dtype=np.int64))[days - low]
    return function(days.astype(np.int64))


def few_values(values: Array, valid: Mask | None) -> tuple[Array, Array] | None:
    """Return the distinct values and the place of each row's among them, -1 for NULL; None where they are many, or far apart.

    2 million moments as text with `strftime` of their hours take two cores 0.06 s of CPU time, and 0.6 where each is formatted
    (`FEW_FORMATTED` = inf).
    """
    if values.size < FEW_FORMATTED:
        return None
    known = values if valid is None else values[valid]
    low, high = int(known.min(initial=0)), int(known.max(initial=0))
    if high - low >= values.size * SPREAD:
        return None
    there = np.zeros(high - low + 1, bool)
    there[known - low] = True
    found = np.flatnonzero(there)
    if len(found) * REPEATS > values.size:
        return None
    numbers = np.cumsum(there) - 1
    offsets = values - low if valid is None else np.where(valid, values - low, 0)
    places = numbers[offsets]
    return found + low, places if valid is None else np.where(valid, places, -1)


def year(days: Array) -> Array:
    return civil(days)[0]


def month(days: Array) -> Array:
    return civil(days)[1]


def day(days: Array) -> Array:
    return civil(days)[2]


def quarter(days: Array) -> Array:
    return (month(days) + 2) // 3


def day_of_week(days: Array) -> Array:
    """Sunday 0 to Saturday 6; 1970-01-01 was a Thursday."""
    return (days + 4) % 7


def iso_day_of_week(days: Array) -> Array:
    """Monday 1 to Sunday 7."""
    return (days + 3) % 7 + 1


def day_of_year(days: Array) -> Array:
    return days - first_of_year(year(days)) + 1


def first_of_year(years: Array) -> Array:
    one = np.ones_like(years)
    return days_from_civil(years, one, one)


def thursday(days: Array) -> Array:
    """The Thursday of the same ISO week: its year is the week's year."""
    return days - iso_day_of_week(days) + 4


def iso_year(days: Array) -> Array:
    return year(thursday(days))


def iso_week(days: Array) -> Array:
    return (day_of_year(thursday(days)) - 1) // 7 + 1


def decade(days: Array) -> Array:
    return toward_zero(year(days), 10)


def _period(years: int) -> Callable[[Array], Array]:
    """Centuries and millennia count from 1, and from -1 downwards."""

    def of(days: Array) -> Array:
        found = year(days)
        return np.where(found > 0, (found - 1) // years + 1, toward_zero(found, years) - 1)

    return of


century, millennium = _period(100), _period(1000)


def toward_zero(values: Array, divisor: int) -> Array:
    """Return the quotient of integers as C gives it."""
    return np.where(values < 0, -(-values // divisor), values // divisor)


def add_months(days: Array, months: Array) -> Array:
    """Move by months; a day that the target month lacks becomes its last one."""
    year, month, day = civil(days)
    total = year * 12 + (month - 1) + months
    year, month = total // 12, total % 12 + 1
    return days_from_civil(year, month, np.minimum(day, month_days(year, month)))


def timestamps(days: Array, time: Array, valid: Mask | None) -> Array:
    """Return days and a time of the day, in microseconds, as timestamps; raises `OutOfRange` beyond them."""
    wrong = (abs(days) > FARTHEST_DAY) | ((days == FARTHEST_DAY) & (time > _LAST_TIME))
    if (wrong if valid is None else wrong & valid).any():
        raise OutOfRange(
            "Date and time not in timestamp range: use dates between 290309 BC and 294247 AD."
        )
    return np.where(wrong, 0, days).astype(np.int64) * MICROS_A_DAY + time


def whole_units(start: Array, end: Array, length: int) -> Array:
    """Return how many lengths of at least a millisecond, which days or weeks are made of, lie between timestamps, however far apart."""
    days = end // MICROS_A_DAY - start // MICROS_A_DAY
    time = end % MICROS_A_DAY - start % MICROS_A_DAY
    if length >= MICROS_A_DAY:
        whole = days - ((days > 0) & (time < 0)) + ((days < 0) & (time > 0))
        return toward_zero(whole, length // MICROS_A_DAY)
    units, rest = np.divmod(time, length)
    units = days * (MICROS_A_DAY // length) + units
    return units + ((units < 0) & (rest != 0))


def difference(left: Array, right: Array, valid: Mask | None) -> Array:
    """Return microseconds between timestamps; raises `OutOfRange` where 64 bits do not hold them."""
    with np.errstate(over="ignore"):
        found = left - right
    wrapped = abs(left.astype(np.float64) - right.astype(np.float64) - found) > 2.0**62
    if (wrapped if valid is None else wrapped & valid).any():
        raise OutOfRange("The difference of these timestamps does not fit 64 bits of microseconds.")
    return np.asarray(found)
