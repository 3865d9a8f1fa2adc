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

from .functions_udf_noted_cpu import intrinsic, overload

types: Any = numba_types  # of which Numba's stubs know few
LIMIT = 2.0**63
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
EXACT = 2**53  # up to which doubles hold each whole number


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


def _operator(plain: Callable[..., Any], whole: Callable[..., Any]) -> tuple[Any, Any]:
    """Make an operator, `whole` for integers and else `plain`: one that gives its value and whether that is none, and one that raises then."""

    def chosen(a, b):  # type: ignore[no-untyped-def]
        if is_whole(a, b):
            return whole
        return plain

    return _telling(whole.__name__, chosen)


def _telling(name: str, chosen: Callable[..., Any]) -> tuple[Any, Any]:
    """Return an operator that gives its value and whether that is none, as is chosen by types, and one that raises then."""
    told, checked = stub(name), stub(name)
    overload(told)(chosen)

    @overload(checked)
    def raising(a, b):  # type: ignore[no-untyped-def]
        def called(a, b):  # type: ignore[no-untyped-def]
            value, bad = told(a, b)
            if bad:
                raise ArithmeticError
            return value

        return called

    return told, checked


_add, _sub, _mul = map(_with_overflow, ("sadd", "ssub", "smul"))


def _added(a, b):  # type: ignore[no-untyped-def]
    return _add(np.int64(a), np.int64(b))


def _subtracted(a, b):  # type: ignore[no-untyped-def]
    return _sub(np.int64(a), np.int64(b))


def _multiplied(a, b):  # type: ignore[no-untyped-def]
    return _mul(np.int64(a), np.int64(b))


def _divided(a, b):  # type: ignore[no-untyped-def]
    x, y = np.int64(a), np.int64(b)
    bad = (y == 0) | ((y == -1) & (x == -(2**63)))
    return x // (np.int64(1) if bad else y), bad


def _remained(a, b):  # type: ignore[no-untyped-def]
    x, y = np.int64(a), np.int64(b)
    none = (y == 0) | (y == -1)
    return np.int64(0) if none else x % (np.int64(1) if none else y), y == 0


def _raised(a, b):  # type: ignore[no-untyped-def]
    base, left = np.int64(a), np.int64(b)
    found, bad, beyond = np.int64(1), left < 0, False
    while left > 0:
        if left & 1:
            found, lost = _mul(found, base)
            bad = bad | lost | beyond
        left >>= 1
        if left > 0:
            base, lost = _mul(base, base)
            beyond = beyond | lost
    return found, bad


def _shifted(a, b):  # type: ignore[no-untyped-def]
    x, by = np.int64(a), np.int64(b)
    bad = (by < 0) | (by > 62)
    places = np.int64(0) if bad else by
    found = x << places
    return found, bad | ((found >> places) != x)


def _shifted_back(a, b):  # type: ignore[no-untyped-def]
    by = np.int64(b)
    return np.int64(a) >> min(max(by, np.int64(0)), np.int64(63)), by < 0


@intrinsic
def divided_by(context, a, b):  # type: ignore[no-untyped-def]
    """The quotient of two doubles, infinity or NaN for zero."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.fdiv(*given)

    return types.float64(types.float64, types.float64), generate


def _quotient(a, b):  # type: ignore[no-untyped-def]
    """Python rounds a quotient of whole numbers once; of those beyond 53 bits doubles are rounded before."""
    x, y = np.int64(a), np.int64(b)
    large = (x > EXACT) | (x < -EXACT) | (y > EXACT) | (y < -EXACT)
    return divided_by(np.float64(x), np.float64(y)), large | (y == 0)


def _real_quotient(a, b):  # type: ignore[no-untyped-def]
    divisor = np.float64(b)
    return divided_by(np.float64(a), divisor), divisor == 0.0


def _power_of_doubles(a, b):  # type: ignore[no-untyped-def]
    found = np.float64(a) ** np.float64(b)
    return found, not math.isfinite(found)


def _real_floor(a, b):  # type: ignore[no-untyped-def]
    bad = b == 0
    return a // (1.0 if bad else b), bad


def _real_remainder(a, b):  # type: ignore[no-untyped-def]
    bad = b == 0
    return a % (1.0 if bad else b), bad


def _compared(sign: Callable[..., Any]) -> tuple[Any, Any]:
    """Make a comparison: Python compares whole numbers with doubles as they are, and not as doubles."""

    def among(a, b):  # type: ignore[no-untyped-def]
        return sign(a, b), False

    def with_whole_left(a, b):  # type: ignore[no-untyped-def]
        return sign(a, b), (a > EXACT) | (a < -EXACT)

    def with_whole_right(a, b):  # type: ignore[no-untyped-def]
        return sign(a, b), (b > EXACT) | (b < -EXACT)

    def chosen(a, b):  # type: ignore[no-untyped-def]
        if is_whole(a) and isinstance(b, types.Float):
            return with_whole_left
        return with_whole_right if isinstance(a, types.Float) and is_whole(b) else among

    return _telling(sign.__name__, chosen)


_PAIRS = {
    **{sign: _compared(sign) for sign in COMPARISONS},
    operator.add: _operator(lambda a, b: (a + b, False), _added),
    operator.sub: _operator(lambda a, b: (a - b, False), _subtracted),
    operator.mul: _operator(lambda a, b: (a * b, False), _multiplied),
    operator.truediv: _operator(_real_quotient, _quotient),
    operator.floordiv: _operator(_real_floor, _divided),
    operator.mod: _operator(_real_remainder, _remained),
    operator.pow: _operator(_power_of_doubles, _raised),
    operator.lshift: _operator(lambda a, b: (a << b, False), _shifted),
    operator.rshift: _operator(lambda a, b: (a >> b, False), _shifted_back),
}
TOLD = {sign: told for sign, (told, _) in _PAIRS.items()}
OPERATORS = {sign: checked for sign, (_, checked) in _PAIRS.items()}
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
