"""Rule `eliminate`: nodes that change nothing, or whose input is known to be empty."""

from __future__ import annotations

import dataclasses

from ...plan import logical as rel
from ...plan.expr import FALSE, Column, ColumnRef, Expr, Literal
from ...plan.functions import AGGREGATE
from ...plan.join_kinds import JoinKind
from ...plan.node import transform_up
from ...plan.window.window_call import Window
from ..plan_properties import at_most_one_row, unique_keys
from ..rewrite import pass_on


def eliminate(plan: rel.Logical) -> rel.Logical:
    """Drop what has no effect, and everything above an input without rows.

        Filter(false, x)                      -> Values()
        Join(x, Values(), inner)              -> Values();  left: x with NULLs;  anti: x
        Join(x, y, mark, false)               -> x with a mark that is false;  others as without rows
        Distinct(x), x unique                 -> x
        Join(x, Distinct(y), semi, p)         -> Join(x, y, semi, p)
        Aggregate(Sort(x)), Join(Sort(x), y)  -> without the Sort
        Sort(constant, x)                     -> x
        Join(x, Values(one row, no columns))  -> x
        Limit(1, x), x at most one row        -> x
        Union all of rows of constants        -> Values(the rows)

    Decorrelation and views leave such nodes behind.  Generated texts have small tables as UNION ALL of `select 1, 'a'`: each branch of
    10,000 was planned and run by itself, which took twice as long.
    """
    return transform_up(plan, _eliminate)


def _eliminate(node: rel.Logical) -> rel.Logical | None:
    if _makes_nothing(node):
        return _no_rows(node.columns)
    match node:
        case rel.Distinct(input=x, on=None) if any(key <= set(x.columns) for key in unique_keys(x)):
            return x
        case rel.Limit(input=x, count=count, offset=0) if (
            count is None or count > 0
        ) and at_most_one_row(x):
            return x
        case rel.Limit(input=x, count=None, offset=0):
            return x
        case rel.Sort(input=x) if at_most_one_row(x):
            return x
        case rel.Sort(input=x, keys=keys):
            kept = tuple(k for k in keys if not _is_constant(k.expr, x))
            if len(kept) < len(keys):
                return dataclasses.replace(node, keys=kept) if kept else x
            return _with_input(node, _unordered(x))
        case rel.Aggregate(input=x, aggregates=calls) if not any(
            AGGREGATE[a.function].ordered for _, a in calls
        ):
            return _with_input(node, _unordered(x))
        case rel.Join():
            return _eliminate_join(node)
        case rel.SetOperation():
            return _eliminate_set_operation(node)
    return None


def _is_constant(expr: Expr, below: rel.Logical) -> bool:
    if isinstance(expr, ColumnRef) and isinstance(below, rel.Project):
        return isinstance(dict(below.items)[expr.column], Literal)
    return isinstance(expr, Literal)


def _with_input(node: rel.Logical, child: rel.Logical) -> rel.Logical | None:
    return None if child is node.children[0] else node.with_children((child,))


def _is_empty(node: rel.Logical) -> bool:
    return isinstance(node, rel.Values) and not node.rows


def _no_rows(columns: tuple[Column, ...]) -> rel.Values:
    return rel.Values(columns, ())


def _makes_nothing(node: rel.Logical) -> bool:
    match node:
        case rel.Values():
            return False
        case rel.Filter(predicate=predicate) if predicate == FALSE:
            return True
        case rel.Limit(count=0):
            return True
        case rel.Aggregate(input=x, keys=keys, grouping_sets=sets):
            return bool(keys) and sets is None and _is_empty(x)
        case (
            rel.Filter()
            | rel.Project()
            | rel.Sort()
            | rel.Distinct()
            | rel.Limit()
            | Window()
            | rel.Unnest()
        ):
            return _is_empty(node.children[0])
        case rel.Join(left=left, right=right, kind=kind):
            if kind is JoinKind.FULL:
                return _is_empty(left) and _is_empty(right)
            if kind in (JoinKind.INNER, JoinKind.SEMI) and (
                _is_empty(right) or node.condition == FALSE
            ):
                return True
            return _is_empty(right) if kind is JoinKind.RIGHT else _is_empty(left)
    return False


def _unordered(node: rel.Logical) -> rel.Logical:
    """Return `node` without the sorts whose order only passes through it."""
    match node:
        case rel.Sort(input=x):
            return _unordered(x)
        case rel.Project(input=x) | rel.Filter(input=x):
            return node.with_children([_unordered(x)])
    return node


def _any_number(node: rel.Logical) -> rel.Logical:
    """Return `node` for a reader who asks only whether a row is there."""
    while isinstance(node, rel.Sort) or (isinstance(node, rel.Distinct) and node.on is None):
        node = node.input
    return _unordered(node)


def _eliminate_join(node: rel.Join) -> rel.Logical | None:
    left, right = node.left, node.right
    matchless = _is_empty(right) or node.condition == FALSE
    if matchless and node.kind in (JoinKind.LEFT, JoinKind.SINGLE, JoinKind.ANTI, JoinKind.MARK):
        return _without_matches(node)
    if node.kind is JoinKind.INNER and node.condition is None:
        if _is_unit(right):
            return left
        if _is_unit(left):
            return right
    if node.kind.is_membership:
        sides = [_unordered(left), _any_number(right)]
    else:
        sides = [_unordered(left), _unordered(right)]
    new = node.with_children(sides)
    return None if new is node else new


def _is_unit(node: rel.Logical) -> bool:
    return isinstance(node, rel.Values) and not node.made and len(node.rows) == 1


def _without_matches(node: rel.Join) -> rel.Logical:
    passed = pass_on(node.left.columns)
    match node.kind:
        case JoinKind.ANTI:
            return node.left
        case JoinKind.MARK:
            assert node.mark is not None
            return rel.Project(node.left, (*passed, (node.mark, FALSE)))
    nulls: tuple[rel.Item, ...] = tuple((c, Literal(None, c.type)) for c in node.right.columns)
    return rel.Project(node.left, (*passed, *nulls))


def _eliminate_set_operation(node: rel.SetOperation) -> rel.Logical | None:
    left, right = node.left, node.right
    if node.kind == "union":
        if _is_empty(left) or _is_empty(right):
            return _alone(node, right if _is_empty(left) else left)
        first, more = map(_constant_rows, (left, right))
        return rel.Values(node.made, first + more) if node.all and first and more else None
    if _is_empty(left) or (node.kind == "intersect" and _is_empty(right)):
        return _no_rows(node.made)
    if _is_empty(right):
        return _alone(node, left)
    return None


def _constant_rows(node: rel.Logical) -> tuple[tuple[Expr, ...], ...]:
    """Return the rows of a side that is made of constants, none of another."""
    rows: tuple[tuple[Expr, ...], ...] = ()
    if isinstance(node, rel.Values):
        rows = node.rows
    elif isinstance(node, rel.Project) and _is_unit(node.input):
        rows = (tuple(e for _, e in node.items),)
    return rows if all(isinstance(e, Literal) for row in rows for e in row) else ()


def _alone(node: rel.SetOperation, side: rel.Logical) -> rel.Logical:
    items = tuple((c, ColumnRef(s)) for c, s in zip(node.made, side.columns, strict=True))
    renamed = rel.Project(side, items)
    return renamed if node.all else rel.Distinct(renamed)
