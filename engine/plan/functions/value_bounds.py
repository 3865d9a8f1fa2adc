"""Between which numbers a function's values lie, if its arguments' do: interval arithmetic, of moments for estimates alone.

Dates and other moments count as seconds; where nothing follows, a rule returns None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

Between: TypeAlias = tuple[float, float]
# The bounds of the arguments that are not texts, all of which are known, and those texts
BoundsOf = Callable[[Sequence[Between], Sequence[str]], Between | None]

DAY = 86400.0  # seconds
YEAR = 365.2425 * DAY
UNIT_SECONDS = {
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": DAY,
    "week": 7 * DAY,
    "month": YEAR / 12,
    "quarter": YEAR / 4,
    "year": YEAR,
}


def within(low: float, high: float) -> BoundsOf:
    """Return the rule of a function whose values are always between two."""
    return lambda arguments, texts: (low, high)


def corners(function: Callable[[float, float], float]) -> BoundsOf:
    """Return the rule of a function of two numbers that has its extremes where both have theirs."""

    def rule(arguments: Sequence[Between], texts: Sequence[str]) -> Between:
        a, b = arguments
        found = [function(x, y) for x in a for y in b]
        return min(found), max(found)

    return rule


def each_end(function: Callable[[float], float]) -> BoundsOf:
    """Return the rule of a function that only rises or only falls; what follows its first argument is left aside."""

    def rule(arguments: Sequence[Between], texts: Sequence[str]) -> Between:
        low, high = sorted(map(function, arguments[0]))
        return low, high

    return rule


def quotient(whole: bool) -> BoundsOf:
    def divided(x: float, y: float) -> float:
        return math.trunc(x / y) if whole else x / y

    def rule(arguments: Sequence[Between], texts: Sequence[str]) -> Between | None:
        low, high = arguments[1]
        return corners(divided)(arguments, texts) if low > 0 or high < 0 else None

    return rule


def remaining(arguments: Sequence[Between], texts: Sequence[str]) -> Between:
    """A remainder has the sign of the dividend and is smaller than the divisor."""
    (low, high), divisor = arguments
    most = max(max(map(abs, divisor)) - 1, 0)
    return max(min(low, 0), -most), min(max(high, 0), most)


def absolute(arguments: Sequence[Between], texts: Sequence[str]) -> Between:
    ((low, high),) = arguments
    return 0.0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high))


def rounded(arguments: Sequence[Between], texts: Sequence[str]) -> Between | None:
    """To whole numbers; to so many digits nothing is known of how many values there are."""
    if len(arguments) != 1:
        return None
    ((low, high),) = arguments
    return math.floor(low), math.ceil(high)


def units_between(arguments: Sequence[Between], texts: Sequence[str]) -> Between | None:
    """Boundaries of a unit of time from one moment to another."""
    seconds = UNIT_SECONDS.get(texts[0]) if texts else None
    if seconds is None or len(arguments) != 2:
        return None
    (first, last), (low, high) = arguments
    return math.floor((low - last) / seconds), math.ceil((high - first) / seconds)


def calendar_years(years: int, first: int = 1) -> BoundsOf:
    """Return the rule of a number of so many years each, of which the year 1 is in the `first`."""
    return each_end(lambda seconds: math.floor(seconds / (YEAR * years)) + first)
