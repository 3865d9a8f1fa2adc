"""Expressions that say the same with less; rule `simplify` and the rules that move predicates use it."""

from __future__ import annotations

import dataclasses
from collections.abc import Set as AbstractSet

from ...plan.expr import FALSE, TRUE, AggregateCall, Call, Case, Cast, Column, Expr, InList, Literal
from ...plan.node import transform_up
from ...plan.types import BOOLEAN
from .fold import folded
from .logic import combine, negation, simplified_connective
from .nullness import is_never_null
from .unwrap_casts import unwrapped

Known = AbstractSet[Column]

MAX_STEPS = 8  # rewritings of one node in a row; each makes it smaller or moves it toward one form


def simplified(expr: Expr, known: Known = frozenset()) -> Expr:
    """Return the simplest form of an expression; `known` are columns that are never NULL."""
    return transform_up(expr, lambda e: _settled(e, known)) if expr.CHILDREN else expr


def _settled(expr: Expr, known: Known) -> Expr | None:
    if not expr.CHILDREN:
        return None  # columns and literals are simple
    current = expr
    for _ in range(MAX_STEPS):
        new = _step(current, known)
        if new is None or new is current:
            break
        # What a step builds around the old parts may itself have a simpler form.
        current = transform_up(new, lambda e: _step(e, known)) if new.children else new
    return None if current is expr else current


def _step(expr: Expr, known: Known) -> Expr | None:
    match expr:
        case Literal() | AggregateCall():
            return None
        case Call(function="and" | "or"):
            return simplified_connective(expr)
        case Call(function="not", args=(arg,)):
            return folded(expr) or negation(arg)
        case Call(function="coalesce"):
            return _coalesced(expr, known)
        case Call(function="is_null" | "is_not_null", args=(arg,)) if is_never_null(arg, known):
            return FALSE if expr.function == "is_null" else TRUE
        case Call(function="is_distinct" | "is_not_distinct", args=(a, b)):
            if is_never_null(a, known) and is_never_null(b, known):
                return Call("ne" if expr.function == "is_distinct" else "eq", (a, b), BOOLEAN)
            return folded(expr) or _null_test(expr) or unwrapped(expr)
        case Call():
            return folded(expr) or unwrapped(expr)
        case Cast(operand=operand, type=target):
            return operand if operand.type == target else folded(expr)
        case InList():
            return _listed(expr)
        case Case():
            return _chosen(expr)
    return None


def _null_test(expr: Call) -> Expr | None:
    """X is [not] distinct from NULL."""
    name = "is_not_null" if expr.function == "is_distinct" else "is_null"
    for value, other in (expr.args, expr.args[::-1]):
        if isinstance(value, Literal) and value.value is None:
            return Call(name, (other,), BOOLEAN)
    return None


def _coalesced(expr: Call, known: Known) -> Expr | None:
    kept: list[Expr] = []
    for arg in expr.args:
        if isinstance(arg, Literal) and arg.value is None:
            continue
        kept.append(arg)
        if is_never_null(arg, known):
            break
    if not kept:
        return Literal(None, expr.type)
    if len(kept) == 1:
        return kept[0]
    return None if len(kept) == len(expr.args) else dataclasses.replace(expr, args=tuple(kept))


def _listed(expr: InList) -> Expr | None:
    value = folded(expr) or unwrapped(expr)
    if value is not None:
        return value
    values = tuple(dict.fromkeys(expr.values))
    if len(values) == 1:
        return Call("eq", (expr.operand, values[0]), BOOLEAN, expr.span)
    return None if len(values) == len(expr.values) else dataclasses.replace(expr, values=values)


def _chosen(expr: Case) -> Expr | None:
    """Drop the branches that are never taken and all after one that always is."""
    branches: list[tuple[Expr, Expr]] = []
    default = expr.default
    for condition, result in zip(expr.conditions, expr.results, strict=True):
        if condition == TRUE:
            default = result
            break
        if not (isinstance(condition, Literal) and condition.value is not True):
            branches.append((condition, result))
    if not branches or all(r == default and isinstance(r, Literal) for _, r in branches):
        return default
    if len(branches) == len(expr.conditions):
        return None
    return Case(tuple(c for c, _ in branches), tuple(r for _, r in branches), default, expr.type)


def as_condition(predicate: Expr) -> Expr:
    """Only TRUE counts in a condition, so that a NULL part of an AND is as good as FALSE."""
    if isinstance(predicate, Literal):
        return TRUE if predicate.value is True else FALSE
    if isinstance(predicate, Call) and predicate.function in ("and", "or"):
        parts = [as_condition(a) for a in predicate.args]
        if all(a is b for a, b in zip(parts, predicate.args, strict=True)):
            return predicate
        return simplified(combine(predicate.function, parts))
    return predicate
