"""Rule `reorder_joins`: the order of inner, semi and anti joins that makes the fewest rows."""

from __future__ import annotations

from collections.abc import Iterable

from ...plan.expr import Call, Expr, conjunction, conjuncts
from ...plan.join_kinds import JoinKind
from ...plan.logical import Filter, Join, Logical
from ...plan.types import BOOLEAN
from ..estimates.estimate import Estimates
from ..join_order import (
    EqualExpr,
    JoinGraph,
    Step,
    best_order,
    build_graph,
    equal_expressions,
)
from ..rewrite import narrow


def reorder_joins(plan: Logical) -> Logical:
    """Order each group of joins by estimated cost.

        Join(Join(x, y, p), z, q)             -> Join(x, Join(z, y, ...), ...)      whatever is cheapest
        Join(Join(x, y, inner, p), z, semi, q) -> Join(Join(x, z, semi, q), y, inner, p)   q reads x alone

    Equalities are transitive: x.a = y.a and y.a = z.a also let x join z.  Rows that a join makes and the next one drops are the greatest
    cost a plan can have.
    """
    estimates = Estimates()
    return _visit(plan, estimates)


def _visit(node: Logical, estimates: Estimates) -> Logical:
    if not _is_grouped(node):
        return node.with_children([_visit(c, estimates) for c in node.children])
    relations: list[Logical] = []
    parts: list[Expr] = []
    reducers: list[Join] = []
    _gather(node, relations, parts, reducers)
    relations = [_visit(r, estimates) for r in relations]
    reducers = [
        Join(j.left, _visit(j.right, estimates), j.kind, j.condition, j.null_aware)
        for j in reducers
    ]
    relations = _with_own_equalities(relations, parts)
    graph = build_graph(relations, parts, reducers, estimates)
    return narrow(_rebuilt(graph, best_order(graph)), node.columns)


def _is_grouped(node: Logical) -> bool:
    if isinstance(node, Filter):
        return _is_grouped(node.input)
    return isinstance(node, Join) and (node.kind is JoinKind.INNER or node.kind.is_filter)


def _gather(
    node: Logical, relations: list[Logical], parts: list[Expr], reducers: list[Join]
) -> None:
    """Collect a group of joins; predicates of one relation are already on it."""
    match node:
        case Filter(input=x, predicate=predicate) if _is_grouped(x):
            parts.extend(conjuncts(predicate))
            _gather(x, relations, parts, reducers)
        case Join(kind=JoinKind.INNER, left=left, right=right, condition=condition):
            parts.extend(conjuncts(condition))
            _gather(left, relations, parts, reducers)
            _gather(right, relations, parts, reducers)
        case Join(kind=JoinKind.SEMI | JoinKind.ANTI):
            reducers.append(node)
            _gather(node.left, relations, parts, reducers)
        case _:
            relations.append(node)


def _with_own_equalities(relations: list[Logical], parts: list[Expr]) -> list[Logical]:
    """Filter a relation by the equalities of its columns that follow from joins with others.

    `build_graph` joins two sets by one equality for each class of equal expressions, so that equalities within one relation have to hold
    in it already.
    """
    found = list(relations)
    for members in equal_expressions(relations, parts)[0]:
        for unit in set(members.values()):
            own = [expr for expr, made_by in members.items() if made_by == unit]
            tests: list[Expr] = [Call("eq", (own[0], other), BOOLEAN) for other in own[1:]]
            if tests:
                found[unit] = Filter(found[unit], conjunction(tests))
    return found


def _rebuilt(graph: JoinGraph, step: Step) -> Logical:
    if step.reducer is not None:
        assert step.left is not None
        reducer = graph.reducers[step.reducer]
        left = _rebuilt(graph, step.left)
        return Join(left, reducer.right, reducer.kind, reducer.condition, reducer.null_aware)
    if step.left is None or step.right is None:
        relation = graph.relations[step.units.bit_length() - 1]
        alone = [r.expr for r in graph.residuals if r.units == step.units or not r.units]
        return Filter(relation, conjunction(alone)) if alone else relation
    left, right = _rebuilt(graph, step.left), _rebuilt(graph, step.right)
    parts = [_equality(pair) for pair in graph.crossing(step.left.units, step.right.units)]
    parts += [r.expr for r in graph.completed(step.left.units, step.right.units)]
    return Join(left, right, JoinKind.INNER, conjunction(parts) if parts else None)


def _equality(pair: Iterable[EqualExpr]) -> Expr:
    return Call("eq", tuple(m.expr for m in pair), BOOLEAN)
