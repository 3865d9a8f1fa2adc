"""Aggregates of the elements of lists, and how often values are in them: maps of counts, of each value or by bins, the most frequent values, and a value by its rank."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from .....errors import ExecutionError, OutOfRange
from .....plan import expr as ex
from .....plan.arrow.arrow_arrays import from_numpy, truth_values
from .....plan.calendar import INFINITE_MICROS, MICROS_A_DAY
from .....plan.node import transform_up
from .....plan.types import INTEGER, INTEGER_BITS, DataType, Kind
from ... import table as tables
from ...aggregate.aggregate import aggregate_groups
from ...aggregate.groups import Groups
from ...nested_arrays import Ints, Lists, list_array, struct_array
from ...sort.sort import SortColumn, sorted_order
from ...table import Table
from ..vectors import Vector, null_constant, over_arrays
from .list_parts import codes_of, integers, picked


def _known(array: pa.Array) -> Lists:
    """Return lists without their NULLs."""
    lists = Lists.of(array)
    if not lists.elements.null_count:
        return lists
    inside = truth_values(lists.elements.is_valid())
    lengths = np.bincount(lists.rows[inside], minlength=len(lists.lengths))
    return Lists(lengths, lists.elements.filter(from_numpy(inside)), lists.valid)


def _map(call: ex.Call, rows: Ints, keys: pa.Array, counts: Ints, count: int) -> pa.Array:
    """Return a map for each of `count` rows of the keys that it has, NULL for a row without any."""
    lengths = np.bincount(rows, minlength=count)
    arrow = tables.physical_type(call.type)
    key, value = arrow.value_type
    columns = [tables.as_element(keys, key.type), pa.array(counts, value.type)]
    entries = struct_array(columns, None, arrow.value_type)
    return list_array(lengths, entries, lengths > 0, arrow)


def _counted(lists: Lists) -> tuple[Ints, Ints]:
    """Return the first place of each value of each list, and how often it is there."""
    (codes,) = codes_of(lists.elements)
    keys = lists.rows * (int(codes.max(initial=0)) + 1) + codes
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return first, counts


def _histogram(call: ex.Call, args: list[pa.Array]) -> pa.Array:
    lists = _known(args[0])
    if pa.types.is_null(lists.elements.type):
        return pa.nulls(len(args[0]), tables.physical_type(call.type))
    first, counts = _counted(lists)
    rows, values = lists.rows[first], tables.take_array(lists.elements, first)
    columns = [SortColumn(each, False, False) for each in (from_numpy(rows), values)]
    order = sorted_order(columns)
    keys = tables.take_array(values, order)
    return _map(call, rows[order], keys, counts[order], len(args[0]))


def _ranks(*arrays: pa.Array) -> list[Ints]:
    """Number values of several arrays in their order, equal ones alike."""
    values = tables.concat_arrays(list(arrays))
    (codes,) = codes_of(values)
    order = sorted_order([SortColumn(values, False, False)])
    ordered = codes[order]
    steps = np.concatenate([[False], ordered[1:] != ordered[:-1]]) if len(ordered) else ordered
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.cumsum(steps)
    return np.split(ranks, np.cumsum([len(a) for a in arrays])[:-1])


def _by_bins(exact: bool) -> Callable[[ex.Call, list[pa.Array]], pa.Array]:
    """A value is counted in the first bin that is not below it, or in the one that it is, and beyond them in that of the rest."""

    def histogram(call: ex.Call, args: list[pa.Array]) -> pa.Array:
        lists, bins = _known(args[0]), Lists.of(args[1])
        if bins.elements.null_count or bins.valid is not None:
            raise ExecutionError("The bins of a histogram are not NULL.")
        if pa.types.is_floating(bins.elements.type) and bool(
            np.isnan(tables.to_numpy(bins.elements)).any()
        ):
            raise ExecutionError("The bins of a histogram are not NaN.")
        kind = call.type.children[0].children[0]
        count, some = len(args[0]), lists.lengths > 0
        inside = bins.elements.cast(lists.elements.type)
        ours, theirs = _ranks(lists.elements, inside)
        size = int(max(ours.max(initial=0), theirs.max(initial=0))) + 1
        places = bins.rows * size + theirs
        edges, first = np.unique(places, return_index=True)
        values = lists.rows * size + ours
        at = np.searchsorted(edges, values)
        found = np.append(edges, -1)[at]
        hit = found == values if exact else found // size == lists.rows
        counts = np.bincount(at[hit], minlength=len(edges))
        rest = np.bincount(lists.rows[~hit], minlength=count)
        rows = edges // size
        kept = np.flatnonzero(some[rows]) if len(rows) else rows
        other = _rest_of(kind, inside.type) if rest.any() else None
        beyond = np.flatnonzero(rest) if other is not None else np.zeros(0, np.int64)
        keys = tables.take_array(inside, first[kept])
        if other is not None:
            _check_apart(other, inside, rows=bins.rows, beyond=beyond)
            filler = tables.take_array(other, np.zeros(len(beyond), np.int64))
            keys = tables.concat_arrays([keys, filler])
        owners = np.concatenate([rows[kept], beyond])
        order = np.argsort(owners, kind="stable")
        made = np.concatenate([counts[kept], rest[beyond]])[order]
        return _map(call, owners[order], tables.take_array(keys, order), made, count)

    return histogram


def _check_apart(other: pa.Array, bins: pa.Array, rows: Ints, beyond: Ints) -> None:
    """Raise `ExecutionError` where a bin has the key of that for all other values, which has some."""
    (key,), keys = codes_of(other, bins)
    if np.isin(rows[keys == key], beyond).any():
        raise ExecutionError(
            f"The bin {bins[int(np.argmax(keys == key))]} has what the bin for all other values has as its key: use another."
        )


# The day, or the count of a unit of time, of "infinity"
_INFINITE = {Kind.DATE: INTEGER.integer_range[1], Kind.TIME: MICROS_A_DAY}


def _rest_of(kind: DataType, arrow: pa.DataType) -> pa.Array | None:
    """Return the key of the bin for what is in no other; None of a type that has none, whose rest is not counted."""
    if kind.kind in (Kind.BOOLEAN, Kind.INTERVAL, Kind.UUID) or kind.is_enum:
        return None
    if kind.kind is Kind.STRUCT:
        fields = [pa.nulls(1, f.type) for f in arrow]
        return struct_array(fields, None, arrow)
    if kind.is_nested:
        return pa.array([[]], arrow)
    if kind.is_decimal:
        raise OutOfRange(
            "The bin for all other values is the largest HUGEINT, which has 39 digits: cast values and bins to DOUBLE."
        )
    if kind.is_float:
        return pa.array([np.inf], arrow)
    if kind.kind in (Kind.VARCHAR, Kind.BLOB):
        return pa.array(["" if kind.kind is Kind.VARCHAR else b""], arrow)
    if kind.kind in INTEGER_BITS:
        return pa.array([kind.integer_range[1]], arrow)
    number = np.array([_INFINITE.get(kind.kind, INFINITE_MICROS)])
    plain = pa.int32() if kind.kind is Kind.DATE else pa.int64()
    return pa.array(number, plain).view(arrow)


def _most_frequent(call: ex.Call, args: list[pa.Array]) -> pa.Array:
    """So many values, those first that are there most often; of several the one that comes first."""
    lists = _known(args[0])
    if pa.types.is_null(lists.elements.type):
        return pa.nulls(len(args[0]), tables.physical_type(call.type))
    wanted, _ = integers(args[1])
    first, counts = _counted(lists)
    order = np.lexsort([first, -counts, lists.rows[first]])
    places = first[order]
    rows = lists.rows[places]
    lengths = np.bincount(rows, minlength=len(args[0]))
    nth = np.arange(len(places)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    kept = places[nth < wanted[rows]]
    made = np.minimum(lengths, wanted)
    return picked(made, kept, lists.elements, lengths > 0, call)


def _quantile(call: ex.Call, args: list[pa.Array]) -> pa.Array:
    """The value that so great a part of the others is below, where it is between two the smaller one."""
    lists = _known(args[0])
    values = SortColumn(lists.elements, False, False)
    order = sorted_order([SortColumn(from_numpy(lists.rows), False, False), values])
    fractions = tables.to_numpy(args[1]).astype(np.float64)
    offsets = np.floor(np.maximum(lists.lengths - 1, 0) * fractions).astype(np.int64)
    places = np.minimum(lists.starts + offsets, max(len(order) - 1, 0))
    chosen = np.where(lists.lengths > 0, np.append(order, -1)[places], -1)
    return tables.take_array(lists.elements, chosen)


KERNELS = {
    name: over_arrays(function)
    for name, function in {
        "histogram_of_list": _histogram,
        "histogram_of_bins": _by_bins(exact=False),
        "counts_of_bins": _by_bins(exact=True),
        "most_frequent": _most_frequent,
        "quantile_of_list": _quantile,
    }.items()
}


Evaluate = Callable[[ex.Expr, Table], pa.Array]


def aggregated(expr: ex.ListAggregate, operand: Vector, evaluate: Evaluate) -> Vector:
    """Return the aggregate of each list, NULL of one that is NULL."""
    if operand.is_null:
        return null_constant(expr.type)
    lists = Lists.of(operand.to_arrow(operand.length))
    count = len(lists.lengths)
    elements = Table({expr.element.id: lists.elements}, len(lists.elements))
    groups = Groups(lists.rows, count, elements.num_rows)
    results: dict[int, pa.Array] = {}

    def in_column(node: ex.Expr) -> ex.Expr | None:
        """Compute an aggregate of all lists, and stand for it by a column."""
        if not isinstance(node, ex.AggregateCall):
            return None
        arrays = dict(elements.arrays)
        args = []
        for arg in node.args:
            if not isinstance(arg, ex.Literal):
                column: ex.Column = ex.new_column("argument", arg.type)
                arrays[column.id] = evaluate(arg, elements)
                arg = ex.ColumnRef(column)  # noqa: PLW2901 - an argument as aggregates have it
            args.append(arg)
        made = ex.new_column("aggregate", node.type)
        call = dataclasses.replace(node, args=tuple(args))
        results[made.id] = aggregate_groups(call, Table(arrays, elements.num_rows), groups)
        return ex.ColumnRef(made)

    body = transform_up(expr.body, in_column)
    found = tables.take_array(evaluate(body, Table(results, count)), _valid_places(lists))
    vector = Vector.from_arrow(tables.decode(found), expr.type)
    return vector.first() if operand.is_constant else vector


def _valid_places(lists: Lists) -> tables.Indices:
    places = np.arange(len(lists.lengths))
    return places if lists.valid is None else np.where(lists.valid, places, -1)
