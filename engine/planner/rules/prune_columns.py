"""Rule `prune_columns`: nothing is read or computed that nobody asks for."""

from __future__ import annotations

import dataclasses

from ...plan import logical as rel
from ...plan.expr import Column, ColumnRef, columns_of
from ...plan.join_kinds import JoinKind
from ...plan.window.window_call import Window
from ..expressions.simplification import equalities
from ..plan_properties import exactly_one_row, unique_keys
from ..rewrite import narrow

Needed = frozenset[Column]

ONE_ROW = rel.Values((), ((),))


def prune_columns(plan: rel.Logical) -> rel.Logical:
    """Keep of scans, projections, aggregations and unions the columns that are read above, and drop joins nobody reads.

        Project(a, Scan(a, b))                    -> Project(a, Scan(a))
        Project(x.a, Join(x, y, left, k)), k unique in y   -> Project(x.a, x)
        Project(x.a, Join(x, y, mark m, p))       -> Project(x.a, x)

    Column storage pays for each column that is touched.
    """
    return narrow(_prune(plan, frozenset(plan.columns)), plan.columns)


def _prune(node: rel.Logical, needed: Needed) -> rel.Logical:
    """Return `node` with at least its columns in `needed`."""
    match node:
        case rel.Scan() | rel.CommonScan():
            return _prune_scan(node, needed)
        case rel.Values(made=made, rows=rows):
            places = [i for i, c in enumerate(made) if c in needed]
            if len(places) == len(made):
                return node
            return rel.Values(
                tuple(made[i] for i in places), tuple(tuple(r[i] for i in places) for r in rows)
            )
        case rel.Filter(input=x, predicate=predicate):
            return node.with_children([_prune(x, needed | columns_of(predicate))])
        case rel.Project(input=x, items=items):
            kept_items = tuple(item for item in items if item[0] in needed)
            below = _prune(x, frozenset().union(*(columns_of(e) for _, e in kept_items)))
            if not kept_items:
                return below
            if len(kept_items) == len(items):
                return node.with_children([below])
            return rel.Project(below, kept_items)
        case rel.Sort(input=x, keys=keys):
            return node.with_children([_prune(x, needed.union(*(columns_of(k) for k in keys)))])
        case rel.Limit(input=x, per=per):
            return node.with_children([_prune(x, needed.union(*map(columns_of, per)))])
        case rel.Distinct(input=x, on=on):
            read = frozenset(x.columns) if on is None else needed.union(*map(columns_of, on))
            return node.with_children([_prune(x, read)])
        case Window() | rel.Unnest():
            return _prune_beside(node, needed)
        case rel.Aggregate():
            return _prune_aggregate(node, needed)
        case rel.Join():
            return _prune_join(node, needed)
        case rel.SetOperation():
            return _prune_set_operation(node, needed)
    return node


def _prune_scan(node: rel.Scan | rel.CommonScan, needed: Needed) -> rel.Logical:
    places = [i for i, c in enumerate(node.made) if c in needed]
    if len(places) == len(node.made):
        return node
    made = tuple(node.made[i] for i in places)
    return node.replaced(made=made, sources=tuple(node.sources[i] for i in places))


def _prune_beside(node: Window | rel.Unnest, needed: Needed) -> rel.Logical:
    """Windows that nobody reads fall away; lists stay, since they say how many rows there are."""
    if isinstance(node, rel.Unnest):
        read = needed.union(*map(columns_of, node.expressions)) & frozenset(node.input.columns)
        return node.with_children([_prune(node.input, read)])
    calls = tuple((c, call) for c, call in node.calls if c in needed)
    if not calls:
        return _prune(node.input, needed)
    kept = node if len(calls) == len(node.calls) else dataclasses.replace(node, calls=calls)
    read = needed.union(*map(columns_of, kept.expressions)) & frozenset(node.input.columns)
    return kept.with_children([_prune(node.input, read)])


def _prune_aggregate(node: rel.Aggregate, needed: Needed) -> rel.Logical:
    calls = tuple((c, a) for c, a in node.aggregates if c in needed)
    if not node.keys and not calls and node.grouping_sets is None:
        return ONE_ROW
    read = frozenset().union(*(columns_of(e) for _, e in (*node.keys, *calls)))
    below = _prune(node.input, read)
    if len(calls) == len(node.aggregates):
        return node.with_children([below])
    return dataclasses.replace(node, input=below, aggregates=calls)


def _prune_join(node: rel.Join, needed: Needed) -> rel.Logical:
    left, right = frozenset(node.left.columns), frozenset(node.right.columns)
    if node.mark is not None and node.mark not in needed:
        return _prune(node.left, needed)
    if node.kind is not JoinKind.MARK and not needed & right and _adds_no_row(node):
        return _prune(node.left, needed)
    if (
        node.kind is JoinKind.INNER
        and node.condition is None
        and not needed & left
        and exactly_one_row(node.left)
    ):
        return _prune(node.right, needed)
    read = needed | (frozenset() if node.condition is None else columns_of(node.condition))
    return node.with_children([_prune(node.left, read & left), _prune(node.right, read & right)])


def _adds_no_row(node: rel.Join) -> bool:
    """Whether each left row comes out exactly once, whatever is on the right."""
    if node.kind is JoinKind.INNER:
        return node.condition is None and exactly_one_row(node.right)
    if node.kind not in (JoinKind.LEFT, JoinKind.SINGLE):
        return False
    pairs, _ = equalities(
        node.condition, frozenset(node.left.columns), frozenset(node.right.columns)
    )
    read = {b.column for _, b in pairs if isinstance(b, ColumnRef)}
    return any(key <= read for key in unique_keys(node.right))


def _prune_set_operation(node: rel.SetOperation, needed: Needed) -> rel.Logical:
    """Only UNION ALL can do without a column: the others compare whole rows."""
    places = range(len(node.made))
    if node.kind == "union" and node.all:
        places = [i for i in places if node.made[i] in needed]  # type: ignore[assignment]
    sides = []
    for side in (node.left, node.right):
        wanted = tuple(side.columns[i] for i in places)
        sides.append(narrow(_prune(side, frozenset(wanted)), wanted))
    if len(places) == len(node.made):
        return node.with_children(sides)
    return dataclasses.replace(
        node, left=sides[0], right=sides[1], made=tuple(node.made[i] for i in places)
    )
