"""Sorting by row numbers, and the first rows of an order without sorting the rest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.groups.results import Registers
from ....codegen.handwritten import sort_kernels as kernels
from ....plan import physical as p
from ....plan.expr import Column
from ....plan.types import Kind
from ...context import Context
from .. import columns as col, table as tables
from ..dictionaries import Coded
from ..late_materialization import LateColumns
from ..memory import host_table, to_host
from ..memory.device import on_device
from ..memory.host_table import HostColumns
from ..memory.upload import row_numbers
from ..pipeline import launch
from ..pipeline.fixed_kernels import machine_code
from ..table import Table
from .packed_keys import Direction, packed

Op = plc.binaryop.BinaryOperator
# Selecting the rows that can be among the first takes two passes and a few calls of 0.05 ms; a sort of fewer rows is quicker.
TOP_K_ROWS = 200_000
UNSIGNED = (plc.TypeId.UINT8, plc.TypeId.UINT16, plc.TypeId.UINT32)
SHORT = (plc.TypeId.UINT8, plc.TypeId.UINT16, plc.TypeId.INT8, plc.TypeId.INT16)
HEAD_ROWS = 1 << 16  # that are looked at before all are, whether they lie in order
TOP_K_SHARE = 8  # of the rows at least this many for each one that is wanted
# Beyond, sorting all rows by one key takes longer than selecting among them in several calls.
MOST_SORTED_ROWS = 1 << 23
LED_ROWS = 512  # that come to the host, at least, in the hope that they hold all that are equal to the last one that is wanted
LED_SHARE = 4  # as many for each one that is wanted


@on_device
def sort_rows(node: p.SortRows, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    if not node.keys:
        return table
    few = _on_host(node, table, context)
    if few is not None:
        return Table(few.take(host_table.sorted_order(few, node.keys)), table.num_rows)
    if len(node.keys) == 1 and _lie_in_order(table, node.keys[0]):
        return tables.only(table, node.columns)
    return tables.gather(table, _order(table, node.keys), node.columns)


@on_device
def top_k(node: p.TopK, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    end = min(node.offset + node.count, table.num_rows)
    if node.offset >= end:
        return tables.slice_rows(table, 0, 0)
    if not node.keys:
        return tables.slice_rows(table, node.offset, node.count)
    few = led(table, node.keys[0], _with_keys(node), end, *node.keys[1:2])
    if few is not None:
        host_table.note(node, table.num_rows, context)
    else:
        table = _thinned(table, node, end)
        few = _on_host(node, table, context)
    if few is not None:
        first = host_table.sorted_order(few, node.keys, end)[node.offset : end]
        return Table(few.take(first), len(first))
    rows = _order(table, node.keys)
    (wanted,) = plc.copying.slice(rows, [node.offset, end])
    return tables.gather(table, wanted, node.columns)


def led(
    table: Table, key: p.Order, columns: Sequence[Column], end: int, then: p.Order | None = None
) -> HostColumns | None:
    """Bring columns to the host of all rows that can be among the first `end` by a key, equal ones included, and of some more.

    Of those that are equal by a key of few values, the ones that the key `then` leaves.

    None where these are not few.  Kernels select them; without those, one key of a fixed width has a radix sort, and nothing but the few
    rows is waited for.
    """
    count = max(LED_ROWS, LED_SHARE * end)
    if type(table.columns) is HostColumns or count > host_table.MOST_ROWS:
        return None
    if table.num_rows <= max(host_table.MOST_ROWS, TOP_K_SHARE * count):
        return None
    (lead,) = sort_keys(table, [key.column])
    few = _leading(table, key, columns, lead, end, then)
    if (
        few is not None
        or lead.type().id() == plc.TypeId.STRING
        or table.num_rows > MOST_SORTED_ROWS
    ):
        return few
    order = sorted_rows([lead], [(key.descending, key.nulls_first)])
    (rows,) = plc.copying.slice(order, [0, count])
    few = to_host.picked_on_host(table, columns, rows)
    if few is None:
        return None
    ranks = host_table.ranks(few, key)
    return few if ranks[end - 1] < ranks[-1] else None


def _leading(
    table: Table,
    key: p.Order,
    columns: Sequence[Column],
    lead: plc.Column,
    end: int,
    then: p.Order | None,
) -> HostColumns | None:
    """The same by kernels that sort nothing; None for keys that are no integers or texts without NULL, and where too many are equal."""
    if then is not None and lead.type().id() in (*SHORT, plc.TypeId.TIMESTAMP_DAYS):
        keys = [sortable(k) for k in (lead, *sort_keys(table, [then.column]))]
        both = packed(keys, [(k.descending, k.nulls_first) for k in (key, then)])
        if both is not None:
            return to_host.leading(table, columns, both.numbers, False, end)
    numbers = _numbers(lead)
    if numbers is None:
        return None
    kind = numbers.type().id()
    if kind in (*SHORT, plc.TypeId.UINT32):
        numbers = col.cast(numbers, col.INT64)
    elif kind not in (plc.TypeId.INT32, plc.TypeId.INT64):
        return None
    return to_host.leading(table, columns, numbers, key.descending, end)


def _numbers(lead: plc.Column) -> plc.Column | None:
    """Return numbers in the order of a key without NULL: integers as they are, texts by their first bytes."""
    if lead.null_count():
        return None
    return leads(lead) if lead.type().id() == plc.TypeId.STRING else col.as_integers(sortable(lead))


def _thinned(table: Table, node: p.TopK, end: int) -> Table:
    """Return the rows that can be among the first by the first key, equal ones included, so that other keys can decide."""
    if end * TOP_K_SHARE > table.num_rows or table.num_rows <= host_table.MOST_ROWS:
        return table
    wanted = _with_keys(node)
    if table.num_rows <= to_host.MOST_ROWS and _has_numbers(table, node.keys[0]):
        lead = to_host.on_host(table, [node.keys[0].column])
        if lead is not None:
            rows = host_table.least(host_table.ranks(lead, node.keys[0]), end)
            if type(table.columns) is HostColumns:
                return Table(table.columns.take(rows), len(rows))
            few = None
            if len(rows) <= host_table.MOST_ROWS:
                few = to_host.picked_on_host(table, wanted, rows)
            if few is not None:
                return Table(few, len(rows))
            return tables.gather(table, row_numbers(rows), wanted)
    candidates = _candidates(table, node.keys, end)
    return table if candidates is None else tables.gather(table, candidates, wanted)


def _on_host(node: p.SortRows | p.TopK, table: Table, context: Context) -> HostColumns | None:
    """Bring a table to the host if it is sorted there in less time than on the device; more rows where all keys are numbers."""
    few: HostColumns | None
    if type(table.columns) is HostColumns and table.num_rows <= host_table.MOST_ROWS:
        few = table.columns
    else:
        most = to_host.MOST_ROWS
        for key in node.keys:
            if key.column.type.kind is Kind.VARCHAR and not _has_numbers(table, key):
                most = host_table.MOST_ROWS
        few = to_host.on_host(table, _with_keys(node), most)
    if few is not None:
        host_table.note(node, table.num_rows, context)
    return few


def _with_keys(node: p.SortRows | p.TopK) -> list[Column]:
    """The columns that a node passes on, and those that it sorts by."""
    found = {column.id: column for column in node.columns}
    found |= {key.column.id: key.column for key in node.keys}
    return list(found.values())


def _has_numbers(table: Table, key: p.Order) -> bool:
    """Whether the host has integers that compare as a key's values do, without ranking them."""
    column, held = key.column, table.columns
    if column.type.kind is not Kind.VARCHAR:
        return True
    if type(held) is HostColumns:
        return isinstance(held.held[column.id][1], Registers)
    if type(held) is LateColumns and column.id not in held.there:
        return bool(held.fetches[column.id][1].lying.type().id() != plc.TypeId.STRING)
    return isinstance(held[column.id], Coded)


def _lie_in_order(table: Table, key: p.Order) -> bool:
    """Whether texts are sorted, as names of a table often are: one look at each, where a sort compares them again and again."""
    if _has_numbers(table, key):
        return False
    order, nulls = _directions([(key.descending, key.nulls_first)])
    return bool(plc.sorting.is_sorted(plc.Table([table[key.column]]), order, nulls))


def sorted_rows(keys: Sequence[plc.Column], directions: Sequence[Direction]) -> plc.Column:
    """Return the row numbers in sorted order; rows with equal keys keep theirs."""
    if not keys[0].size():
        return col.empty(col.INT32)
    keys = [sortable(key) for key in keys]
    one = packed(keys, directions)
    return order_of(keys, directions) if one is None else order_of([one.numbers], [(False, False)])


def order_of(keys: Sequence[plc.Column], directions: Sequence[Direction]) -> plc.Column:
    """Return the row numbers in the order of keys that libcudf sorts as SQL does."""
    return plc.sorting.stable_sorted_order(plc.Table(list(keys)), *_directions(directions))


def lie_in_order(keys: Sequence[plc.Column], directions: Sequence[Direction]) -> bool:
    """Whether rows are sorted, as those of a sorted table; most others are told by their first rows."""
    rows, ways = plc.Table(list(keys)), _directions(directions)
    (head,) = plc.copying.slice(rows, [0, min(HEAD_ROWS, rows.num_rows())])
    return all(bool(plc.sorting.is_sorted(part, *ways)) for part in (head, rows))


def _directions(
    directions: Sequence[Direction],
) -> tuple[list[plc.types.Order], list[plc.types.Order]]:
    """Orders and places of NULL as libcudf has them, whose place of NULL is relative to ascending values."""
    orders, nulls = [], []
    for descending, nulls_first in directions:
        orders.append(plc.types.Order.DESCENDING if descending else plc.types.Order.ASCENDING)
        before = nulls_first != descending
        nulls.append(plc.types.NullOrder.BEFORE if before else plc.types.NullOrder.AFTER)
    return orders, nulls


def _order(table: Table, keys: tuple[p.Order, ...]) -> plc.Column:
    directions = [(k.descending, k.nulls_first) for k in keys]
    return sorted_rows(sort_keys(table, [k.column for k in keys]), directions)


def sort_keys(table: Table, columns: Sequence[Column]) -> list[plc.Column]:
    """Columns to sort by: codes are in the order of what they stand for."""
    held = table.columns
    late = held.lying(c.id for c in columns) if type(held) is LateColumns else {}
    found = [late[c.id] if c.id in late else held[c.id] for c in columns]
    return [key.codes if isinstance(key, Coded) else key for key in found]


def sortable(column: plc.Column) -> plc.Column:
    """Return a column that libcudf sorts as SQL does, and alone by radix where it is of a fixed width and has no NULL.

    Floats go as integers of the same order: -0.0 must not come before 0.0, and libcudf turns equal NaNs round when it sorts floats
    in descending order.
    """
    if not col.is_float(column):
        return col.as_integers(column)
    bits = col.as_integers(plc.replace.normalize_nans_and_zeros(column))
    width = bits.type()
    largest = (1 << (31 if width.id() == plc.TypeId.INT32 else 63)) - 1
    # Of a negative number all bits but the sign are turned round, since larger ones mean smaller values.
    sign = col.binary(bits, col.scalar(largest.bit_length(), width), Op.SHIFT_RIGHT, width)
    turned = col.binary(sign, col.scalar(largest, width), Op.BITWISE_AND, width)
    return col.binary(bits, turned, Op.BITWISE_XOR, width)


def _candidates(table: Table, keys: Sequence[p.Order], count: int) -> plc.Column | None:
    """Return the numbers of all rows that can be among the first `count`, in order; None for all.

    They are those up to the `count`-th value of the first key.  Where many are equal to that, as counts of keys that hardly repeat are,
    the next key decides among them.
    """
    rows: plc.Column | None = None
    before: list[plc.Column] = []  # rows that certainly are
    for key in keys:
        (lead,) = sort_keys(table, [key.column])
        column = _comparable(lead)
        if column is None:
            break
        column = column if rows is None else _at(column, rows)
        if column.size() < TOP_K_ROWS or count * TOP_K_SHARE > column.size():
            break
        order = plc.types.Order.DESCENDING if key.descending else plc.types.Order.ASCENDING
        best = plc.sorting.top_k(column, count, order)
        last = plc.aggregation.min() if key.descending else plc.aggregation.max()
        bound = plc.reduce.reduce(best, last, best.type())
        rows = col.sequence(table.num_rows) if rows is None else rows
        keep = col.binary(
            column, bound, Op.GREATER_EQUAL if key.descending else Op.LESS_EQUAL, col.BOOL
        )
        numbers, values = _where(keep, rows, column)
        # Of texts the numbers are first bytes, which equal ones need not be equal behind
        if numbers.size() < TOP_K_ROWS or lead.type().id() == plc.TypeId.STRING:
            rows = numbers
            break
        equal = col.binary(values, bound, Op.EQUAL, col.BOOL)
        (rows,), (certain,) = _where(equal, numbers), _where(col.negate(equal), numbers)
        before.append(certain)
        count -= certain.size()
    if not before or rows is None:
        return rows
    found = plc.concatenate.concatenate([*before, rows])
    return _at(found, order_of([found], [(False, False)]))


def _comparable(lead: plc.Column) -> plc.Column | None:
    """Return numbers in the order of a key that libcudf finds the first ones of; None where there are none."""
    column = _numbers(lead)
    if column is None:
        return None
    if column.type().id() in UNSIGNED:
        column = col.cast(column, col.INT64)
    if column.type().id() not in (plc.TypeId.INT64, plc.TypeId.INT32, plc.TypeId.DECIMAL128):
        return None
    return column


def _at(column: plc.Column, rows: plc.Column) -> plc.Column:
    return plc.copying.gather(plc.Table([column]), rows, tables.DONT_CHECK).columns()[0]


def _where(mask: plc.Column, *columns: plc.Column) -> list[plc.Column]:
    """Return the rows of columns where a mask without NULL is TRUE."""
    rows = plc.stream_compaction.apply_retention_mask(plc.Table(list(columns)), mask)
    return list(rows.columns())


def leads(column: plc.Column) -> plc.Column | None:
    """Return numbers in the order of strings without NULL, equal for those whose first 8 bytes are; None while the kernel is compiled."""
    code = machine_code(kernels.LEAD, partial(kernels.sort_kernel, kernels.LEAD))
    if code is None or not column.size():
        return None
    rows, offsets, data = column.size(), column.child(0), column.data()
    wide = offsets.type().id() == plc.TypeId.INT64
    first = column.offset() + offsets.offset()
    place = int(offsets.data().ptr) + first * (8 if wide else 4)
    memory = plc.gpumemoryview(DeviceBuffer(size=rows * 8))
    out = plc.Column(col.INT64, rows, memory, None, 0, 0, [])
    given = {
        "rows": rows, "characters": place if data is None else int(data.ptr), "wide": int(wide), "offsets32": place,
        "offsets64": place, "out": int(out.data().ptr),
    }  # fmt: skip
    launch.run_fixed(code, kernels.LEAD, kernels.LEAD_SIGNATURE, rows, given)
    return out
