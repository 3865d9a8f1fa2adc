"""Rule `prefer_semi_joins`: where rows may as well come once, a join does not repeat those of a side whose columns alone are read."""

from __future__ import annotations

import dataclasses

from ...plan.expr import Column, ColumnRef, Expr, columns_of
from ...plan.join_kinds import JoinKind
from ...plan.logical import Aggregate, Distinct, Filter, Join, Logical, Project, SetOperation
from ...plan.node import transform_up, walk_once
from ..estimates.estimate import Estimates, expected
from ..expressions.simplification import equalities
from ..plan_properties import unique_keys

Columns = frozenset[Column]


def prefer_semi_joins(plan: Logical) -> Logical:
    """Ask only whether there is a match, where it does not matter how many there are.

        Distinct(Project(x.a, Join(x, y, p)))              -> Distinct(Project(x.a, Join(x, y, semi, p)))
        SetOperation(intersect, Project(x.a, Join(x, y)))  -> SetOperation(intersect, Project(x.a, Join(x, y, semi)))
        Join(z, Join(x, y, p), semi, z.b = x.a)            -> Join(z, Join(x, y, semi, p), semi, z.b = x.a)

    A join by a key of y finds one row at most, and stays as it is.  TPC-DS at SF1 on two busy cores, made for Q14's intersections of what
    is sold (420 -> 347 ms): Q95, which nobody looked at for this, takes 131 and 12 ms, Q37 and Q82 a tenth less; no other plan changes.
    Without its row in `RULES` it is off.
    """
    estimates = Estimates()
    return transform_up(plan, lambda node: _visit(node, estimates))


def _visit(node: Logical, estimates: Estimates) -> Logical | None:
    made = node
    match node:
        case Distinct(input=x, on=None):
            made = node.with_children([_once(x, x.columns, estimates)])
        case Aggregate(input=x, aggregates=calls) if all(call.distinct for _, call in calls):
            read = _columns_read(*(e for _, e in node.keys), *(call for _, call in calls))
            made = node.with_children([_once(x, read, estimates)])
        case SetOperation(all=False):
            made = node.with_children([_once(x, x.columns, estimates) for x in node.children])
        case Join(left=x, right=y, condition=condition) if node.kind.is_membership:
            read = _columns_read(condition) & frozenset(y.columns)
            made = node.with_children([x, _once(y, read, estimates)])
    return None if made is node else made


def _once(node: Logical, wanted: Columns | tuple[Column, ...], estimates: Estimates) -> Logical:
    """Return a plan with the same rows of the columns that are wanted, some of them less often; of the other columns some may be gone."""
    wanted = frozenset(wanted)
    match node:
        case Project(input=x, items=items):
            read = _columns_read(*(expr for column, expr in items if column in wanted))
            kept = tuple(item for item in items if item[0] in wanted)
            below = _once(x, read, estimates)
            return node if below is x else Project(below, kept)
        case Filter(input=x, predicate=predicate):
            below = _once(x, wanted | _columns_read(predicate), estimates)
            return node if below is x else Filter(below, predicate)
        case Join(kind=JoinKind.INNER):
            return _joined_once(node, wanted, estimates)
        case Join(left=x) if node.kind.is_filter:
            read = wanted | _columns_read(node.condition) & frozenset(x.columns)
            below = _once(x, read, estimates)
            return node if below is x else dataclasses.replace(node, left=below)
    return node


def _joined_once(node: Join, wanted: Columns, estimates: Estimates) -> Logical:
    tested = _columns_read(node.condition)
    sides = [
        _once(side, (wanted | tested) & frozenset(side.columns), estimates)
        for side in (node.left, node.right)
    ]
    ways = ((node.left, node.right, sides), (node.right, node.left, sides[::-1]))
    for kept, dropped, made in ways:
        if wanted.isdisjoint(dropped.columns) and _repeats(node, kept, dropped, estimates):
            return Join(made[0], made[1], JoinKind.SEMI, node.condition)
    same = sides[0] is node.left and sides[1] is node.right
    return node if same else node.with_children(sides)


def _repeats(node: Join, kept: Logical, dropped: Logical, estimates: Estimates) -> bool:
    """Whether a row of one side is expected to find several of the other by equal keys."""
    pairs, _ = equalities(node.condition, frozenset(kept.columns), frozenset(dropped.columns))
    keys = [key for _, key in pairs]
    equal = {key.column for key in keys if isinstance(key, ColumnRef)}
    if not keys or any(unique <= equal for unique in unique_keys(dropped)):
        return False
    if any(isinstance(part, SetOperation) and part.all for part in walk_once(dropped)):
        return False  # its sources are joined and grouped one by one
    known = estimates.relation(dropped)
    return not any(expected(key, known).unique for key in keys)


def _columns_read(*exprs: Expr | None) -> Columns:
    return frozenset().union(*(columns_of(e) for e in exprs if e is not None))
