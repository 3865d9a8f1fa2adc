"""GROUP BY: keys and arguments become columns, grouping sets one aggregation each over the same input."""

from __future__ import annotations

import dataclasses

from ...plan.expr import (
    AggregateCall,
    Column,
    ColumnRef,
    Expr,
    Literal,
    SortKey,
    columns_of,
    new_column,
)
from ...plan.functions import AGGREGATE, constants
from ...plan.logical import Aggregate, Item
from ...plan.physical import ComputeColumns, ConcatRows, HashAggregate, Physical
from ...plan.types import BIGINT
from ..estimates.estimate import expected, group_count
from .lowering import Computed, Lowering, Needed

Calls = list[tuple[Column, AggregateCall]]


def lower_aggregate(node: Aggregate, needed: Needed, to: Lowering) -> Physical:
    computed = Computed()
    calls = [(c, _over_columns(call, computed)) for c, call in node.aggregates if c in needed]
    if node.grouping_sets is not None:
        return _lower_grouping_sets(node, calls, computed, to)
    keys = []
    for column, expr in node.keys:
        if not (isinstance(expr, ColumnRef) and expr.column == column):
            computed.items.append((column, expr))
        keys.append(column)
    return HashAggregate(_input(node, keys, calls, computed, to), tuple(keys), tuple(calls))


def _over_columns(call: AggregateCall, computed: Computed) -> AggregateCall:
    """Return the call with columns for arguments."""

    def as_ref(expr: Expr, name: str) -> ColumnRef:
        return ColumnRef(computed.column(expr, name))

    fixed = constants(AGGREGATE[call.function].signature)
    args = tuple(a if i in fixed else as_ref(a, "argument") for i, a in enumerate(call.args))
    condition = None if call.filter is None else as_ref(call.filter, "condition")
    order = tuple(
        SortKey(as_ref(k.expr, "key"), k.descending, k.nulls_first)
        for k in call.order
        if not isinstance(k.expr, Literal)
    )
    return dataclasses.replace(call, args=args, filter=condition, order=order)


def _input(
    node: Aggregate, keys: list[Column], calls: Calls, computed: Computed, to: Lowering
) -> Physical:
    """Return the input with all keys and arguments as columns, and nothing else once something is computed."""
    own = frozenset(node.input.columns)
    wanted = frozenset(keys).union(*(columns_of(call) for _, call in calls)) & own
    read = wanted.union(*(columns_of(e) for _, e in computed.items))
    return computed.above(to.lower(node.input, read), wanted)


def _lower_grouping_sets(
    node: Aggregate, calls: Calls, computed: Computed, to: Lowering
) -> Physical:
    """Concatenate one aggregation for each set; keys outside of a set are NULL."""
    assert node.grouping_sets is not None
    keys = []
    for column, expr in node.keys:
        if isinstance(expr, ColumnRef):
            keys.append(expr.column)
        else:
            keys.append(new_column(column.name, column.type))
            computed.items.append((keys[-1], expr))
    below = _input(node, keys, calls, computed, to)
    made = (*(c for c, _ in node.keys), *(c for c, _ in calls))
    if node.grouping_id is not None:
        made = (*made, node.grouping_id)
    known = to.estimates.relation(node.input)
    values = [expected(expr, known) for _, expr in node.keys]
    branches = tuple(
        _grouped(
            node, chosen, keys, calls, below, group_count([values[i] for i in chosen], known.rows)
        )
        for chosen in node.grouping_sets
    )
    return ConcatRows(branches, made)


def _grouped(
    node: Aggregate,
    chosen: tuple[int, ...],
    keys: list[Column],
    calls: Calls,
    below: Physical,
    estimate: float,
) -> Physical:
    """Return one grouping set with columns of its own for all that the node makes."""
    own_calls = tuple((new_column(c.name, c.type), call) for c, call in calls)
    own_keys = tuple(dict.fromkeys(keys[i] for i in chosen))
    grouped = HashAggregate(below, own_keys, own_calls, estimate=estimate)
    items: list[Item] = []
    for i, key in enumerate(keys):
        value: Expr = ColumnRef(key) if i in chosen else Literal(None, key.type)
        items.append((new_column(key.name, key.type), value))
    items += [(new_column(c.name, c.type), ColumnRef(c)) for c, _ in own_calls]
    if node.grouping_id is not None:
        bits = [1 << (len(keys) - 1 - i) for i in range(len(keys)) if i not in chosen]
        items.append((new_column(node.grouping_id.name, BIGINT), Literal(sum(bits), BIGINT)))
    return ComputeColumns(grouped, tuple(items), estimate=estimate)
