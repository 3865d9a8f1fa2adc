"""Operators that handle each row on its own: filter, compute, constants, ranges, limit, union all.

One row for each element of lists: an index of rows by the lists' lengths, through which other columns are taken.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from ...plan import physical as p
from ...plan.arrow.arrow_arrays import array_from, from_numpy
from ...plan.expr import Column, Expr, Literal
from ...plan.types import DataType, Kind, to_arrow
from ..context import Context
from . import table as tables
from .aggregate.aggregate import limit_groups
from .functions.expressions import evaluate, evaluate_all, selection
from .memory.ask_memory import (
    BYTES_A_PLACE,
    BYTES_A_VALUE,
    ask_computed,
    ask_joined,
    ask_kept,
    decoded_bytes,
    row_bytes,
)
from .nested_arrays import Lists
from .table import Table, concat_arrays, physical_type, to_physical


def filter_rows(node: p.FilterRows, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    chosen = selection(node.predicate, table, context.threads)
    count = int(np.count_nonzero(chosen)) if chosen.dtype == np.bool_ else len(chosen)
    ask_kept(node, table, count, context)
    return tables.filter(table, chosen, node.keep)


def compute_columns(node: p.ComputeColumns, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    ask_computed(node, table.num_rows, context)
    ask = partial(context.ask, node)
    computed = evaluate_all([e for _, e in node.items], table, context.threads, ask)
    arrays = {c.id: array for (c, _), array in zip(node.items, computed, strict=True)}
    return Table(arrays, table.num_rows)


def numbered(table: Table, column: Column, start: int) -> Table:
    """Return a table with the numbers of its rows, from `start` on."""
    numbers = np.arange(start, start + table.num_rows, dtype=np.int64)
    return Table({**table.arrays, column.id: from_numpy(numbers)}, table.num_rows)


def values_scan(node: p.ValuesScan, inputs: tuple[Table, ...], context: Context) -> Table:
    arrays = {
        made.id: _constants(tuple(row[i] for row in node.rows), made.type)
        for i, made in enumerate(node.made)
    }
    return Table(arrays, len(node.rows))


def range_scan(node: p.RangeScan, inputs: tuple[Table, ...], context: Context) -> Table:
    # Python's range counts without overflow where stop lies one beyond the last BIGINT.
    count = len(range(node.start, node.stop, node.step))
    context.ask(node, count * BYTES_A_VALUE)
    values = np.arange(count, dtype=np.int64)
    values *= node.step
    values += node.start
    return Table({node.made.id: from_numpy(values)}, count)


def limit_rows(node: p.LimitRows, inputs: tuple[Table, ...], context: Context) -> Table:
    if node.keys:
        return limit_groups(node, inputs[0], context)
    return tables.slice(inputs[0], node.offset, node.count)


def concat_rows(node: p.ConcatRows, inputs: tuple[Table, ...], context: Context) -> Table:
    columns = [
        [t[child.columns[i]] for child, t in zip(node.inputs, inputs, strict=True)]
        for i in range(len(node.made))
    ]
    if len(inputs) > 1:
        ask_joined(node, columns, context)
    arrays = {made.id: concat_arrays(each) for made, each in zip(node.made, columns, strict=True)}
    return Table(arrays, sum(t.num_rows for t in inputs))


def _constants(cells: tuple[Expr, ...], data_type: DataType) -> pa.Array:
    if not cells:
        return pa.nulls(0, physical_type(data_type))
    if all(isinstance(cell, Literal) for cell in cells):
        values = [cell.value for cell in cells if isinstance(cell, Literal)]
        if data_type.kind is not Kind.INTERVAL:  # whose values Arrow's type may not hold
            held = data_type.codes if data_type.is_enum else data_type
            return to_physical(array_from(values, to_arrow(held)), data_type)
    one_row = Table({}, 1)
    return concat_arrays([evaluate(cell, one_row) for cell in cells])


def unnest_rows(node: p.UnnestRows, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    lists = {made: Lists.of(tables.decode(table[column])) for made, column in node.lists}
    counts = np.max([each.lengths for each in lists.values()], axis=0)
    counts = np.maximum(counts, 1) if node.outer else counts
    count = int(counts.sum())
    elements = sum(decoded_bytes(each.elements) for each in lists.values())
    kept = count * (3 * BYTES_A_PLACE + row_bytes(table, node.keep))
    context.ask(node, int(kept + 2 * elements))
    rows = np.repeat(np.arange(table.num_rows), counts)
    places = np.arange(count) - np.repeat(np.cumsum(counts) - counts, counts)
    arrays = dict(tables.take(table, rows, node.keep).arrays) if node.keep else {}
    for made, each in lists.items():
        inside = places < each.lengths[rows]
        if bool(inside.all()):  # no list is longer than this one
            arrays[made.id] = each.elements
        else:
            found = np.where(inside, each.starts[rows] + places, -1)
            arrays[made.id] = tables.take_array(each.elements, found)
    if node.ordinality is not None:
        arrays[node.ordinality.id] = from_numpy(places + 1)
    return Table(arrays, count)
