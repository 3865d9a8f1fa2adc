"""Python's `math` for compiled Python functions: a result that is no finite number raises, and Python tells what it is."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .functions_udf_checked_cpu import (
    LIMIT,
    OPERATORS,
    as_whole,
    integer,
    is_whole,
    nearest,
    size,
    stub,
    types,
)
from .functions_udf_noted_cpu import overload


def is_finite(value: Any) -> Any:
    """Whether a result is a number, or no floating-point one."""


@overload(is_finite)
def _is_finite(value):  # type: ignore[no-untyped-def]
    if isinstance(value, types.Float):
        return lambda value: math.isfinite(value)  # noqa: PLW0108 - Numba takes no other
    return lambda value: True


def _of_math(plain: Callable[..., Any]) -> Any:
    """Make a function of `math` that raises where its result is no finite number: Python tells infinity from a domain error."""
    made = stub(plain.__name__)

    @overload(made)
    def chosen(*args):  # type: ignore[no-untyped-def]
        if len(args) == 2:

            def pair(*args):  # type: ignore[no-untyped-def]
                found = plain(args[0], args[1])
                if not is_finite(found):
                    raise ValueError
                return found

            return pair

        def one(*args):  # type: ignore[no-untyped-def]
            found = plain(args[0])
            if not is_finite(found):
                raise ValueError
            return found

        return one

    return made


def _to_whole(plain: Callable[..., Any]) -> Any:
    """Make a function of `math` that rounds to a whole number."""
    made = stub(plain.__name__)

    @overload(made)
    def chosen(a):  # type: ignore[no-untyped-def]
        if is_whole(a):
            return as_whole

        def whole(a):  # type: ignore[no-untyped-def]
            if not -LIMIT <= a < LIMIT:
                raise OverflowError
            return np.int64(plain(a))

        return whole

    return made


def _rounds(function: Callable[..., Any]) -> bool:
    """Whether a function makes a whole number of a fraction."""
    try:
        return type(function(0.5)) is int
    except (TypeError, ValueError):  # of other arguments
        return False


MATH = {
    name: (_to_whole if _rounds(function) else _of_math)(function)
    for name, function in vars(math).items()
    if callable(function) and not name.startswith("_")
}
_BUILTIN = {
    function.__name__: made
    for function, made in (
        (abs, size),
        (int, integer),
        (round, nearest),
        (pow, OPERATORS[operator.pow]),
    )
}
REPLACED = {
    **_BUILTIN,
    **{f"builtins.{name}": made for name, made in _BUILTIN.items()},
    **{f"math.{name}": made for name, made in MATH.items()},
}
