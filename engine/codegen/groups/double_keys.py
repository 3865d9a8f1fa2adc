"""DOUBLE and FLOAT group keys that have numbers: whole ones between known bounds, and functions of a column of few values.

Of other ones a kernel knows no domain.  1.5 million rows by the hundred thousands of a price and a day take 6 ms of CPU time in a kernel, and 26 by
operators, which make a column of doubles and number its values (SF1, a busy machine).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from ...plan.all_values import between, is_whole
from ...plan.expr import Call, Cast, Expr, Literal
from ...plan.functions import SCALAR
from ...plan.functions.value_bounds import Between
from ...plan.types import Kind
from ..expressions.arithmetic import convert, of_doubles
from ..expressions.lookup import through_table
from ..expressions.translate import RULES, translate
from ..loop import Apply, Convert, Machine, Number, Term
from ..program_builder import ProgramBuilder
from ..ranges import IntegerRange
from ..typed_values import NotFusable, Value

MOST_WHOLE = 1 << 53  # up to which each whole number is a double
SLACK = 1e-9  # of a bound, by which rounding may pass it


def numbered(expr: Expr, kernel: ProgramBuilder) -> Value:
    """Return a floating-point key as an integer: the number itself where it is whole, else its place among the values of a column.

    Raises `NotFusable` where it is neither.
    """
    found = through_table(expr, kernel, ranks=True)
    if found is None and expr.type.kind is Kind.DOUBLE and is_whole(expr):
        found = _whole(expr, kernel)
    if found is None:
        raise NotFusable(f"no numbers are known for the values of a {expr.type}")
    return found


def _whole(expr: Expr, kernel: ProgramBuilder) -> Value | None:
    """Translate what `is_whole` to an integer; None where its bounds are too far apart."""
    match expr:
        case Cast(operand=operand):
            value = translate(operand, kernel)
            return value if value.interval is not None and _fits(value.interval) else None
        case Literal(value=float(number)) if abs(number) < MOST_WHOLE:
            return _constant(int(number))
        case Call(function=function, args=args) if SCALAR[function].whole == "alone":
            return _rounded(function, args[0], kernel)
        case Call(function=function, args=args):
            parts = [_whole(arg, kernel) for arg in args]
            left, right = parts[0], parts[-1]
            if left is None or right is None:
                return None
            made = RULES[function](expr, [left, right], kernel)
            assert made.interval is not None
            return (
                replace(made, step=_step(left, right, made.interval))
                if _fits(made.interval)
                else None
            )
    return None


def _step(left: Value, right: Value, interval: IntegerRange) -> int:
    """The step of a sum or product with a constant, which puts the values evenly apart; 1 of others."""
    for one, other in ((left, right), (right, left)):
        assert one.interval is not None
        assert other.interval is not None
        if one.interval.size == 1 < other.interval.size:
            return (interval.size - 1) // (other.interval.size - 1) * other.step or 1
    return 1


def _rounded(function: str, arg: Expr, kernel: ProgramBuilder) -> Value | None:
    """Round a double that lies between known bounds, in whole numbers from then on."""
    between, of_result = _between(arg, kernel), SCALAR[function].bounds
    assert of_result is not None
    if between is None:
        return None
    low, high = (
        end + sign * SLACK * max(1.0, abs(end)) for end, sign in zip(between, (-1, 1), strict=True)
    )
    ends = of_result([(low, high)], [])
    assert ends is not None
    least, most = ends
    interval = IntegerRange(math.floor(least), math.ceil(most))
    if not _fits(interval):
        return None
    machine = Machine.I32 if interval.fits_i32 else Machine.I64
    value = _in_registers(arg, kernel)
    number = kernel.name(convert(value.term, Machine.F64), f"{function}_of")
    toward_zero = kernel.name(Convert(number, machine), function)
    term = ROUNDED[function](number, toward_zero)
    return Value(term, value.valid, interval)


def _floor(number: Term, toward_zero: Term) -> Term:
    return _moved("-", toward_zero, Apply("<", (number, _double(toward_zero)), Machine.BOOL))


def _ceil(number: Term, toward_zero: Term) -> Term:
    return _moved("+", toward_zero, Apply(">", (number, _double(toward_zero)), Machine.BOOL))


def _round(number: Term, toward_zero: Term) -> Term:
    """Half away from zero: what is left of a double behind the point is exact."""
    rest: Term = Apply("-", (number, _double(toward_zero)), Machine.F64)
    up: Term = Apply(">=", (rest, Number(0.5, Machine.F64)), Machine.BOOL)
    down: Term = Apply("<=", (rest, Number(-0.5, Machine.F64)), Machine.BOOL)
    return _moved("-", _moved("+", toward_zero, up), down)


def _trunc(number: Term, toward_zero: Term) -> Term:
    return toward_zero


ROUNDED: dict[str, Callable[[Term, Term], Term]] = {
    "floor": _floor,
    "ceil": _ceil,
    "round": _round,
    "trunc": _trunc,
}


def _double(number: Term) -> Term:
    return Convert(number, Machine.F64)


def _moved(sign: str, number: Term, by: Term) -> Term:
    return Apply(sign, (number, Convert(by, number.type)), number.type)


def _between(expr: Expr, kernel: ProgramBuilder) -> Between | None:
    """The bounds of what `is_bounded`, but for rounding; None where a function has none for such arguments."""
    match expr:
        case Literal(value=value):
            return (
                (float(value), float(value)) if isinstance(value, int | float | Decimal) else None
            )
        case Cast(operand=operand):
            interval, scale = translate(operand, kernel).interval, 10.0**operand.type.scale
            return None if interval is None else (interval.low / scale, interval.high / scale)
        case Call(args=args):
            given = [found for arg in args if (found := _between(arg, kernel)) is not None]
            return between(expr, given, []) if len(given) == len(args) else None
    return None


def _in_registers(expr: Expr, kernel: ProgramBuilder) -> Value:
    """Translate an expression of doubles without having parts of it evaluated beforehand, which takes longer than all the kernel does."""
    if isinstance(expr, Call) and expr.type.is_float:
        args = [_in_registers(arg, kernel) for arg in expr.args]
        if SCALAR[expr.function].math:
            return of_doubles(expr, args)
        if expr.function in RULES:
            return RULES[expr.function](expr, args, kernel)
    return translate(expr, kernel)


def _constant(number: int) -> Value:
    interval = IntegerRange(number, number)
    machine = Machine.I32 if interval.fits_i32 else Machine.I64
    return Value(Number(number, machine), None, interval)


def _fits(interval: IntegerRange) -> bool:
    return interval.magnitude <= MOST_WHOLE
