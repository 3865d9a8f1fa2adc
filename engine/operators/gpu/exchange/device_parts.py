"""Which rows of a table go to which worker: the stretches of tables that each gets.

A slot is what one worker gets by a hash of keys or by the range of a key's values, or what all get since very many rows have its keys.
Rows of slots are picked for each if workers are few, which reads all rows as often; else rows are brought into the order of their slots, which are one
byte wide where they can be, so that a radix sort makes one pass.  Either way rows of one slot keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pylibcudf as plc

from ....plan.arrow.arrow_arrays import array_from
from ....plan.exchange import Exchange
from ....plan.expr import Column
from ....plan.types import BIGINT
from ...context import Context, Peers
from ...exchange.exchange_placed import route_of
from ...exchange.exchange_rows import ends_of_parts, heavy_parts, sort_columns
from ...spilling import PARTS
from .. import table as tables
from ..columns import INT32, INT64, binary, cast, scalar, select, sequence
from ..dictionaries import Coded
from ..join.join_parts import key_hashes, parts_of_hashes, piece_of, text_hashes
from ..late_materialization import LateColumns
from ..table import Table
from .coded_exchange import file_column

Op = plc.binaryop.BinaryOperator
BOOL = plc.DataType(plc.TypeId.BOOL8)
NARROW = plc.DataType(plc.TypeId.INT8)
MOST_NARROW = 127  # slots, and their end
# Workers for which rows are picked one worker after the other: of rows of 16 bytes that moves 50 bytes a row for two of them and 67 for
# three, and an order and its use some 57, of which the reads are less even [model]
FEW = 3
ASCENDING, NO_NULLS = [plc.types.Order.ASCENDING], [plc.types.NullOrder.AFTER]

Ends = Callable[[pa.RecordBatch], list[int]]


class Stretch(NamedTuple):
    """The rows of a table from one to before another one."""

    rows: plc.Table
    begin: int
    end: int

    @property
    def is_whole(self) -> bool:
        return self.begin == 0 and self.end == self.rows.num_rows()


class RowNumbers(NamedTuple):
    """What says to which slot each row belongs, of so many: the one that owns its number; without numbers there are no rows.

    With `keys`, numbers are hashes of these, and owned are parts of the hash: the remainders of `PARTS`, 0 where a key is NULL.
    """

    slots: int
    numbers: plc.Column | None = None
    keys: Sequence[plc.Column] = ()
    owners: Sequence[int] = ()


DeviceParts = Sequence[Sequence[Stretch]]  # what each worker gets


def device_parts(
    node: Exchange, table: Table, ends_of: Ends, context: Context
) -> DeviceParts | None:
    """Return what each worker gets of a table, None where all rows stay; workers meet where they have to agree on it.

    `ends_of` says where sorted rows with such keys are cut.
    """
    peers = context.peers
    assert peers is not None
    if node.orders:
        keys = piece_of(table, [0, table.num_rows], sort_columns(node)).rows
        rows = tables.plc_table(table, node.columns)
        return [[Stretch(rows, a, b)] for a, b in pairwise(ends_of(keys))]
    if node.kind == "pick" and node.keys:
        return _own_alone(node, table, peers, context)
    if node.keys:
        numbers = row_numbers(node, table, context)
        if numbers is None:
            return None
        if numbers.numbers is None:
            return [[] for _ in range(peers.workers)]
        cut, route = cut_in_slots(node, table, numbers), route_of(node, peers.workers)
        return [[cut[slot] for slot in route(peers.rank, to)] for to in range(peers.workers)]
    if not table.num_rows or (node.of_first and peers.rank):
        return [[] for _ in range(peers.workers)]
    rows = tables.plc_table(table, node.columns)
    whole = [Stretch(rows, 0, table.num_rows)]
    is_for = [node.kind == "broadcast" or rank == 0 for rank in range(peers.workers)]
    return [whole if wanted else [] for wanted in is_for]


def _own_alone(node: Exchange, table: Table, peers: Peers, context: Context) -> DeviceParts:
    """Of rows that each worker has, those that belong to this one."""
    found: list[list[Stretch]] = [[] for _ in range(peers.workers)]
    if table.num_rows and not (node.of_first and peers.rank):
        slots = _ranges(node, table) if node.cuts else _parts(node, table, context)
        ends = list(range(peers.workers + 1)) if node.cuts else ends_of_parts(peers.workers)
        found[peers.rank].append(_picked(node, table, _narrow(slots, ends[-1]), ends, peers.rank))
    return found


def sliced(stretch: Stretch) -> plc.Table:
    """Return a stretch as a table."""
    rows, begin, end = stretch
    return rows if stretch.is_whole else plc.copying.slice(rows, [begin, end])[0]


def row_numbers(node: Exchange, table: Table, context: Context) -> RowNumbers | None:
    """Return what says to which slot each row belongs, None where all rows stay; workers meet where they have to agree on it."""
    peers = context.peers
    assert peers is not None
    heavy: frozenset[int] = frozenset()
    if node.is_spread:
        heavy = heavy_parts(node, map(_part_bounds, [node], [table], [context]), context)
        if node.kind == "spread" and not heavy:
            return None
    last = peers.workers  # the slot of heavy keys, behind those of the workers
    slots = last + 1 if node.is_spread else last
    if not table.num_rows or (node.of_first and peers.rank):
        return RowNumbers(slots)
    owners = [peers.rank] * PARTS
    if node.kind != "spread":
        to = ends_of_parts(peers.workers)
        owners = [rank for rank, (a, b) in enumerate(pairwise(to)) for _ in range(a, b)]
    owners = [last if part in heavy else rank for part, rank in enumerate(owners)]
    if node.cuts and node.kind != "spread":
        numbers = _ranges(node, table)
        if heavy:
            found = _listed(_parts(node, table, context), owners)
            numbers = select(binary(found, scalar(last, INT32), Op.LESS, BOOL), numbers, found)
        return RowNumbers(slots, numbers, owners=range(slots))
    return RowNumbers(slots, *_hashes(node, table, context), owners)


def cut_in_slots(node: Exchange, table: Table, numbers: RowNumbers) -> list[Stretch]:
    """Return the rows of each slot, of a table that has some."""
    slots, keys = numbers.numbers, numbers.keys
    if keys:
        slots = parts_of_hashes(slots, keys, NARROW)
        if not node.is_spread:
            return _cut(node, table, slots, ends_of_parts(numbers.slots))
        slots = _listed(slots, numbers.owners)
    return _cut(node, table, slots, list(range(numbers.slots + 1)))


def _part_bounds(node: Exchange, table: Table, context: Context) -> list[int]:
    """Where the rows of each part of the hash would begin if they were in that order, and their end."""
    if not table.num_rows:
        return [0] * (PARTS + 1)
    parts = plc.Table([_parts(node, table, context)])
    return _bounds(plc.sorting.sort(parts, ASCENDING, NO_NULLS), PARTS)


def _parts(node: Exchange, table: Table, context: Context) -> plc.Column:
    return parts_of_hashes(*_hashes(node, table, context), NARROW)


def _hashes(node: Exchange, table: Table, context: Context) -> tuple[plc.Column, list[plc.Column]]:
    """Return the hashes of rows' keys, and columns that are NULL where these are."""
    hashed = {key: h for key in node.keys if (h := _hashed_rows(key, table, context)) is not None}
    tables.fetch(table, [key.id for key in node.keys if key not in hashed])
    keys = [hashed[key] if key in hashed else table.columns[key.id] for key in node.keys]
    return key_hashes(keys), [key.codes if isinstance(key, Coded) else key for key in keys]


MOST_HASHED = 1 << 24  # rows of a relation, whose hashes are kept


def _hashed_rows(key: Column, table: Table, context: Context) -> plc.Column | None:
    """Return the hashes of a text that is to be fetched from a column of files, of which those of all rows are kept beside it."""
    columns = table.columns
    if type(columns) is not LateColumns or columns.may_be_null(key.id):
        return None
    fetch = columns.late(key.id)
    origin = None if fetch is None else file_column(fetch)
    if fetch is None or origin is None or fetch.lying.size() > MOST_HASHED:
        return None
    at = origin._replace(rows=("hashed", origin.rows))
    hashes = context.cache.get(at)
    if hashes is None:
        hashes = text_hashes(fetch.lying)
        context.cache.put(at, hashes, hashes.device_buffer_size())
    (found,) = columns.places[columns.fetches[key.id][0]].gather([hashes])
    return found


def _listed(places: plc.Column, numbers: Sequence[int]) -> plc.Column:
    """Return what stands at places of a list of numbers."""
    listed = tables.to_device(array_from(numbers, pa.int64()), BIGINT)
    at = cast(places, INT32)
    picked = plc.copying.gather(plc.Table([listed]), at, tables.DONT_CHECK).columns()[0]
    return cast(picked, INT32)


def _ranges(node: Exchange, table: Table) -> plc.Column:
    """The range in which each row's key lies; NULL is with the least."""
    (key,) = tables.plc_table(table, node.keys).columns()
    cuts = plc.Table([tables.to_device(array_from(node.cuts, pa.int64()), BIGINT)])
    found = plc.search.upper_bound(cuts, plc.Table([cast(key, INT64)]), ASCENDING, NO_NULLS)
    if key.null_count():
        found = select(plc.unary.is_valid(key), found, scalar(0, INT32))
    return found


def _cut(node: Exchange, table: Table, slots: plc.Column, ends: Sequence[int]) -> list[Stretch]:
    """Return the rows of the slots from each of `ends` to the next; the first one is 0, and the last one above all slots."""
    slots, count = _narrow(slots, ends[-1]), len(ends) - 1
    if count > FEW:
        return _in_order(node, table, slots, ends)
    return [_picked(node, table, slots, ends, number) for number in range(count)]


def _narrow(slots: plc.Column, end: int) -> plc.Column:
    """Return slots, all of which are below an end, in one byte each if that can hold them."""
    return cast(slots, NARROW) if end <= MOST_NARROW else slots


def _picked(
    node: Exchange, table: Table, slots: plc.Column, ends: Sequence[int], number: int
) -> Stretch:
    """Return the rows of the slots from one of `ends` to the next."""
    is_in = _is_between(slots, ends[number], ends[number + 1], ends[-1])
    rows = tables.plc_table(tables.keep_rows(table, is_in, node.columns), node.columns)
    return Stretch(rows, 0, rows.num_rows())


def _is_between(slots: plc.Column, first: int, last: int, end: int) -> plc.Column:
    """Whether each slot is one of those from the first to before the last, of those from 0 to before an end."""
    kind = slots.type()
    if last == first + 1:
        return binary(slots, scalar(first, kind), Op.EQUAL, BOOL)
    from_first = binary(slots, scalar(first, kind), Op.GREATER_EQUAL, BOOL)
    if last == end:
        return from_first
    to_last = binary(slots, scalar(last, kind), Op.LESS, BOOL)
    return binary(from_first, to_last, Op.LOGICAL_AND, BOOL) if first else to_last


def _in_order(
    node: Exchange, table: Table, slots: plc.Column, ends: Sequence[int]
) -> list[Stretch]:
    """Bring rows into the order of their slots."""
    numbers = plc.Table([slots])
    order = plc.sorting.stable_sorted_order(numbers, ASCENDING, NO_NULLS)
    bounds = _bounds(plc.copying.gather(numbers, order, tables.DONT_CHECK), ends[-1])
    picked = tables.gather(table, order, node.columns)
    rows = tables.plc_table(picked, node.columns)
    return [Stretch(rows, bounds[first], bounds[last]) for first, last in pairwise(ends)]


def _bounds(ordered: plc.Table, count: int) -> list[int]:
    kind = ordered.columns()[0].type()
    wanted = plc.Table([sequence(count + 1, data_type=kind)])
    found: list[int] = (
        plc.search.lower_bound(ordered, wanted, ASCENDING, NO_NULLS).to_arrow().to_pylist()
    )
    return found
