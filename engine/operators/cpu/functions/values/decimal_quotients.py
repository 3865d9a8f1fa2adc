"""Numbers rounded half to even: quotients of decimals that are decimals, and round_even; functions of whole numbers whose results are large."""

from __future__ import annotations

import math

from .....errors import ExecutionError, OutOfRange
from .....plan.expr import Call
from .....plan.types import HUGEINT, MAX_DECIMAL_DIGITS, room_for
from ..vectors import Kernel, Vector
from .each_value import ValueFunction, of_values


def _quotient(call: Call, args: tuple[Vector, ...]) -> Vector:
    """Divide unscaled integers, brought to the scale of the result before."""
    scales = [arg.type.scale if arg.type.is_decimal else 0 for arg in call.args]
    shift = call.type.scale + scales[1] - scales[0]
    most = call.type.integer_range[1]

    def divided(value: int, divisor: int) -> int:
        if not divisor:
            raise ExecutionError(f"Division by zero in {call.function}: use nullif(divisor, 0).")
        value, divisor = value * 10 ** max(shift, 0), divisor * 10 ** max(-shift, 0)
        whole, rest = divmod(value, divisor)  # the rest has the sign of the divisor
        twice, size = 2 * abs(rest), abs(divisor)
        whole += twice > size or (twice == size and whole % 2)
        if abs(whole) > most:
            raise OutOfRange(f"The result of {call.function} does not fit {call.type}.")
        return whole

    return of_values(divided)(call, args)


def _round_even(call: Call, args: tuple[Vector, ...]) -> Vector:
    """Round what a number is, and not what its product with a power of ten would be."""
    kind, scale = call.type, call.args[0].type.scale

    def of_float(value: float, digits: int) -> float:
        try:
            return round(value, digits) if math.isfinite(value) else value
        except OverflowError:
            return value

    def of_integer(value: int, digits: int) -> int:
        # Python makes the power of ten that it rounds to, whatever its size
        made = (
            round(value, max(digits - scale, -2 * MAX_DECIMAL_DIGITS)) if digits < scale else value
        )
        made //= 10 ** (scale - kind.scale)
        low, high = kind.integer_range
        if not low <= made <= high:
            raise OutOfRange(f"Overflow in round_even: {room_for(kind)}")
        return made

    return of_values(of_float if kind.is_float else of_integer)(call, args)


KERNELS: dict[str, Kernel] = {
    "decimal_division": _quotient,
    "decimal_mean": _quotient,
    "round_even": _round_even,
}


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
