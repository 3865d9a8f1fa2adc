"""Rule `simplify`: expressions that say the same with less."""

from __future__ import annotations

import dataclasses
from collections.abc import Set as AbstractSet

from ...plan.expr import FALSE, TRUE, AggregateCall, Call, Case, Cast, Column, Expr, InList, Literal
from ...plan.logical import Aggregate, Filter, Join, Logical
from ...plan.node import transform_up, walk
from ...plan.types import BOOLEAN
from ..facts import never_null
from ..fold import folded
from ..logic import combine, negation, simplified_connective
from ..nullness import is_never_null
from ..rewrite import map_expressions
from ..unwrap import unwrapped

Known = AbstractSet[Column]

MAX_STEPS = 8  # rewritings of one node in a row; each makes it smaller or moves it toward one form
ASKS_FOR_NULLS = frozenset(("is_null", "is_not_null", "coalesce", "is_distinct", "is_not_distinct"))


def simplify(plan: Logical) -> Logical | None:
    """Fold constants, settle AND, OR and NOT, take factors out of ORs, and move casts from columns to constants.

        1 + 2 -> 3                                   date '1998-12-01' - interval '90' day -> timestamp '1998-09-02'
        (a and b) or (a and c) -> a and (b or c)     x = 1 or x = 2 -> x in (1, 2)
        not (x < y) -> x >= y                        cast(x as BIGINT) < 5 -> x < 5
        x is null -> false, where x is never NULL

    Every other rule compares and moves expressions, and finds more when equal things look alike.  What would raise an error is left
    for run time.
    """
    result = transform_up(plan, _simplify_node)
    return None if result is plan else result


def _simplify_node(node: Logical) -> Logical | None:
    known = _known(node)
    match node:
        case Filter(input=x, predicate=predicate):
            simpler = _as_condition(simplified(predicate, known))
            if simpler == TRUE:
                return x
            return node if simpler is predicate else Filter(x, simpler)
        case Join(condition=Call(function="eq", args=(a, b)) as condition, null_aware=True):
            # The join needs the equality itself: it asks which side is NULL.
            args = (simplified(a, known), simplified(b, known))
            if args[0] is a and args[1] is b:
                return node
            return dataclasses.replace(node, condition=dataclasses.replace(condition, args=args))
        case Join(condition=Expr() as condition):
            simpler = _as_condition(simplified(condition, known))
            if simpler is condition:
                return node
            return dataclasses.replace(node, condition=None if simpler == TRUE else simpler)
        case Aggregate():
            return map_expressions(node, lambda e: _simplified_aggregate(e, known))
    return map_expressions(node, lambda e: simplified(e, known))


def _known(node: Logical) -> Known:
    """Return the input's columns that are never NULL, when an expression asks."""
    asks = any(
        isinstance(e, Call) and e.function in ASKS_FOR_NULLS
        for expr in node.expressions
        for e in walk(expr)
    )
    if not asks:
        return frozenset()
    return frozenset().union(*(never_null(child) for child in node.children))


def _simplified_aggregate(expr: Expr, known: Known) -> Expr:
    simpler = simplified(expr, known)
    if isinstance(simpler, AggregateCall) and simpler.filter == TRUE:
        return dataclasses.replace(simpler, filter=None)
    return simpler


def simplified(expr: Expr, known: Known = frozenset()) -> Expr:
    """Return the simplest form of an expression; `known` are columns that are never NULL."""
    return transform_up(expr, lambda e: _settled(e, known))


def _settled(expr: Expr, known: Known) -> Expr | None:
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


def _as_condition(predicate: Expr) -> Expr:
    """Only TRUE counts in a condition, so that a NULL part of an AND is as good as FALSE."""
    if isinstance(predicate, Literal):
        return TRUE if predicate.value is True else FALSE
    if isinstance(predicate, Call) and predicate.function in ("and", "or"):
        parts = [_as_condition(a) for a in predicate.args]
        if all(a is b for a, b in zip(parts, predicate.args, strict=True)):
            return predicate
        return simplified(combine(predicate.function, parts))
    return predicate


