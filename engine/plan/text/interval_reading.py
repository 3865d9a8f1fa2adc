"""Intervals as text and as numbers of a unit, by DuckDB's rules."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

from ..expr import Interval
from ..functions.dates import PARTS
from ..types import DIGITS
from .number_text import SPACE, NoSuchValue

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
_CLOCK = re.compile(r"(-?)(\d+):([0-5]?\d)(?::([0-5]?\d)(?:\.(\d*))?)?$", re.ASCII)
_QUANTITY = re.compile(rf"(-?\d+(?:\.\d*)?)[{SPACE}]*([a-zA-Z]+)[{SPACE}]*", re.ASCII)
_SECONDS = re.compile(r"-?\d+(?:\.\d*)?", re.ASCII)


def parse_interval(text: str) -> Interval:
    """Read `1 year 2 mons`, `1.5 days`, `3 weeks ago`, `1 day -01:30:00`; a number alone is seconds.  Raises `NoSuchValue`."""
    rest = text.strip(SPACE).removeprefix("@").strip(SPACE)
    if _SECONDS.fullmatch(rest):
        return spread(Decimal(rest), "second")
    ago = rest.lower().endswith(" ago")
    rest = rest[:-4].rstrip(SPACE) if ago else rest
    months = days = micros = 0
    if not rest:
        raise NoSuchValue
    while rest:
        if quantity := _QUANTITY.match(rest):
            rest, part = rest[quantity.end() :], spread(Decimal(quantity[1]), quantity[2])
        elif not ago and (clock := _CLOCK.match(rest)):
            rest, part = "", Interval(0, 0, _clock_micros(clock))
        else:
            raise NoSuchValue
        months, days, micros = months + part.months, days + part.days, micros + part.micros
    sign = -1 if ago else 1
    return _held(Interval(sign * months, sign * days, sign * micros))


def _held(value: Interval) -> Interval:
    """Return an interval; raises `NoSuchValue` where a part does not fit its bits."""
    months, days = (-(2**31) <= part < 2**31 for part in (value.months, value.days))
    if not (months and days and -(2**63) <= value.micros < 2**63):
        raise NoSuchValue(value)
    return value


def _clock_micros(clock: re.Match[str]) -> int:
    hours, minutes, seconds = (int(Decimal(part or 0)) for part in clock.group(2, 3, 4))
    fraction = int((clock.group(5) or "").ljust(6, "0")[:6])
    micros = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + fraction
    return -micros if clock.group(1) == "-" else micros


def spread(quantity: Decimal, unit: str) -> Interval:
    """Return a number of a unit as an interval; fractions of months become days of 30, those of days microseconds.

    Those of seconds and milliseconds round to microseconds, the others are cut.  Raises `NoSuchValue`.
    """
    return _held(_spread(quantity, unit))


def _spread(quantity: Decimal, unit: str) -> Interval:
    name = PARTS.get(unit.lower())
    if name in ("second", "millisecond"):
        return Interval(0, 0, int((quantity * _MICROS[name]).quantize(1, ROUND_HALF_UP, DIGITS)))
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
    raise NoSuchValue(unit)


def interval(quantity: Decimal, unit: str) -> Interval:
    """Return INTERVAL 'quantity' unit, where DuckDB cuts fractions of all units above the second."""
    name = PARTS.get(unit.lower(), unit)
    fractional = name in ("second", "millisecond")
    return spread(quantity if fractional else Decimal(int(quantity)), name)
