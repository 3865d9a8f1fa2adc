"""Sorting by row numbers, and the first rows of an order without sorting the rest."""

from __future__ import annotations

from collections.abc import Sequence

import pylibcudf as plc

from ...plan import physical as p
from ..context import Context
from . import small
from . import table as tables
from .columns import BOOL, INT32, as_integers, binary, empty, is_float, scalar, sequence
from .device import on_device
from .dictionaries import Coded, Held
from .small import few_on_host
from .table import Table

Op = plc.binaryop.BinaryOperator
Direction = tuple[bool, bool]  # descending, NULLs first

# Selecting the rows that can be among the first takes two passes and a few calls of 0.05 ms; a sort of fewer rows is quicker.
TOP_K_ROWS = 200_000
TOP_K_SHARE = 8  # of the rows at least this many for each one that is wanted


@on_device
def sort_rows(node: p.SortRows, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    if not node.keys:
        return table
    few = few_on_host(node, table.columns, table.num_rows, context)
    if few is not None:
        return Table(few.take(small.sorted_order(few, node.keys)), table.num_rows)
    return tables.gather(table, _order(table, node.keys), node.columns)


@on_device
def top_k(node: p.TopK, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    end = min(node.offset + node.count, table.num_rows)
    few = few_on_host(node, table.columns, table.num_rows, context)
    if few is not None and node.keys:
        first = small.sorted_order(few, node.keys)[node.offset : end]
        return Table(few.take(first), len(first))
    if node.offset >= end:
        return tables.slice_rows(table, 0, 0)
    if not node.keys:
        return tables.slice_rows(table, node.offset, node.count)
    candidates = _candidates(table, node.keys[0], end)
    if candidates is not None:
        table = tables.gather(table, candidates, node.columns)
    rows = _order(table, node.keys)
    (wanted,) = plc.copying.slice(rows, [node.offset, end])
    return tables.gather(table, wanted, node.columns)


def sorted_rows(keys: Sequence[plc.Column], directions: Sequence[Direction]) -> plc.Column:
    """Return the row numbers in sorted order; rows with equal keys keep theirs.

    libcudf's place of NULL is relative to ascending values, so that a descending order turns it round with them.
    """
    if not keys[0].size():
        return empty(INT32)
    orders, nulls = [], []
    for descending, nulls_first in directions:
        orders.append(plc.types.Order.DESCENDING if descending else plc.types.Order.ASCENDING)
        before = nulls_first != descending
        nulls.append(plc.types.NullOrder.BEFORE if before else plc.types.NullOrder.AFTER)
    return plc.sorting.stable_sorted_order(plc.Table([_sortable(k) for k in keys]), orders, nulls)


def _order(table: Table, keys: tuple[p.Order, ...]) -> plc.Column:
    directions = [(k.descending, k.nulls_first) for k in keys]
    return sorted_rows([_key(table.columns[k.column.id]) for k in keys], directions)


def _key(held: Held) -> plc.Column:
    """Codes are in the order of their strings."""
    return held.codes if isinstance(held, Coded) else held


def _sortable(column: plc.Column) -> plc.Column:
    """Return a column that libcudf sorts as SQL does.

    Floats go as integers of the same order: -0.0 must not come before 0.0, and libcudf turns equal NaNs round when it sorts floats
    in descending order.
    """
    if not is_float(column):
        return column
    bits = as_integers(plc.replace.normalize_nans_and_zeros(column))
    width = bits.type()
    largest = (1 << (31 if width.id() == plc.TypeId.INT32 else 63)) - 1
    # Of a negative number all bits but the sign are turned round, since larger ones mean smaller values.
    sign = binary(bits, scalar(largest.bit_length(), width), Op.SHIFT_RIGHT, width)
    turned = binary(sign, scalar(largest, width), Op.BITWISE_AND, width)
    return binary(bits, turned, Op.BITWISE_XOR, width)


def _candidates(table: Table, key: p.Order, count: int) -> plc.Column | None:
    """Return the numbers of all rows that can be among the first `count` by their first key, in order; None for all.

    They are those up to the `count`-th value of that key, equal ones included, so that the other keys can decide.
    """
    column = _key(table.columns[key.column.id])
    if column.null_count() or table.num_rows < TOP_K_ROWS or count * TOP_K_SHARE > table.num_rows:
        return None
    column = as_integers(_sortable(column))
    if column.type().id() not in (plc.TypeId.INT64, plc.TypeId.INT32, plc.TypeId.DECIMAL128):
        return None
    order = plc.types.Order.DESCENDING if key.descending else plc.types.Order.ASCENDING
    best = plc.sorting.top_k(column, count, order)
    last = plc.aggregation.min() if key.descending else plc.aggregation.max()
    bound = plc.reduce.reduce(best, last, best.type())
    keep = binary(column, bound, Op.GREATER_EQUAL if key.descending else Op.LESS_EQUAL, BOOL)
    rows = plc.Table([sequence(table.num_rows)])
    return plc.stream_compaction.apply_retention_mask(rows, keep).columns()[0]
