"""Rule `merge_projects`: projections meet, and those that only rename columns move out of the way."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable

from ...plan.expr import AggregateCall, Column, ColumnRef, Expr, Literal
from ...plan.logical import Aggregate, Item, Join, Logical, Project, Sort
from ...plan.node import transform_up, walk
from ..rewrite import pass_on, replace_columns


def merge_projects(plan: Logical) -> Logical:
    """Merge a projection into the projection or aggregation above it, and lift renamings above joins and sorts.

        Project(e, Project(f, x))         -> Project(e[f], x)
        Aggregate(k, a, Project(f, x))    -> Aggregate(k[f], a[f], x)
        Join(Project(renaming, x), y, p)  -> Project(renaming, Join(x, y, p[renaming]))
        Sort(k, Project(renaming, x))     -> Project(renaming, Sort(k[renaming], x))
        Project(x.columns, x)             -> x

    A projection between two joins hides their relations from each other.  An expression that is read twice stays where it is computed
    once.
    """
    return transform_up(plan, _merge)


def _merge(node: Logical) -> Logical | None:
    match node:
        case Project(input=x, items=items) if _is_identity(items, x.columns):
            return x
        case Project(input=Project() as below) if _worth_merging(node, below):
            merged = _inlined(node, below)
            return _merge(merged) or merged
        case Aggregate(input=Project() as below) if _worth_merging(node, below):
            merged = _inlined(node, below)
            return _merge(merged) or merged
        case Sort(input=Project() as below) if _is_renaming(below.items):
            return dataclasses.replace(below, input=_inlined(node, below))
        case Join():
            return _lifted(node)
    return None


def _is_identity(items: tuple[Item, ...], columns: tuple[Column, ...]) -> bool:
    return len(items) == len(columns) and all(
        c == below and isinstance(e, ColumnRef) and e.column == below
        for (c, e), below in zip(items, columns, strict=True)
    )


def _is_renaming(items: tuple[Item, ...]) -> bool:
    return all(isinstance(e, ColumnRef) for _, e in items)


def _inlined(node: Logical, below: Project) -> Logical:
    """Return `node` over the projection's input, reading expressions instead of the projection's columns."""
    replacement = dict(below.items)
    inlined = node.map_expressions(lambda e: replace_columns(e, replacement))
    return inlined.with_children([below.input])


def _worth_merging(node: Logical, below: Project) -> bool:
    """Whether no computed item would be computed a second time.

    An aggregation computes equal arguments once, so that bare references to one item count as one.
    """
    computed = {c for c, e in below.items if not isinstance(e, ColumnRef | Literal)}
    if not computed:
        return True
    reads = Counter(_reads(node.expressions, computed))
    return all(count <= 1 for count in reads.values())


def _reads(expressions: Iterable[Expr], computed: set[Column]) -> Iterable[Column]:
    bare: set[Column] = set()
    for expr in expressions:
        arguments = expr.children if isinstance(expr, AggregateCall) else (expr,)
        for argument in arguments:
            if isinstance(expr, AggregateCall) and isinstance(argument, ColumnRef):
                bare.add(argument.column)
                continue
            for e in walk(argument):
                if isinstance(e, ColumnRef) and e.column in computed:
                    yield e.column
    yield from bare & computed


def _lifted(join: Join) -> Logical | None:
    """Move renamings below a join above it; the right side of a semi, anti or mark join just loses them."""
    sides = [join.left, join.right]
    replacement: dict[Column, Expr] = {}
    for i, side in enumerate(sides):
        if isinstance(side, Project) and _is_renaming(side.items):
            sides[i] = side.input
            replacement.update(side.items)
    if not replacement:
        return None
    condition = None if join.condition is None else replace_columns(join.condition, replacement)
    below = dataclasses.replace(join, left=sides[0], right=sides[1], condition=condition)
    items = tuple((c, replacement.get(c) or e) for c, e in pass_on(join.columns))
    return below if _is_identity(items, below.columns) else Project(below, items)
