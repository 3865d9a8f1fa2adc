"""Rule `decorrelate`: no expression holds a query and no join depends on its left side any more."""

from __future__ import annotations

import dataclasses

from ...plan import logical as rel
from ...plan.copies import fresh
from ...plan.expr import TRUE, Call, ColumnRef, Expr, Literal, conjunction, conjuncts, new_column
from ...plan.join_kinds import JoinKind
from ...plan.node import walk
from ...plan.window.window_call import Window
from ...records import dataclass
from ..check import made_by
from ..rewrite import narrow, pass_on, swapped
from ..subqueries.subquery_joins import Attachment, filter_by, unnested
from .simplify import simplify


def decorrelate(plan: rel.Logical) -> rel.Logical:
    """Turn subqueries into joins, from the innermost outward.

        Filter(exists(q), x)                      -> Join(x, q, semi);  not exists: anti
        Filter(a in (q), x)                       -> Join(x, q, semi, a = q.1);  not in: anti, null-aware
        Project(exists(q), x)                     -> Project(m, Join(x, q, mark m));  so too under OR and CASE
        Project((q), x)                           -> Project(q.1, Join(x, q, single))
        Filter(a < all (q), x)                    -> Filter over min and max of q and its counts
        Join(x, Filter(x.a = y.a, y), kind)       -> Join(x, y, kind, x.a = y.a)
        Join(x, Aggregate(sum, Filter(x.a = y.a, y)), single) -> Join(x, Aggregate(y.a, sum, y), left, x.a = y.a)

    A subquery runs once for all rows instead of once for each.  COUNT over no rows stays 0.  Neumann and Kemper, "Unnesting Arbitrary
    Queries" (BTW 2015); the cases are in `planner/subqueries/unnest.py` and `planner/subqueries/flatten.py`.
    """
    if not any(_is_nested(node) for node in walk(plan)):
        return plan
    placed = {c.id for node in walk(plan) for c in made_by(node)}
    return _Decorrelation(placed).visit(plan)


def _is_nested(node: rel.Logical) -> bool:
    if isinstance(node, rel.Join) and not rel.free_columns(node.right).isdisjoint(
        node.left.columns
    ):
        return True
    return bool(node.subqueries)


@dataclass
class _Decorrelation:
    """One pass; `placed` are the ids that the tree makes, since a subquery that stands at two places needs two sets of them."""

    placed: set[int]

    def visit(self, node: rel.Logical) -> rel.Logical:
        node = node.with_children([self.visit(c) for c in node.children])
        if isinstance(node, rel.Join):
            if node.condition is not None and node.condition.subqueries:
                return self._join_condition(node)
            return _beside_lists(node) or unnested(node)
        if not node.subqueries:
            return node
        match node:
            case rel.Filter(input=x, predicate=predicate):
                return filter_by(x, predicate, self.take)
            case rel.Project(input=x) | rel.Aggregate(input=x):
                return self._attached(node, x)
            case rel.Sort(input=x) | rel.Distinct(input=x) | Window(input=x) | rel.Unnest(input=x):
                return narrow(self._attached(node, x), node.columns)
            case rel.Values():
                return self.visit(_as_union(node))
        raise TypeError(f"{type(node).__name__} holds no subquery")

    def take(self, plan: rel.Logical) -> rel.Logical:
        """Return the plan of a subquery, decorrelated and with ids of its own."""
        made = {c.id for node in walk(plan) for c in made_by(node)}
        if not made.isdisjoint(self.placed):
            plan, _ = fresh(plan)
            made = {c.id for node in walk(plan) for c in made_by(node)}
        self.placed |= made
        return self.visit(simplify(plan))

    def _attached(self, node: rel.Logical, below: rel.Logical) -> rel.Logical:
        attachment = Attachment(below, self.take)
        rewritten = node.map_expressions(attachment.without_subqueries)
        return rewritten.with_children([attachment.plan])

    def _join_condition(self, node: rel.Join) -> rel.Logical:
        """A subquery in ON belongs to the side that it reads, or else makes the right side depend on the left."""
        parts = list(conjuncts(node.condition))
        if node.kind is JoinKind.INNER:
            return self.visit_filter(rel.Join(node.left, node.right, JoinKind.INNER), parts)
        if node.kind is JoinKind.RIGHT:
            return self.visit(swapped(node))
        if node.kind is JoinKind.FULL:
            return self.visit(_full_as_union(node))
        nested = [p for p in parts if p.subqueries]
        plain = [p for p in parts if not p.subqueries]
        right = rel.Filter(node.right, conjunction(nested))
        condition = conjunction(plain) if plain else None
        return unnested(dataclasses.replace(node, right=self.visit(right), condition=condition))

    def visit_filter(self, plan: rel.Logical, parts: list[Expr]) -> rel.Logical:
        return filter_by(plan, conjunction(parts), self.take)


def _beside_lists(node: rel.Join) -> rel.Logical | None:
    """Join(x, Unnest(l, one row), inner or left) -> Unnest(l, x), also below a Project of fields of the elements."""
    right = node.right
    if isinstance(right, rel.Project) and all(_is_field(e) for _, e in right.items):
        below = _beside_lists(dataclasses.replace(node, right=right.input, condition=None))
        if below is None or node.condition not in (None, TRUE):
            return None
        return rel.Project(below, (*pass_on(node.left.columns), *right.items))
    if not isinstance(right, rel.Unnest) or right.input != rel.Values((), ((),)):
        return None
    plan = dataclasses.replace(right, input=node.left, outer=node.kind is JoinKind.LEFT)
    if node.kind is JoinKind.INNER:
        return plan if node.condition is None else rel.Filter(plan, node.condition)
    alone = node.kind is JoinKind.LEFT and node.condition in (None, TRUE)
    return plan if alone else None


def _is_field(expr: Expr) -> bool:
    """Whether an expression is a field of a struct, which is NULL where that is."""
    return (
        isinstance(expr, Call)
        and expr.function == "struct_field"
        and isinstance(expr.args[0], ColumnRef)
    )


def _as_union(node: rel.Values) -> rel.Logical:
    """Return VALUES with subqueries as projections of single rows."""
    unit = rel.Values((), ((),))
    plan: rel.Logical | None = None
    for i, row in enumerate(node.rows):
        last = i == len(node.rows) - 1
        made = tuple(new_column(c.name, c.type) for c in node.made)
        items: tuple[rel.Item, ...] = tuple(zip(made, row, strict=True))
        if plan is None:
            if last:
                return rel.Project(unit, tuple(zip(node.made, row, strict=True)))
            plan = rel.Project(unit, items)
            continue
        columns = node.made if last else tuple(new_column(c.name, c.type) for c in node.made)
        plan = rel.SetOperation(plan, rel.Project(unit, items), "union", True, columns)
    assert plan is not None
    return plan


def _full_as_union(node: rel.Join) -> rel.Logical:
    """Return a full join as its left join, and the right rows without a match beside NULLs."""
    first, second = fresh(node), fresh(node)
    left_join, alone = first[0], second[0]
    assert isinstance(left_join, rel.Join)
    assert isinstance(alone, rel.Join)
    matched = dataclasses.replace(left_join, kind=JoinKind.LEFT)
    rest = rel.Join(alone.right, alone.left, JoinKind.ANTI, alone.condition)
    items = tuple(
        (new_column(c.name, c.type), Literal(None, c.type))
        if c in node.left.columns
        else (new_column(c.name, c.type), ColumnRef(second[1][c]))
        for c in node.columns
    )
    return rel.SetOperation(matched, rel.Project(rest, items), "union", True, node.columns)
