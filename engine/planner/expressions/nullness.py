"""Where NULLs can come from and what they do to a predicate, in three-valued logic."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ...plan.expr import Call, Case, Cast, Column, ColumnRef, Expr, InList, Literal, conjuncts
from ...plan.functions import COMPARISONS, SCALAR, STRICT


def is_never_null(expr: Expr, columns: AbstractSet[Column]) -> bool:
    """Whether `expr` has a value in every row in which `columns` have one."""
    match expr:
        case ColumnRef(column=column):
            return column in columns
        case Literal():
            return not expr.is_null
        case Cast(operand=operand, safe=False):
            return is_never_null(operand, columns)
        case Call(function="coalesce", args=args):
            return any(is_never_null(a, columns) for a in args)
        case Call(function=function, args=args):
            row = SCALAR[function]
            total = row.total and all(is_never_null(a, columns) for a in args)
            return total or row.nulls == "never"
        case Case(results=results, default=default):
            return all(is_never_null(r, columns) for r in (*results, default))
        case InList():
            return all(is_never_null(e, columns) for e in expr.children)
    return False


def compared_columns(predicate: Expr | None) -> set[Column]:
    """Return columns that must have a value for the predicate to be TRUE, as its comparisons show."""
    found: set[Column] = set()
    for part in conjuncts(predicate):
        match part:
            case Call(function=function, args=args) if function in COMPARISONS & STRICT:
                found |= {a.column for a in args if isinstance(a, ColumnRef)}
            case Call(function="is_not_null", args=(ColumnRef(column=column),)):
                found.add(column)
            case InList(operand=ColumnRef(column=column)):
                found.add(column)
    return found


def rejects_nulls(predicate: Expr, columns: AbstractSet[Column]) -> bool:
    """Whether `predicate` cannot be TRUE in a row in which all of `columns` are NULL."""
    return _never(True, predicate, columns)


def _is_null(expr: Expr, columns: AbstractSet[Column]) -> bool:
    match expr:
        case ColumnRef(column=column):
            return column in columns
        case Literal():
            return expr.is_null
        case Cast(operand=operand) | InList(operand=operand):
            return _is_null(operand, columns)
        case Call(function=function, args=args):
            nulls = [_is_null(a, columns) for a in args]
            return (
                any(nulls) if function in STRICT else SCALAR[function].nulls == "all" and all(nulls)
            )
        case Case(results=results, default=default):
            return all(_is_null(r, columns) for r in (*results, default))
    return False


def _never(truth: bool, expr: Expr, columns: AbstractSet[Column]) -> bool:
    """Whether an expression cannot be TRUE, or FALSE, in a row in which all of `columns` are NULL."""
    match expr:
        case Literal(truth=bool(known)) if known is not truth:
            return True
        case Call(function="and", args=args):
            return (any if truth else all)(_never(truth, a, columns) for a in args)
        case Call(function="or", args=args):
            return (all if truth else any)(_never(truth, a, columns) for a in args)
        case Call(function="not", args=(arg,)):
            return _never(not truth, arg, columns)
        case Call(function=function, args=(arg,)) if function == f"is_{'not_' * truth}null":
            return _is_null(arg, columns)
        case Case(results=results, default=default) if truth:
            return all(_never(truth, r, columns) for r in (*results, default))
    return _is_null(expr, columns)
