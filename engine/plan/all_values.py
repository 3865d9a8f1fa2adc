"""What holds of an expression whatever values its columns have."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .expr import Call, Cast, Expr, ListMap, ListReduce, Literal
from .functions import SCALAR, STRICT
from .functions.value_bounds import Between, absolute
from .shapes.guards import decided
from .udf.python_function import PythonCall, PythonFold


def is_null_constant(expr: Expr) -> bool:
    """Whether an expression is NULL in any row: NULL, a cast of it, and most calls with it as an argument.

    DuckDB sees that before it looks for the types of a call.
    """
    match expr:
        case Literal():
            return expr.is_null
        case Cast(operand=operand):
            return is_null_constant(operand)
        case Call(function=function, args=args):
            return function in STRICT and any(is_null_constant(arg) for arg in args)
    return False


def never_raises(expr: Expr) -> bool:
    """Whether no value is an error for an expression: rows may see it that another order of its conditions leaves out."""
    match expr:
        case Call() if _may_raise(expr):
            return False
        case ListReduce():
            return False
        case ListMap(body=body, condition=condition):
            within = (body,) if condition is None else (body, condition)
            return all(map(never_raises, (*expr.children, *within)))
        case Cast(safe=False) | PythonCall() | PythonFold():
            return False
    return all(map(never_raises, expr.children))


def _may_raise(call: Call) -> bool:
    """Whether some values of its arguments are an error, not counting what computes these."""
    row, others = SCALAR[call.function], call.args[1:]
    if not row.raises or row.safe_with is None:
        return row.raises
    return not (all(isinstance(o, Literal) for o in others) and decided(row.safe_with, *others))


def is_whole(expr: Expr) -> bool:
    """Whether a DOUBLE is a whole number in any row, between bounds that follow from those of integer and decimal columns."""
    match expr:
        case Literal():
            return expr.type.is_float and decided(_is_integral, expr)
        case Cast(operand=operand):
            return expr.type.is_float and operand.type.is_integer
        case Call(function=function, args=args) if expr.type.is_float:
            whole = SCALAR[function].whole
            if whole == "alone":
                return len(args) == 1 and is_bounded(args[0])
            return whole == "of whole" and all(map(is_whole, args))
    return False


def is_bounded(expr: Expr) -> bool:
    """Whether the bounds of a number follow from those of integer and decimal columns, as far as its functions say."""
    match expr:
        case Literal():
            return expr.type.is_numeric and not expr.is_null
        case Cast(operand=operand):
            exact = operand.type.is_integer or operand.type.is_decimal
            return expr.type.is_float and exact
        case Call(function=function, args=args):
            return SCALAR[function].bounds is not None and all(map(is_bounded, args))
    return False


def between(call: Call, arguments: Sequence[Between], texts: Sequence[str]) -> Between | None:
    """Return the bounds of a call's values by those of its arguments that are no texts; None where nothing follows.

    A number times itself is that of its size, and so no less than 0.
    """
    rule = SCALAR[call.function].bounds
    if rule is None:
        return None
    if call.function == "mul" and call.args[0] == call.args[1]:
        arguments = 2 * [absolute(arguments[:1], texts)]
    try:
        found = rule(arguments, texts)
    except (OverflowError, ValueError):  # as of whole numbers of infinity
        return None
    return found if found and all(map(math.isfinite, found)) else None


def _is_integral(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()
