"""GROUP BY and DISTINCT: aggregates ask about the groups of rows that they see, libcudf answers, results are made of answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

import pylibcudf as plc

from ....errors import Located
from ....plan import physical as p
from ....plan.expr import AggregateCall, Column, ColumnRef
from ....plan.functions import AGGREGATE
from ....plan.partial import FinishAverages
from ...context import Context
from .. import table as tables
from ..columns import HUGE, as_key, empty, mean, reinterpret, where_true
from ..dictionaries import Coded, Held
from ..distinct_rows import first_of_each
from ..few_rows import run_on_host
from ..late_materialization import (
    Bounds,
    Fetch,
    bounds_of,
    is_of_registers,
    lasting,
    registers_of,
    together,
)
from ..memory.device import on_device
from ..sort.sort import sorted_rows
from ..table import Table, device_type
from . import (
    aggregate_moments as moments,
    aggregate_order as ordered,
    aggregate_sums as sums,
    aggregate_values as values,
)
from .distinct_counts import distinct_count
from .groups import Answer, GroupedArgument, Groups, matching_order, pick, pick_held, restore
from .text_keys import row_keys, with_numbers, with_rows
from .unique_groups import each_alone

Aggregate = Callable[[AggregateCall, list[GroupedArgument], Groups], Answer]
# As `Answer`, or strings as codes, or integers as in registers.
HeldAnswer = Callable[[], "Held | Fetch"]

AGGREGATES: dict[str, Aggregate] = {
    "count_star": values.count_star,
    "count": values.count,
    "sum": sums.sum_of,
    "avg": sums.avg,
    "product": sums.product,
    "var_samp": moments.variance,
    "var_pop": moments.variance,
    "stddev_samp": moments.variance,
    "stddev_pop": moments.variance,
    "covar_samp": moments.covariance,
    "covar_pop": moments.covariance,
    "corr": moments.corr,
    "min": values.extreme,
    "max": values.extreme,
    "arg_min": values.value_at_extreme,
    "arg_max": values.value_at_extreme,
    "first": values.first,
    "last": values.last,
    "any_value": values.any_value,
    "bit_and": values.bits,
    "bit_or": values.bits,
    "bit_xor": values.bits,
    "string_agg": ordered.string_agg,
    "quantile_cont": ordered.quantile_cont,
    "quantile_disc": ordered.quantile_disc,
    "mode": ordered.mode,
}
ADDS = (sums.sum_of, sums.avg)
COUNTS = (values.count, values.count_star)
PICKS = (values.extreme, values.first, values.last, values.any_value)  # a value of the argument


def unsupported_call(call: AggregateCall) -> str | None:
    """Return why the GPU does not compute an aggregate, or None."""
    if call.function not in AGGREGATES:
        return f"the aggregate {call.function}()"
    if call.function == "quantile_cont" and call.type.is_wide_decimal:
        return f"{call.function}() of {call.type}, which it would not interpolate exactly"
    return None


@on_device
def hash_aggregate(node: p.HashAggregate, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    alone = each_alone(node, table)
    if alone is not None:
        context.remarks[id(node)] = "each row is a group: no two have the same keys"
        return alone
    few = run_on_host(node, inputs, context)
    if few is not None:
        return few
    table = with_numbers(table, _compared(node), context.cache)
    if node.keys and not table.num_rows:
        return Table({c.id: empty(device_type(c.type)) for c in node.columns}, 0)
    rows = row_keys(table, node.keys)
    tables.fetch(table, _read_as_values(node, table, rows))
    keys = [rows[c] if c in rows else _group_key(table.columns[c.id]) for c in node.keys]
    if not node.aggregates:
        return _distinct(node, keys, table, rows)
    groups = Groups(keys, table.num_rows, table.columns, context.deterministic)
    variants: dict[Hashable, Groups] = {}
    answers: list[tuple[Groups, HeldAnswer]] = []
    sums.measure(_added(node, groups), groups)
    for _, call in node.aggregates:
        with Located(call.span):
            answers.append(_ask(call, groups, variants))
        context.check()
    # Any variant has all groups, so that the rows as they are need no look when nothing asks about them.
    lead = next(iter(variants.values())) if variants and not groups.was_asked else groups
    for members in {id(g): g for g in (lead, *variants.values())}.values():
        members.run()
        context.check()
    again, rows = _keys_again(node, lead.group_keys, table, rows)
    columns: dict[int, Held | Fetch] = {**again}
    for (column, call), (members, answer) in zip(node.aggregates, answers, strict=True):
        with Located(call.span):
            columns[column.id] = _aligned(answer(), members, lead)
    made = lasting(columns, table.columns, _known(node, groups))
    return Table(with_rows(made, table, rows), lead.count)


def _compared(node: p.HashAggregate) -> list[Column]:
    """The columns of which texts are compared: keys, and what extremes are asked of."""
    extremes = [call for _, call in node.aggregates if AGGREGATES[call.function] is values.extreme]
    asked = [a.column for c in extremes for a in c.args if isinstance(a, ColumnRef)]
    return list(dict.fromkeys([*node.keys, *asked]))


def _read_as_values(node: p.HashAggregate, table: Table, rows: Collection[Column]) -> list[int]:
    """The columns that are fetched in any case, which is done together: all but keys by `rows`, and those that are added up as in registers."""
    args = [
        arg.column for _, call in node.aggregates for arg in call.args if isinstance(arg, ColumnRef)
    ]
    added = [c.id for c in args if not is_of_registers(table.columns, c.id)]
    return [*(c.id for c in node.keys if c not in rows), *added]


def _added(node: p.HashAggregate, groups: Groups) -> list[tuple[GroupedArgument, Bounds]]:
    """The integers that calls add up as they are, and the ranges of their types."""
    calls = [c for _, c in node.aggregates if not c.distinct and c.filter is None]
    return [
        (groups.integers(arg.column), arg.type.integer_range)
        for call in calls
        if _adds_integers(call)
        for arg in call.args
        if isinstance(arg, ColumnRef)
    ]


def _adds_integers(call: AggregateCall) -> bool:
    """Whether a call adds up the integers behind its argument."""
    if AGGREGATES[call.function] not in ADDS:
        return False
    (arg,) = call.args
    return arg.type.is_integer or arg.type.is_decimal


def _known(node: p.HashAggregate, groups: Groups) -> dict[int, Bounds | None]:
    """Intervals that hold the integers of groups: of keys, of counts, and of values that are picked."""
    found = {key.id: groups.bounds(key) for key in node.keys}
    for made, call in node.aggregates:
        arg, asked = call.args[0] if call.args else None, AGGREGATES[call.function]
        if asked in COUNTS:
            found[made.id] = 0, groups.rows
        elif isinstance(arg, ColumnRef) and asked in PICKS:
            found[made.id] = groups.bounds(arg.column)
    return found


@on_device
def finish_averages(node: FinishAverages, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    few = run_on_host(node, inputs, context)
    if few is not None:
        return few
    made: dict[int, Held] = {}
    for average in node.averages:
        total, count = (
            registers_of(table.columns, column.id) for column in (average.total, average.count)
        )
        data_type = average.total.type
        if total is None:
            total = table[average.total]
            total = reinterpret(total, HUGE) if data_type.is_decimal else total
        count = table[average.count] if count is None else count
        made[average.made.id] = mean(total, count, 10**data_type.scale)
    return Table(together(table.columns, made), table.num_rows)


def _group_key(held: Held) -> plc.Column:
    return held.codes if isinstance(held, Coded) else as_key(held)


def _keys_again(
    node: p.HashAggregate,
    keys: Sequence[plc.Column],
    table: Table,
    rows: Collection[Column],
) -> tuple[dict[int, Held], dict[Column, plc.Column]]:
    """Undo `_group_key`; apart from these the row numbers of groups, of keys that are compared by them."""
    columns: dict[int, Held] = {}
    again: dict[Column, plc.Column] = {}
    for column, key in zip(node.keys, keys, strict=True):
        if column in rows:
            again[column] = key
            continue
        held = table.columns[column.id]
        columns[column.id] = (
            Coded(key, held.keys)
            if isinstance(held, Coded)
            else restore(key, device_type(column.type))
        )
    return columns, again


@on_device
def distinct_on(node: p.DistinctOn, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    if not node.keys:
        return tables.slice_rows(table, 0, 1)
    few = run_on_host(node, inputs, context)
    if few is not None:
        return few
    if not table.num_rows:
        return table
    first = first_of_each(plc.Table([_group_key(table.columns[c.id]) for c in node.keys]))
    return tables.gather(table, pick(first, sorted_rows([first], [(False, False)])), node.columns)


def _distinct(
    node: p.HashAggregate,
    keys: list[plc.Column],
    table: Table,
    by_rows: Collection[Column],
) -> Table:
    if not keys:
        return Table({}, 1)
    rows = plc.stream_compaction.distinct(
        plc.Table(keys),
        list(range(len(keys))),
        plc.stream_compaction.DuplicateKeepOption.KEEP_ANY,
        plc.types.NullEquality.EQUAL,
        plc.types.NanEquality.ALL_EQUAL,
    )
    known = {key.id: bounds_of(table.columns, key.id) for key in node.keys}
    again, found = _keys_again(node, rows.columns(), table, by_rows)
    columns = lasting(again, table.columns, known)
    return Table(with_rows(columns, table, found), rows.num_rows())


def _ask(
    call: AggregateCall, groups: Groups, variants: dict[Hashable, Groups]
) -> tuple[Groups, HeldAnswer]:
    """Let a call ask the groups of the rows that it sees, in its order."""
    coded = coded_argument(call, groups)
    if coded is not None:
        argument, held = coded
        codes = AGGREGATES[call.function](call, [argument], groups)
        return groups, lambda: Coded(codes(), held.keys)
    args = arguments(call, groups)
    if call.distinct and len(args) == 1 and AGGREGATES[call.function] is values.count:
        counted = distinct_count(args[0], groups)
        if counted is not None:
            return groups, counted
    if call.args and call.distinct and not AGGREGATE[call.function].idempotent:
        key: Hashable = ("distinct", tuple(a.key for a in args), _order_keys(call))
        if key not in variants:
            variants[key] = _distinct_rows(args, groups, call)
        groups = variants[key]
        call = dataclasses.replace(call, filter=None)
        args = arguments(call, groups)
    if call.function in ("string_agg", "mode") and call.order:
        key = ("ordered", groups, call.order)
        if key not in variants:
            variants[key] = _ordered_rows(call, groups)
        filtered = [a.column for a in args]
        order = variants[key].once("order", lambda: None)
        groups = variants[key]
        args = [GroupedArgument(a.key, pick(c, order)) for a, c in zip(args, filtered, strict=True)]
    return groups, AGGREGATES[call.function](call, args, groups)


def coded_argument(call: AggregateCall, groups: Groups) -> tuple[GroupedArgument, Coded] | None:
    """Return the codes of which the extreme stands for that of the strings."""
    arg = call.args[0] if call.args else None
    if call.function not in ("min", "max") or not isinstance(arg, ColumnRef):
        return None
    found = groups.codes(arg.column)
    if found is None or not isinstance(call.filter, ColumnRef):
        return found
    return _kept(found[0], groups.source(call.filter.column), groups), found[1]


def arguments(call: AggregateCall, groups: Groups) -> list[GroupedArgument]:
    """Return the columns of a call, NULL in the rows that its FILTER leaves out."""
    counts, adds = AGGREGATE[call.function].counts, _adds_integers(call)
    args = [
        _counted(a.column, groups)
        if counts
        else groups.integers(a.column)
        if adds
        else groups.source(a.column)
        for a in call.args
        if isinstance(a, ColumnRef)
    ]
    if not isinstance(call.filter, ColumnRef):
        return args
    keep = groups.source(call.filter.column)
    # count(*) has no argument: the filter itself, NULL where it is not TRUE, counts.
    return [_kept(a, keep, groups) for a in args or [keep]]


def _counted(column: Column, groups: Groups) -> GroupedArgument:
    """Return what stands for values of which only equality and NULL matter."""
    registers = groups.registers(column)
    coded = None if registers is not None else groups.codes(column)
    return registers or (groups.source(column) if coded is None else coded[0])


def _kept(argument: GroupedArgument, keep: GroupedArgument, groups: Groups) -> GroupedArgument:
    key = ("filtered", argument.key, keep.key)

    def filtered() -> GroupedArgument:
        kept = where_true(argument.column, keep.column)
        return GroupedArgument(key, kept, argument.bounds)

    return groups.once(key, filtered)


def _distinct_rows(args: list[GroupedArgument], groups: Groups, call: AggregateCall) -> Groups:
    """Return the groups of the first row for each combination of keys and arguments, of which alone the order is computed."""
    rows = first_of_each(plc.Table([*groups.keys, *(as_key(a.column) for a in args)]))
    columns: dict[int, Held] = {
        a.column.id: arg.column
        for a, arg in zip([a for a in call.args if isinstance(a, ColumnRef)], args, strict=True)
    }
    columns |= {column.id: groups.columns[column.id] for column in _order_keys(call)}
    return _subset(groups, rows, columns)


def _order_keys(call: AggregateCall) -> tuple[Column, ...]:
    return tuple(k.expr.column for k in call.order if isinstance(k.expr, ColumnRef))


def _ordered_rows(call: AggregateCall, groups: Groups) -> Groups:
    keys = [groups.source(column) for column in _order_keys(call)]
    directions = [
        (k.descending, k.nulls_first) for k in call.order if isinstance(k.expr, ColumnRef)
    ]
    rows = sorted_rows([k.column for k in keys], directions)
    result = _subset(groups, rows, groups.columns)
    result.once("order", lambda: rows)
    return result


def _subset(groups: Groups, rows: plc.Column, columns: Mapping[int, Held]) -> Groups:
    """Return the groups of some rows, in another order."""
    keys = [pick(k, rows) for k in groups.keys]
    picked = {i: pick_held(c, rows) for i, c in columns.items()}
    return Groups(keys, rows.size(), picked, groups.deterministic)


def _aligned(held: Held | Fetch, members: Groups, lead: Groups) -> Held | Fetch:
    """Bring an answer from the order of its own groups into that of the result."""
    if members is lead or not lead.keys:
        return held
    order = members.once("aligned", lambda: matching_order(lead.group_keys, members.group_keys))
    if isinstance(held, Fetch):
        return dataclasses.replace(held, lying=pick(held.lying, order))
    return pick_held(held, order)
