"""Python's operators and functions for compiled Python functions: they raise wherever Numba's would give another value than Python's.

Whole numbers that leave 64 bits, zeros to divide by, and results of the mathematical library that are not finite: what raises says
nothing but that Python itself has to compute the row.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import ir
from numba.core import types as numba_types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, mk_unique_var
from numba.extending import intrinsic, overload

types: Any = numba_types  # of which Numba's stubs know few
LIMIT = 2.0**63


def _as_whole(a):  # type: ignore[no-untyped-def]
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


def _is_whole(*kinds: Any) -> bool:
    """Whether values are integers as Python has them; those of NumPy without a sign compute as NumPy does."""
    return all(
        isinstance(k, types.Boolean) or (isinstance(k, types.Integer) and k.signed) for k in kinds
    )


def _stub(name: str) -> Any:
    def checked(*args: Any) -> None:
        """Python's function of the name."""

    checked.__name__ = checked.__qualname__ = name
    return checked


def _operator(plain: Callable[..., Any], whole: Callable[..., Any]) -> Any:
    """Make an operator: `whole` for integers, else Python's, which Numba knows."""
    made = _stub(whole.__name__)

    @overload(made)
    def chosen(a, b):  # type: ignore[no-untyped-def]
        if _is_whole(a, b):
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


def _real_quotient(a, b):  # type: ignore[no-untyped-def]
    if b == 0:
        raise ZeroDivisionError
    return a / b


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
negated = _stub(operator.neg.__name__)
size, integer, nearest = (_stub(function.__name__) for function in (abs, int, round))


@overload(negated)
def _negated(a):  # type: ignore[no-untyped-def]
    if _is_whole(a):

        def whole(a):  # type: ignore[no-untyped-def]
            value, over = _sub(np.int64(0), np.int64(a))
            if over:
                raise OverflowError
            return value

        return whole
    return lambda a: -a


@overload(size)
def _size(a):  # type: ignore[no-untyped-def]
    if _is_whole(a):

        def whole(a):  # type: ignore[no-untyped-def]
            value = np.int64(a)
            if value == -(2**63):
                raise OverflowError
            return -value if value < 0 else value

        return whole
    return _plain_size


@overload(integer)
def _integer(a):  # type: ignore[no-untyped-def]
    if _is_whole(a):
        return _as_whole
    if isinstance(a, types.Float):

        def whole(a):  # type: ignore[no-untyped-def]
            if not -LIMIT <= a < LIMIT:
                raise OverflowError
            return np.int64(a)

        return whole
    return None


@overload(nearest)
def _nearest(a):  # type: ignore[no-untyped-def]
    if _is_whole(a):
        return _as_whole
    if isinstance(a, types.Float):

        def whole(a):  # type: ignore[no-untyped-def]
            if not -LIMIT <= a < LIMIT:
                raise OverflowError
            return np.int64(np.rint(a))

        return whole
    return None


def is_finite(value: Any) -> Any:
    """Whether a result is a number, or no floating-point one."""


@overload(is_finite)
def _is_finite(value):  # type: ignore[no-untyped-def]
    if isinstance(value, types.Float):
        return lambda value: math.isfinite(value)  # noqa: PLW0108 - Numba takes no other
    return lambda value: True


def _of_math(plain: Callable[..., Any]) -> Any:
    """Make a function of `math` that raises where its result is no finite number: Python tells infinity from a domain error."""
    made = _stub(plain.__name__)

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
    made = _stub(plain.__name__)

    @overload(made)
    def chosen(a):  # type: ignore[no-untyped-def]
        if _is_whole(a):
            return _as_whole

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


@register_pass(mutates_CFG=False, analysis_only=False)
class CheckedArithmetic(FunctionPass):
    """Operators and functions of `math` become calls of those here, and what is raised has no text, which would take memory."""

    _name = "fuseline_checked_arithmetic"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        blocks = state.func_ir.blocks
        known = {
            statement.target.name: statement.value.value
            for block in blocks.values()
            for statement in block.find_insts(ir.Assign)
            if isinstance(statement.value, ir.Global | ir.FreeVar)
        }
        for block in blocks.values():
            last = block.body[-1]
            if isinstance(last, ir.Raise | ir.StaticRaise | ir.DynamicRaise):
                block.body[:] = [ir.StaticRaise(ValueError, (), last.loc)]
            body: list[Any] = []
            for statement in block.body:
                if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr):
                    body += _replaced(statement, block.scope, known)
                body.append(statement)
            block.body[:] = body
        state.func_ir._definitions = build_definitions(blocks)
        return True


def _replaced(statement: Any, scope: Any, known: dict[str, Any]) -> list[Any]:
    """Change an expression in place; return what has to come before it."""
    value, place = statement.value, statement.loc
    if value.op == "getattr" and known.get(value.value.name) is math and value.attr in MATH:
        statement.value = ir.Global(value.attr, MATH[value.attr], place)
        return []
    given: tuple[Any, ...]
    match value.op:
        case "binop":
            made, given = OPERATORS.get(value.fn), (value.lhs, value.rhs)
        case "inplace_binop":
            made, given = OPERATORS.get(value.immutable_fn), (value.lhs, value.rhs)
        case "unary" if value.fn in (operator.neg, "-"):
            made, given = negated, (value.value,)
        case _:
            return []
    if made is None:
        return []
    name = ir.Var(scope, mk_unique_var("$checked"), place)
    scope.define(name.name, place) if name.name not in scope.localvars else None
    statement.value = ir.Expr.call(name, given, (), place)
    return [ir.Assign(ir.Global(made.__name__, made, place), name, place)]
