"""Aggregations of which a kernel holds the first of two phases."""

from __future__ import annotations

import math
from dataclasses import replace

from ...plan import physical as p
from ...plan.expr import AggregateCall, Column, ColumnRef, Literal
from ...plan.functions import AGGREGATE
from ...plan.partial import in_parts
from ...plan.types import Kind
from ..estimates.chain_estimate import ChainEstimates, expected_column
from .group_keys import by_parts_of_keys, decides, has_no_numbers, inner_joins, tells_apart
from .pipeline_shape import Body
from .probe_order import domain

DISTINCT_GROUPS = 1 << 16  # that a kernel counts apart for each distinct value of an argument


def aggregate_in_two_phases(node: p.Physical, body: Body) -> p.Physical | None:
    """Return an aggregation over a chain in two phases, where a kernel cannot hold it in one, or None."""
    if not isinstance(node, p.HashAggregate):
        return None
    distinct = with_distinct_rows(node, body.estimates, body.hashed)
    return distinct or by_build_row(node) or by_parts_of_keys(node, body.estimates)


def with_distinct_rows(
    node: p.HashAggregate, estimates: ChainEstimates, hashed: bool
) -> p.HashAggregate | None:
    """Aggregate the values of an argument among groups that have it for a key; of few combinations one kernel counts by itself.

    HashAggregate(k, f(distinct a), x)  ->  HashAggregate(k, f(a), HashAggregate(k, a, x))
    """
    calls = [call for _, call in node.aggregates]
    arguments = {call.args[0] for call in calls if call.args}
    if len(arguments) != 1 or not any(call.distinct for call in calls):
        return None
    if not all(map(_reads_values_alone, calls)):
        return None
    (argument,) = arguments
    if not isinstance(argument, ColumnRef):
        return None
    known = estimates.relation(node.input)
    keys = tuple(dict.fromkeys((*node.keys, argument.column)))
    groups = math.prod(domain(expected_column(known, key)) for key in keys)
    counted = all(call.function == "count" for call in calls)
    if counted if groups <= DISTINCT_GROUPS else not hashed:
        return None
    most = node.input.estimate
    early = replace(
        node, keys=keys, aggregates=(), estimate=None if most is None else min(most, groups)
    )
    calls_late = tuple((c, replace(call, distinct=False)) for c, call in node.aggregates)
    return replace(node, input=early, aggregates=calls_late)


def _reads_values_alone(call: AggregateCall) -> bool:
    """Whether a call reads each different value once, or as if it did, and says the same in whichever order they come."""
    if not (call.distinct or AGGREGATE[call.function].idempotent):
        return False
    if call.filter is not None or call.type.is_float or not call.args:
        return False
    if not all(isinstance(arg, Literal) for arg in call.args[1:]):
        return False
    if not call.order:
        return not AGGREGATE[call.function].ordered
    return all(key.expr == call.args[0] for key in call.order)


def by_build_row(node: p.HashAggregate) -> p.Physical | None:
    """Group by the row of a build side that decides the keys, where these are strings that have no numbers.

    HashAggregate(name, sum(a), join x.k = y.k)
      ->  HashAggregate(name, sum(s), HashAggregate(name, x.k, s: sum(a), join x.k = y.k))
    """
    names = [key for key in node.keys if key.type.kind is Kind.VARCHAR]
    joins = inner_joins(node.input) if names else []
    found = (_deciding(name, node, joins) for name in names)
    join = next((j for j in found if j is not None), None)
    parts = "" if join is None else in_parts(node)
    if join is None or isinstance(parts, str) or parts.finish:
        return None
    keys = tuple(dict.fromkeys((*node.keys, *join.probe_keys)))
    below = node.input
    for column in keys:
        below = carried(below, column)
    made: p.Physical = replace(parts.partial, input=below, keys=keys)
    for step in parts.merge:
        made = replace(step, estimate=node.estimate, reason=node.reason).with_children([made])
    return made


def _deciding(name: Column, node: p.HashAggregate, joins: list[p.HashJoin]) -> p.HashJoin | None:
    """Return the join whose build side has `name`, strings without numbers, if its row decides all keys but is none of them."""
    join = next((j for j in joins if name in j.build_side.columns), None)
    if join is None or not has_no_numbers(join.build_side, name):
        return None
    apart = tells_apart(node.keys, join)
    return join if decides(join, joins, node.keys) and not apart else None


def carried(node: p.Physical, column: Column) -> p.Physical:
    """Return a chain that passes a column on from where it has it."""
    if column in node.columns:
        return node
    node = node.with_children([carried(c, column) if _has(c, column) else c for c in node.children])
    match node:
        case p.ComputeColumns(items=items):
            return replace(node, items=(*items, (column, ColumnRef(column))))
        case p.FilterRows() | p.HashJoin() | p.NestedLoopJoin():
            if node.keep is not None:
                return replace(node, keep=(*node.keep, column))
    return node


def _has(node: p.Physical, column: Column) -> bool:
    """Whether a column is there, passed on or not; what a semi join looks up is not."""
    if column in node.columns:
        return True
    seen = (
        node.children[:1]
        if isinstance(node, p.HashJoin | p.NestedLoopJoin) and node.kind.is_membership
        else node.children
    )
    return any(_has(child, column) for child in seen)
