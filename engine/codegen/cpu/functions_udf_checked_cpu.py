"""Python's operators for compiled Python functions: they raise wherever Numba's would give another value than Python's.

Whole numbers that leave 64 bits, and zeros to divide by: what raises says nothing but that Python itself has to compute the row.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types as numba_types
from numba.extending import intrinsic, overload

types: Any = numba_types  # of which Numba's stubs know few
LIMIT = 2.0**63


def as_whole(a):  # type: ignore[no-untyped-def]
    return np.int64(a)


def _plain_size(a):  # type: ignore[no-untyped-def]
    return abs(a)


def _with_overflow(name: str) -> Any:
    @intrinsic
    def operated(context, a, b):  # type: ignore[no-untyped-def]
        """The result of an operator on two int64, and whether it does not fit one."""
        result = types.Tuple((types.int64, types.boolean))

        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            found = getattr(builder, f"{name}_with_overflow")(*given)
            parts = [builder.extract_value(found, place) for place in (0, 1)]
            return context.make_tuple(builder, result, parts)

        return result(types.int64, types.int64), generate

    return operated


def is_whole(*kinds: Any) -> bool:
    """Whether values are integers as Python has them; those of NumPy without a sign compute as NumPy does."""
    return all(
        isinstance(k, types.Boolean) or (isinstance(k, types.Integer) and k.signed) for k in kinds
    )


def stub(name: str) -> Any:
    def checked(*args: Any) -> None:
        """Python's function of the name."""

    checked.__name__ = checked.__qualname__ = name
    return checked


def _operator(plain: Callable[..., Any], whole: Callable[..., Any]) -> Any:
    """Make an operator: `whole` for integers, else Python's, which Numba knows."""
    made = stub(whole.__name__)

    @overload(made)
    def chosen(a, b):  # type: ignore[no-untyped-def]
        if is_whole(a, b):
            return whole
        return plain

    return made


_add, _sub, _mul = map(_with_overflow, ("sadd", "ssub", "smul"))


def _added(a, b):  # type: ignore[no-untyped-def]
    value, over = _add(np.int64(a), np.int64(b))
    if over:
        raise OverflowError
    return value


def _subtracted(a, b):  # type: ignore[no-untyped-def]
    value, over = _sub(np.int64(a), np.int64(b))
    if over:
        raise OverflowError
    return value


def _multiplied(a, b):  # type: ignore[no-untyped-def]
    value, over = _mul(np.int64(a), np.int64(b))
    if over:
        raise OverflowError
    return value


def _divided(a, b):  # type: ignore[no-untyped-def]
    x, y = np.int64(a), np.int64(b)
    if y == 0 or (y == -1 and x == -(2**63)):
        raise ZeroDivisionError
    return x // y


def _remained(a, b):  # type: ignore[no-untyped-def]
    x, y = np.int64(a), np.int64(b)
    if y == 0:
        raise ZeroDivisionError
    return np.int64(0) if y == -1 else x % y


def _raised(a, b):  # type: ignore[no-untyped-def]
    base, left = np.int64(a), np.int64(b)
    if left < 0:
        raise ValueError
    found, over, beyond = np.int64(1), False, False
    while left > 0:
        if left & 1:
            found, lost = _mul(found, base)
            over = over | lost | beyond
        left >>= 1
        if left > 0:
            base, lost = _mul(base, base)
            beyond = beyond | lost
    if over:
        raise OverflowError
    return found


def _shifted(a, b):  # type: ignore[no-untyped-def]
    x, by = np.int64(a), np.int64(b)
    if by < 0 or by > 62 or (x << by) >> by != x:
        raise OverflowError
    return x << by


def _shifted_back(a, b):  # type: ignore[no-untyped-def]
    by = np.int64(b)
    if by < 0:
        raise ValueError
    return np.int64(a) >> min(by, np.int64(63))


def _quotient(a, b):  # type: ignore[no-untyped-def]
    x, y = np.int64(a), np.int64(b)
    if (
        y == 0 or abs(x) > 2**53 or abs(y) > 2**53
    ):  # beyond which Python rounds once, and doubles twice
        raise ZeroDivisionError
    return np.float64(x) / np.float64(y)


def _power_of_doubles(a, b):  # type: ignore[no-untyped-def]
    found = np.float64(a) ** np.float64(b)
    if not math.isfinite(found):
        raise OverflowError
    return found


@intrinsic
def divided_by(context, a, b):  # type: ignore[no-untyped-def]
    """The quotient of two doubles, infinity or NaN for zero."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.fdiv(*given)

    return types.float64(types.float64, types.float64), generate


def _real_quotient(a, b):  # type: ignore[no-untyped-def]
    divisor = np.float64(b)
    found = divided_by(np.float64(a), divisor)  # before the test, which is no branch then
    if divisor == 0.0:
        raise ZeroDivisionError
    return found


def _real_floor(a, b):  # type: ignore[no-untyped-def]
    if b == 0:
        raise ZeroDivisionError
    return a // b


def _real_remainder(a, b):  # type: ignore[no-untyped-def]
    if b == 0:
        raise ZeroDivisionError
    return a % b


OPERATORS = {
    operator.add: _operator(lambda a, b: a + b, _added),
    operator.sub: _operator(lambda a, b: a - b, _subtracted),
    operator.mul: _operator(lambda a, b: a * b, _multiplied),
    operator.truediv: _operator(_real_quotient, _quotient),
    operator.floordiv: _operator(_real_floor, _divided),
    operator.mod: _operator(_real_remainder, _remained),
    operator.pow: _operator(_power_of_doubles, _raised),
    operator.lshift: _operator(lambda a, b: a << b, _shifted),
    operator.rshift: _operator(lambda a, b: a >> b, _shifted_back),
}
negated = stub(operator.neg.__name__)
size, integer, nearest = (stub(function.__name__) for function in (abs, int, round))


@overload(negated)
def _negated(a):  # type: ignore[no-untyped-def]
    if is_whole(a):

        def whole(a):  # type: ignore[no-untyped-def]
            value, over = _sub(np.int64(0), np.int64(a))
            if over:
                raise OverflowError
            return value

        return whole
    return lambda a: -a


@overload(size)
def _size(a):  # type: ignore[no-untyped-def]
    if is_whole(a):

        def whole(a):  # type: ignore[no-untyped-def]
            value = np.int64(a)
            if value == -(2**63):
                raise OverflowError
            return -value if value < 0 else value

        return whole
    return _plain_size


@overload(integer)
def _integer(a):  # type: ignore[no-untyped-def]
    if is_whole(a):
        return as_whole
    if isinstance(a, types.Float):

        def whole(a):  # type: ignore[no-untyped-def]
            if not -LIMIT <= a < LIMIT:
                raise OverflowError
            return np.int64(a)

        return whole
    return None


@overload(nearest)
def _nearest(a):  # type: ignore[no-untyped-def]
    if is_whole(a):
        return as_whole
    if isinstance(a, types.Float):

        def whole(a):  # type: ignore[no-untyped-def]
            if not -LIMIT <= a < LIMIT:
                raise OverflowError
            return np.int64(np.rint(a))

        return whole
    return None
