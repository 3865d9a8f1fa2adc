"""Rule `reduce_aggregates`: groups that a join will drop are not made."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ...plan.copies import fresh
from ...plan.expr import Call, Column, ColumnRef, Expr, conjuncts
from ...plan.join_kinds import JoinKind
from ...plan.logical import Aggregate, Filter, Join, Logical, Project, Scan, Sort
from ...plan.node import transform_up, walk
from ...plan.types import BOOLEAN
from ...records import dataclass
from ..estimates.estimate import Estimates
from ..expressions.simplification import as_equality
from .reorder_joins import reorder_joins

MAX_SHARE = 0.3  # of the groups that remain, for the semi join to be worth its probe of every row
MIN_RATIO = 8.0  # rows to aggregate for each row that the semi join hashes

Source = tuple[Logical, Column]


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column of the aggregating side that a join compares, by the function `test`, with one of the other side."""

    test: str
    column: Column
    other: Source


def reduce_aggregates(plan: Logical) -> Logical:
    """Filter the input of an aggregation by the keys that the other side of a join above it has.

        Join(x, Aggregate(k, a, y), x.k = k)  ->  Join(x, Aggregate(k, a, Join(y, x', semi, y.k = x'.k)), x.k = k)

    x' is the smallest part of x that decides which keys there are.  A correlated aggregate becomes a GROUP BY of the whole inner
    table (TPC-H Q2, Q17, Q20), of which the query may need a few groups; this is sideways information passing, as in magic sets
    (Bancilhon et al., 1986).
    """
    estimates = Estimates()
    return transform_up(plan, lambda node: _reduce(node, estimates))


def _reduce(node: Logical, estimates: Estimates) -> Logical | None:
    if not isinstance(node, Join) or node.kind not in (
        JoinKind.INNER,
        JoinKind.LEFT,
        JoinKind.SEMI,
    ):
        return None
    left, right = node.left, node.right
    equal = list(_equal_columns(node))
    keys = [ComparedColumn(test, b, (left, a)) for test, a, b in equal]
    new_right = _reduced(right, keys, estimates)
    if new_right is not None:
        return dataclasses.replace(node, right=new_right)
    if node.kind is JoinKind.INNER:
        keys = [ComparedColumn(test, a, (right, b)) for test, a, b in equal]
        new_left = _reduced(left, keys, estimates)
        if new_left is not None:
            return dataclasses.replace(node, left=new_left)
    return None


def _equal_columns(node: Join) -> Iterator[tuple[str, Column, Column]]:
    """Yield the function and the columns, left first, of each equality in a join's condition."""
    left, right = frozenset(node.left.columns), frozenset(node.right.columns)
    for part in conjuncts(node.condition):
        match as_equality(part, left, right):
            case (ColumnRef(column=a), ColumnRef(column=b)):
                assert isinstance(part, Call)
                yield part.function, a, b


def _reduced(side: Logical, keys: list[ComparedColumn], estimates: Estimates) -> Logical | None:
    """Return `side` with the aggregation in it reduced by the best of the keys, or None."""
    found = _aggregate_below(side)
    if found is None:
        return None
    below = found.input
    rows, input_cost = estimates.rows(below), _cost(below, estimates)
    best: tuple[float, str, Expr, Source] | None = None
    for key in keys:
        expr = _key_expression(side, key.column)
        if expr is None or not isinstance(expr, ColumnRef) or _is_reduced(below, expr.column):
            continue
        groups = _distinct(below, expr.column, estimates)
        for source in _sources(*key.other):
            values = _distinct(*source, estimates)
            cost = _cost(source[0], estimates)
            share = values / max(groups, 1.0)
            if share > MAX_SHARE or values * MIN_RATIO > rows or cost > input_cost / 2:
                continue
            total = cost + share * rows
            if best is None or total < best[0]:
                best = total, key.test, expr, source
    if best is None:
        return None
    _, function, expr, (source_plan, column) = best
    copy, renamed = fresh(source_plan)
    test = Call(function, (expr, ColumnRef(renamed[column])), BOOLEAN)
    reduced = Join(below, copy, JoinKind.SEMI, test)
    return _with_input(side, reorder_joins(reduced) or reduced)


def _aggregate_below(node: Logical) -> Aggregate | None:
    while isinstance(node, Project | Filter):
        node = node.input
    if isinstance(node, Aggregate) and node.keys and node.grouping_sets is None:
        return node
    return None


def _key_expression(node: Logical, column: Column) -> Expr | None:
    """Return what a column of `node` is in the input of the aggregation below, if it is one of the keys."""
    while not isinstance(node, Aggregate):
        if isinstance(node, Project):
            expr = dict(node.items)[column]
            if not isinstance(expr, ColumnRef):
                return None
            column = expr.column
        node = node.children[0]
    return dict(node.keys).get(column)


def _is_reduced(node: Logical, column: Column) -> bool:
    """Whether a semi join on this column is there already."""
    semi_joins = (n for n in walk(node) if isinstance(n, Join) and n.kind is JoinKind.SEMI)
    return any(a == column for join in semi_joins for _, a, _ in _equal_columns(join))


def _sources(node: Logical, column: Column) -> Iterator[Source]:
    """Yield parts of a plan, and the column in each, that have all values of `column`."""
    if column not in node.columns:
        return
    match node:
        case Filter(input=x):
            if not isinstance(x, Scan):
                yield from _sources(x, column)
            yield node, column
        case Sort(input=x):
            yield from _sources(x, column)
        case Project(input=x, items=items):
            expr = dict(items)[column]
            if isinstance(expr, ColumnRef):
                yield from _sources(x, expr.column)
        case Join(left=left, right=right, kind=JoinKind.INNER | JoinKind.SEMI):
            yield node, column
            yield from _sources(left, column)
            yield from _sources(right, column)
            for _, a, b in _equal_columns(node):
                if a == column:
                    yield from _sources(right, b)
                if b == column:
                    yield from _sources(left, a)
        case Join(left=left, kind=JoinKind.LEFT | JoinKind.ANTI | JoinKind.MARK | JoinKind.SINGLE):
            yield node, column
            yield from _sources(left, column)
        case _:
            yield node, column


def _distinct(node: Logical, column: Column, estimates: Estimates) -> float:
    return estimates.relation(node).columns[column].distinct


def _cost(node: Logical, estimates: Estimates) -> float:
    return sum(estimates.rows(n) for n in walk(node))


def _with_input(node: Logical, below: Logical) -> Logical:
    if isinstance(node, Aggregate):
        return node.with_children([below])
    return node.with_children([_with_input(node.children[0], below)])
