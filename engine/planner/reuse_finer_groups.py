"""Totals of what is grouped as well are made of the groups."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field, replace

from ..plan.expr import AggregateCall, Call, Cast, Column, ColumnRef, Expr, Literal, new_column
from ..plan.functions import AGGREGATE
from ..plan.logical import Item
from ..plan.node import walk_once
from ..plan.partial import Average, FinishAverages, is_exact_of_parts
from ..plan.physical import ComputeColumns, HashAggregate, HashJoin, NestedLoopJoin, Physical
from ..plan.types import BIGINT, HUGEINT, decimal
from ..records import dataclass
from .common_subplans import Shapes

MAX_SHARE = 0.5  # of the rows that remain as groups, to be worth more than another pass over a scan


def reuse_finer_groups(plan: Physical) -> Physical:
    """Aggregate the groups of another aggregation over the same rows.

        x = HashAggregate(k, s: sum(a), y);  HashAggregate(sum(a), y)  ->  x;  HashAggregate(sum(s), x)

    A subquery often asks for the total, or the best, of what the query itself groups (TPC-H Q11), and ROLLUP, CUBE and GROUPING SETS
    always do.  Counts are added up; an average becomes a sum and a count, which are divided at the end: four sets of TPC-DS Q22's ROLLUP
    of avg() at SF1 took two busy cores 3.3 s, and one kernel's groups for all of them 34 ms.
    """
    found = _coarser(plan)
    if not found:
        return plan
    divided = {id(fine) for coarse, fine, _ in found.values() if _has_averages(coarse)}
    fines = {id(fine): _Groups(fine, id(fine) in divided) for _, fine, _ in found.values()}
    done: dict[int, Physical] = {}

    def visit(node: Physical) -> Physical:
        if id(node) not in done:
            if id(node) in found:
                coarse, fine, names = found[id(node)]
                visit(fine)
                done[id(node)] = fines[id(fine)].merged(coarse, names)
            else:
                made = node.with_children([visit(child) for child in node.children])
                groups = fines.get(id(node))
                done[id(node)] = made if groups is None else groups.over(made.children[0])
        return done[id(node)]

    return visit(plan)


Names = dict[Column, Column]


def _coarser(plan: Physical) -> dict[int, tuple[HashAggregate, HashAggregate, Names]]:
    """Return aggregations that another one's groups are enough for, with that one, and which of its columns each column is."""
    shapes = Shapes()
    nodes = {id(n): n for n in walk_once(plan) if isinstance(n, HashAggregate)}
    found: dict[int, tuple[HashAggregate, HashAggregate, Names]] = {}
    # The finest first, so that what groups are taken from is not made of others' groups later
    for coarse in sorted(nodes.values(), key=lambda node: -len(node.keys)):
        for fine in nodes.values():
            if id(fine) in found or len(fine.keys) <= len(coarse.keys):
                continue
            names = _names(coarse, fine, shapes)
            if names is not None:
                found[id(coarse)] = coarse, fine, names
                break
    return found


def _names(coarse: HashAggregate, fine: HashAggregate, shapes: Shapes) -> Names | None:
    rows, other = _rows(coarse), _rows(fine)
    if not coarse.aggregates or shapes.of(rows).key != shapes.of(other).key:
        return None
    if not all(is_exact_of_parts(call) for _, call in coarse.aggregates):
        return None
    joined = any(isinstance(n, HashJoin | NestedLoopJoin) for n in walk_once(other))
    share = (fine.estimate or math.inf) / max(other.estimate or 0.0, 1.0)
    if share > (1.0 if joined else MAX_SHARE):
        return None
    labels = shapes.of(fine).labels
    keys = {labels[c]: c for c in fine.keys}
    calls = {labels[c]: c for c, _ in fine.aggregates}
    names = dict(_found(coarse.keys, shapes.of(coarse).labels, keys))
    names |= _found([c for c, _ in coarse.aggregates], shapes.of(coarse).labels, calls)
    return names if len(names) == len(coarse.columns) else None


def _found(
    columns: list[Column] | tuple[Column, ...], labels: dict[Column, int], known: dict[int, Column]
) -> Iterator[tuple[Column, Column]]:
    for column in columns:
        if labels[column] in known:
            yield column, known[labels[column]]


def _rows(node: HashAggregate) -> Physical:
    """Return what makes the rows that are aggregated, whatever is computed of them."""
    below = node.input
    while isinstance(below, ComputeColumns):
        below = below.input
    return below


def _has_averages(node: HashAggregate) -> bool:
    return any(call.function == "avg" for _, call in node.aggregates)


@dataclass
class _Groups:
    """The groups of an aggregation that others are made of; `divided`: averages as their sums and counts."""

    fine: HashAggregate
    divided: bool
    averages: dict[Column, Average] = field(default_factory=dict)
    groups: Physical = field(init=False)

    def over(self, rows: Physical) -> Physical:
        """Return what the aggregation itself makes; its groups are there for others from now on."""
        calls: list[tuple[Column, AggregateCall]] = []
        for column, call in self.fine.aggregates:
            if self.divided and call.function == "avg" and is_exact_of_parts(call):
                average = self.averages[column] = _average(column, call)
                total, count = average.total, average.count
                calls.append((total, replace(call, function="sum", type=total.type)))
                calls.append((count, replace(call, function="count", type=BIGINT)))
            else:
                calls.append((column, call))
        self.groups = replace(self.fine, input=rows, aggregates=tuple(calls))
        return _finished(self.groups, list(self.averages.values()), self.fine)

    def merged(self, node: HashAggregate, names: Names) -> Physical:
        """Return the groups of a coarser aggregation."""
        items: list[Item] = [(key, ColumnRef(names[key])) for key in node.keys]
        calls: list[tuple[Column, AggregateCall]] = []
        results: list[Item] = [(key, ColumnRef(key)) for key in node.keys]
        averages: list[Average] = []

        def merge(made: Column, part: Column, call: AggregateCall) -> None:
            function = AGGREGATE[call.function]
            items.append((part, ColumnRef(part)))
            column = new_column(made.name, HUGEINT) if function.counts else made
            whole = (ColumnRef(part),)
            calls.append(
                (column, AggregateCall(function.merge, whole, column.type, span=call.span))
            )
            results.append((made, _count(column) if function.counts else ColumnRef(made)))

        for column, call in node.aggregates:
            if call.function != "avg":
                merge(column, names[column], call)
                continue
            part, average = self.averages[names[column]], _average(column, call)
            averages.append(average)
            merge(average.total, part.total, replace(call, function="sum"))
            merge(average.count, part.count, replace(call, function="count"))
        below = self.groups
        if any(names[key] != key for key in node.keys):
            below = ComputeColumns(below, tuple(dict(items).items())).placed_as(below)
        groups: Physical = HashAggregate(below, node.keys, tuple(calls), estimate=node.estimate)
        if any(made != c for (made, _), c in zip(results, groups.columns, strict=True)):
            groups = ComputeColumns(groups, tuple(results), estimate=node.estimate)
        return _finished(groups, averages, node)


def _average(made: Column, call: AggregateCall) -> Average:
    total = new_column(f"{made.name} sum", decimal(38, call.args[0].type.scale))
    return Average(made, total, new_column(f"{made.name} count", BIGINT))


def _count(total: Column) -> Expr:
    """Return a sum of counts as a count; of no groups there is none, and 0 rows."""
    return Call("coalesce", (Cast(ColumnRef(total), BIGINT), Literal(0, BIGINT)), BIGINT)


def _finished(groups: Physical, averages: list[Average], node: HashAggregate) -> Physical:
    if not averages:
        return groups
    return FinishAverages(groups, tuple(averages), node.columns, estimate=node.estimate)
