"""Functions of whole numbers whose results are large, and the gamma function."""

from __future__ import annotations

import math

from .....errors import OutOfRange
from .....plan.types import HUGEINT
from .each_value import ValueFunction


def _huge(function: str, value: int) -> int:
    if value > HUGEINT.integer_range[1]:
        raise OutOfRange(f"The result of {function} does not fit HUGEINT.")
    return value


def _factorial(value: int) -> int:
    if value < 0:
        raise OutOfRange("The factorial of a negative number is undefined.")
    if value > 40:
        raise OutOfRange("The result of factorial does not fit HUGEINT.")
    return _huge("factorial", math.factorial(value))


def _binom(n: int, k: int) -> int:
    if n < 0 or k < 0:
        raise OutOfRange("The binomial coefficient of negative numbers is undefined.")
    made = 1
    for i in range(1, min(k, n - k) + 1 if k <= n else 0):
        made = _huge("binom", made * (n - i + 1) // i)
    return made if k <= n else 0


def _gamma(value: float) -> float:
    if value == 0:
        return math.copysign(math.inf, value)
    try:
        return math.gamma(value)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def _lgamma(value: float) -> float:
    try:
        return math.lgamma(value)
    except (OverflowError, ValueError):
        return math.inf


FUNCTIONS: dict[str, ValueFunction] = {
    "factorial": _factorial,
    "binom": _binom,
    "gamma": _gamma,
    "lgamma": _lgamma,
}
