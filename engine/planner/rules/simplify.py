"""Rule `simplify`: expressions that say the same with less."""

from __future__ import annotations

import dataclasses

from ...plan.expr import TRUE, AggregateCall, Call, Expr
from ...plan.functions import SCALAR
from ...plan.logical import Aggregate, Filter, Join, Logical
from ...plan.node import transform_up
from ..expressions.nullness import is_never_null
from ..expressions.simplification import Known, as_condition, simplified
from ..plan_properties import never_null


def simplify(plan: Logical) -> Logical:
    """Fold constants, settle AND, OR and NOT, take factors out of ORs, and move casts from columns to constants.

        1 + 2 -> 3                                   date '1998-12-01' - interval '90' day -> timestamp '1998-09-02'
        (a and b) or (a and c) -> a and (b or c)     x = 1 or x = 2 -> x in (1, 2)
        not (x < y) -> x >= y                        cast(x as BIGINT) < 5 -> x < 5
        x is null -> false, where x is never NULL    Join(x, y, anti, null-aware) -> Join(x, y, anti), likewise

    Every other rule compares and moves expressions, and finds more when equal things look alike.  What would raise an error is left
    for run time.
    """
    return transform_up(plan, _simplify_node)


def _simplify_node(node: Logical) -> Logical | None:
    known = _known(node)
    match node:
        case Filter(input=x, predicate=predicate):
            simpler = as_condition(simplified(predicate, known))
            if simpler == TRUE:
                return x
            return node if simpler is predicate else Filter(x, simpler)
        case Join(null_aware=True):
            return _simplify_null_aware(node)
        case Join(condition=Expr() as condition):
            simpler = as_condition(simplified(condition, known))
            if simpler is condition:
                return node
            return dataclasses.replace(node, condition=None if simpler == TRUE else simpler)
        case Aggregate():
            return node.map_expressions(lambda e: _simplified_aggregate(e, known))
    return node.map_expressions(lambda e: simplified(e, known))


def _simplify_null_aware(node: Join) -> Logical:
    """A NOT IN over columns without NULLs is a plain anti join; else the join needs the equality itself."""
    assert isinstance(node.condition, Call)
    known = never_null(node.left) | never_null(node.right)
    args = tuple(simplified(a, known) for a in node.condition.args)
    if all(is_never_null(a, known) for a in args):
        return dataclasses.replace(node, null_aware=False)
    if all(a is b for a, b in zip(args, node.condition.args, strict=True)):
        return node
    return dataclasses.replace(node, condition=dataclasses.replace(node.condition, args=args))


def _known(node: Logical) -> Known:
    """Return the input's columns that are never NULL, when an expression asks."""
    if not any(_asks(expr) for expr in node.expressions):
        return frozenset()
    return frozenset().union(*(never_null(child) for child in node.children))


def _asks(expr: Expr) -> bool:
    match expr:
        case Call(function=name) if name == "coalesce" or SCALAR[name].nulls == "never":
            return True
    return bool(expr.CHILDREN) and any(map(_asks, expr.children))


def _simplified_aggregate(expr: Expr, known: Known) -> Expr:
    simpler = simplified(expr, known)
    if isinstance(simpler, AggregateCall) and simpler.filter == TRUE:
        return dataclasses.replace(simpler, filter=None)
    return simpler
