"""Expressions that constants alone make NULL, which DuckDB sees before it looks for the types of a call."""

from __future__ import annotations

from .expr import Call, Cast, Expr, Literal
from .functions import STRICT


def is_null_constant(expr: Expr) -> bool:
    """Whether an expression is NULL whatever its columns hold: NULL, a cast of it, and most calls with it as an argument."""
    match expr:
        case Literal(value=value):
            return value is None
        case Cast(operand=operand):
            return is_null_constant(operand)
        case Call(function=function, args=args):
            return function in STRICT and any(is_null_constant(arg) for arg in args)
    return False
