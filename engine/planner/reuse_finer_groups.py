"""Totals of what is grouped as well are made of the groups."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..plan.expr import AggregateCall, Column, ColumnRef
from ..plan.functions import AGGREGATE
from ..plan.logical import Item
from ..plan.node import walk_once
from ..plan.physical import ComputeColumns, HashAggregate, HashJoin, NestedLoopJoin, Physical
from .common_subplans import Shapes

MAX_SHARE = 0.5  # of the rows that remain as groups, to be worth more than another pass over a scan


def reuse_finer_groups(plan: Physical) -> Physical:
    """Aggregate the groups of another aggregation over the same rows.

        x = HashAggregate(k, s: sum(a), y);  HashAggregate(sum(a), y)  ->  x;  HashAggregate(sum(s), x)

    A subquery often asks for the total, or the best, of what the query itself groups (TPC-H Q11).
    """
    found = _coarser(plan)
    if not found:
        return plan
    done: dict[int, Physical] = {}

    def visit(node: Physical) -> Physical:
        if id(node) not in done:
            if id(node) in found:
                coarse, fine, names = found[id(node)]
                done[id(node)] = _over_groups(coarse, visit(fine), names)
            else:
                done[id(node)] = node.with_children([visit(child) for child in node.children])
        return done[id(node)]

    return visit(plan)


Names = dict[Column, Column]


def _coarser(plan: Physical) -> dict[int, tuple[HashAggregate, HashAggregate, Names]]:
    """Return aggregations that another one's groups are enough for, with that one, and which of its columns each column is."""
    shapes = Shapes()
    nodes = {id(n): n for n in walk_once(plan) if isinstance(n, HashAggregate)}
    found: dict[int, tuple[HashAggregate, HashAggregate, Names]] = {}
    for coarse in nodes.values():
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
    if not all(_is_of_itself(call) for _, call in coarse.aggregates):
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


def _is_of_itself(call: AggregateCall) -> bool:
    """Whether the aggregate of parts' aggregates is that of all; a float sum would depend on the order."""
    adds = call.function == "sum"
    plain = not call.distinct and not (adds and call.type.is_float)
    return plain and AGGREGATE[call.function].merges and not call.order


def _over_groups(node: HashAggregate, groups: Physical, names: Names) -> HashAggregate:
    items: list[Item] = [(key, ColumnRef(names[key])) for key in node.keys]
    renamed = any(names[key] != key for key in node.keys)
    calls = []
    for column, call in node.aggregates:
        part = names[column]
        items.append((part, ColumnRef(part)))
        whole = AggregateCall(call.function, (ColumnRef(part),), call.type, span=call.span)
        calls.append((column, whole))
    below = (
        ComputeColumns(groups, tuple(dict(items).items()), estimate=groups.estimate)
        if renamed
        else groups
    )
    return HashAggregate(below, node.keys, tuple(calls), estimate=node.estimate)
