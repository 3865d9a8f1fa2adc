"""GROUP BY and DISTINCT: rows become group codes, then each aggregate reduces its column by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa

from ....errors import Located, OutOfRange
from ....plan import physical as p
from ....plan.arrow.arrow_arrays import from_numpy
from ....plan.expr import AggregateCall, Column, ColumnRef
from ....plan.functions import AGGREGATE
from ....plan.partial import FinishAverages
from ...context import Context
from .. import table as tables
from ..memory.ask_memory import ask_aggregates, ask_groups, ask_kept
from ..sort.keys import group_numbers
from ..sort.sort import SortColumn, sorted_order
from ..table import Indices, Table, decimal_limbs, take_array, to_numpy, validity
from . import aggregate_order as ordered, aggregate_sums as sums, aggregate_values as values
from .groups import Groups, Sums

Aggregate = Callable[[AggregateCall, list[pa.Array], Groups], pa.Array]
Aggregates = Sequence[tuple[Column, AggregateCall]]
FEW_ROWS = 256  # of which many aggregates are made together
LEAST_ALIKE = 8  # aggregates, for that

AGGREGATES: dict[str, Aggregate] = {
    "count_star": values.count_star,
    "count": values.count,
    "sum": sums.sum_of,
    "avg": sums.avg,
    "product": sums.product,
    "var_samp": sums.variance,
    "var_pop": sums.variance,
    "stddev_samp": sums.variance,
    "stddev_pop": sums.variance,
    "covar_samp": sums.covariance,
    "covar_pop": sums.covariance,
    "corr": sums.corr,
    "min": values.extreme,
    "max": values.extreme,
    "arg_min": values.value_at_extreme,
    "arg_max": values.value_at_extreme,
    "arg_min_null": values.value_at_extreme,
    "arg_max_null": values.value_at_extreme,
    "entropy": ordered.entropy,
    "mad": ordered.median_distance,
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
    "list": ordered.collected,
}


def hash_aggregate(node: p.HashAggregate, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    arrays: dict[int, pa.Array] = {}
    if node.keys:
        ask_groups(node, table, node.keys, context)
        groups, first = _grouped(table, node.keys)
        ask_aggregates(node, table, groups.count, context)
        arrays.update(tables.take(table, first, node.keys).arrays)
    else:
        groups = Groups(None, 1, table.num_rows)
        ask_aggregates(node, table, 1, context)
    for alike in _alike(node.aggregates, table):
        context.check()
        with suppress(OutOfRange):  # each alone says its place
            if len(alike) >= LEAST_ALIKE:
                arrays.update(_side_by_side(alike, table, groups))
                continue
        for column, call in alike:
            with Located(call.span):
                arrays[column.id] = aggregate_groups(call, table, groups)
    return Table(arrays, groups.count)


def _alike(aggregates: Aggregates, table: Table) -> Iterable[Aggregates]:
    """Return aggregates that are one function of columns of one type together, where rows are few, and others alone."""
    if table.num_rows > FEW_ROWS or len(aggregates) < LEAST_ALIKE:
        return zip(aggregates)
    found: dict[object, list[tuple[Column, AggregateCall]]] = {}
    for made in aggregates:
        call = made[1]
        one = len(call.args) == 1 and isinstance(call.args[0], ColumnRef)
        plain = one and not (call.distinct or call.filter or call.order)
        key = (call.function, call.type, call.args[0].type) if plain else object()
        found.setdefault(key, []).append(made)
    return found.values()


def _side_by_side(alike: Aggregates, table: Table, groups: Groups) -> dict[int, pa.Array]:
    """Reduce the values of all columns, one column behind the other, in as many times the groups.

    3,000 sums over three rows take a tenth of the time that they take one by one.
    """
    call, size = alike[0][1], groups.count
    values = tables.concat_arrays([_arguments(c, table)[0] for _, c in alike])
    codes = np.arange(0, size * len(alike), size)[:, None] + groups.all_codes
    many = Groups(codes.ravel(), size * len(alike), len(values))
    made = AGGREGATES[call.function](call, [values], many)
    return {column.id: made.slice(i * size, size) for i, (column, _) in enumerate(alike)}


def _arguments(call: AggregateCall, table: Table) -> list[pa.Array]:
    return [table[a.column] for a in call.args if isinstance(a, ColumnRef)]


def finish_averages(node: FinishAverages, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    arrays = dict(table.arrays)
    for average in node.averages:
        array, data_type = table[average.total], average.total.type
        limbs = decimal_limbs(array).T if data_type.is_decimal else ()
        total = Sums(*map(np.ascontiguousarray, limbs)) if len(limbs) else to_numpy(array)
        counts = to_numpy(table[average.count])
        arrays[average.made.id] = sums.mean(total, counts, 10**data_type.scale)
    return Table(arrays, table.num_rows)


def distinct_on(node: p.DistinctOn, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    if not node.keys:
        return tables.slice(table, 0, 1)
    ask_groups(node, table, node.keys, context)
    _, first = _grouped(table, node.keys)
    ask_kept(node, table, len(first), context)
    return tables.filter(table, np.sort(first))


def limit_groups(node: p.LimitRows, table: Table, context: Context) -> Table:
    """Rows `offset` to `offset + count` of each group, in input order."""
    ask_groups(node, table, node.keys, context)
    groups, _ = _grouped(table, node.keys)
    order = groups.order()
    starts = np.cumsum(groups.sizes) - groups.sizes
    places = np.empty(table.num_rows, np.int64)
    places[order] = np.arange(table.num_rows) - np.repeat(starts, groups.sizes)
    kept = places >= node.offset
    if node.count is not None:
        kept &= places < node.offset + node.count
    rows = np.flatnonzero(kept)
    ask_kept(node, table, len(rows), context)
    return tables.filter(table, rows)


def _grouped(table: Table, keys: tuple[Column, ...]) -> tuple[Groups, Indices]:
    found = group_numbers([table[c] for c in keys])
    groups = Groups(found.codes, found.size, table.num_rows)
    return groups.compact() if found.firsts is None else (groups, found.firsts)


def _first_of_values(columns: list[pa.Array], groups: Groups) -> Indices:
    """Return a row for each group and different value in it."""
    keys = columns if groups.codes is None else [from_numpy(groups.codes), *columns]
    found = group_numbers(keys)
    if found.firsts is not None:
        return found.firsts
    _, first = Groups(found.codes, found.size, groups.rows).compact()
    return first


def aggregate_groups(call: AggregateCall, table: Table, groups: Groups) -> pa.Array:
    """Return one aggregate of each group."""
    args = _arguments(call, table)
    rows = _rows(call, args, table, groups)
    if rows is not None:
        args = [take_array(a, rows) for a in args]
        groups = groups.subset(rows)
    return AGGREGATES[call.function](call, args, groups)


def _rows(
    call: AggregateCall, args: list[pa.Array], table: Table, groups: Groups
) -> Indices | None:
    """The rows that a call sees, in its order; None for all rows in the order of the input."""
    rows = None
    if isinstance(call.filter, ColumnRef):
        chosen = table[call.filter.column]
        valid = validity(chosen)
        passed = to_numpy(chosen)
        rows = np.flatnonzero(passed if valid is None else passed & valid)
    if call.distinct and args:
        columns = args if rows is None else [take_array(a, rows) for a in args]
        members = groups if rows is None else groups.subset(rows)
        first = _first_of_values(columns, members)
        row = AGGREGATE[call.function]
        if not (row.counts and row.fold):  # counts do not depend on the order of rows
            first = np.sort(first)
        rows = first if rows is None else rows[first]
    if call.order:
        keys = [
            SortColumn(table[k.expr.column], k.descending, k.nulls_first)
            for k in call.order
            if isinstance(k.expr, ColumnRef)
        ]
        if rows is not None:
            keys = [
                SortColumn(take_array(k.array, rows), k.descending, k.nulls_first) for k in keys
            ]
        if keys:
            order = sorted_order(keys)
            rows = order if rows is None else rows[order]
    return rows
