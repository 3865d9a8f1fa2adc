"""What holds of an expression whatever values its columns have."""

from __future__ import annotations

from .expr import Call, Cast, Expr, ListMap, ListReduce, Literal
from .functions import SCALAR, STRICT
from .udf.python_aggregate import PythonFold
from .udf.python_function import PythonCall


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
        case Call(function=function) if SCALAR[function].raises:
            return False
        case ListReduce():
            return False
        case ListMap(body=body, condition=condition):
            within = (body,) if condition is None else (body, condition)
            return all(map(never_raises, (*expr.children, *within)))
        case Cast(safe=False) | PythonCall() | PythonFold():
            return False
    return all(map(never_raises, expr.children))
