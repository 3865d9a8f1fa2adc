"""Which rows of a table go to which worker: rows in the order of slots, and for each worker the stretches of them that it gets.

A slot is a part of the keys' hash, a range of a key's values, or a stretch of sorted rows.  Rows of one slot keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pylibcudf as plc

from ....plan.exchange import Exchange
from ....plan.types import BIGINT
from ...context import Context, Peers
from ...cut_sorted_rows import sort_columns
from ...exchange_rows import ends_of_parts
from ...heavy_keys import heavy_parts
from ...spilling import PARTS
from .. import table as tables
from ..columns import INT32, INT64, binary, cast, scalar, select, sequence
from ..join.join_parts import part_numbers, piece_of
from ..table import Table

Op = plc.binaryop.BinaryOperator
BOOL = plc.DataType(plc.TypeId.BOOL8)
ASCENDING, NO_NULLS = [plc.types.Order.ASCENDING], [plc.types.NullOrder.AFTER]

Stretch = tuple[int, int]  # from one row to before another one
Ends = Callable[[pa.RecordBatch], list[int]]


class DeviceParts(NamedTuple):
    """Rows, and the stretches of them that each worker gets."""

    rows: plc.Table
    of_workers: Sequence[Sequence[Stretch]]


def device_parts(
    node: Exchange, table: Table, ends_of: Ends, context: Context
) -> DeviceParts | None:
    """Return what each worker gets of a table, None where all rows stay; workers meet where they have to agree on it.

    `ends_of` says where sorted rows with such keys are cut.
    """
    peers = context.peers
    assert peers is not None
    if node.is_spread:
        return _beside_heavy(node, table, context, peers)
    if node.orders:
        keys = piece_of(table, [0, table.num_rows], sort_columns(node)).rows
        stretches = [[stretch] for stretch in pairwise(ends_of(keys))]
        return DeviceParts(tables.plc_table(table, node.columns), stretches)
    if not table.num_rows or (node.of_first and peers.rank):
        return DeviceParts(
            tables.plc_table(table, node.columns), [[] for _ in range(peers.workers)]
        )
    if node.keys:
        slots = _ranges(node, table) if node.cuts else _hashes(node, table)
        ends = list(range(peers.workers + 1)) if node.cuts else ends_of_parts(peers.workers)
        rows, bounds = _in_order(node, table, slots, ends[-1])
        return DeviceParts(rows, [[(bounds[a], bounds[b])] for a, b in pairwise(ends)])
    whole: list[Stretch] = [(0, table.num_rows)]
    is_for = [node.kind == "broadcast" or rank == 0 for rank in range(peers.workers)]
    rows = tables.plc_table(table, node.columns)
    return DeviceParts(rows, [whole if wanted else [] for wanted in is_for])


def _beside_heavy(
    node: Exchange, table: Table, context: Context, peers: Peers
) -> DeviceParts | None:
    """Parts of the hash that are heavy stay here, or go to all beside those that do; the others go where keys say, or nowhere."""
    bounds = [0] * (PARTS + 1)
    if table.num_rows:
        hashes = _hashes(node, table)
        bounds = _bounds(plc.sorting.sort(plc.Table([hashes]), ASCENDING, NO_NULLS), PARTS)
    heavy = heavy_parts(node, [bounds], context)
    if node.kind == "spread" and not heavy:
        return None
    found: list[list[Stretch]] = [[] for _ in range(peers.workers)]
    if not table.num_rows or (node.of_first and peers.rank):
        return DeviceParts(tables.plc_table(table, node.columns), found)
    last = peers.workers  # the slot of heavy keys, behind those of the workers
    if node.kind == "spread":
        owners = [peers.rank] * PARTS
    else:
        to = ends_of_parts(peers.workers)
        owners = [rank for rank, (a, b) in enumerate(pairwise(to)) for _ in range(a, b)]
    slots = _listed(hashes, [last if i in heavy else rank for i, rank in enumerate(owners)])
    if node.cuts and node.kind != "spread":
        is_light = binary(slots, scalar(last, INT32), Op.LESS, BOOL)
        slots = select(is_light, _ranges(node, table), slots)
    rows, bounds = _in_order(node, table, slots, last + 1)
    for rank, stretches in enumerate(found):
        stretches.append((bounds[rank], bounds[rank + 1]))
        if node.beside is not None or rank == peers.rank:
            stretches.append((bounds[last], bounds[last + 1]))
    return DeviceParts(rows, found)


def _hashes(node: Exchange, table: Table) -> plc.Column:
    return part_numbers(tables.plc_table(table, node.keys).columns())


def _listed(places: plc.Column, numbers: Sequence[int]) -> plc.Column:
    """Return what stands at places of a list of numbers."""
    listed = tables.to_device(pa.array(numbers, pa.int64()), BIGINT)
    picked = plc.copying.gather(plc.Table([listed]), places, tables.DONT_CHECK).columns()[0]
    return cast(picked, INT32)


def _ranges(node: Exchange, table: Table) -> plc.Column:
    """The range in which each row's key lies; NULL is with the least."""
    (key,) = tables.plc_table(table, node.keys).columns()
    cuts = plc.Table([tables.to_device(pa.array(node.cuts, pa.int64()), BIGINT)])
    found = plc.search.upper_bound(cuts, plc.Table([cast(key, INT64)]), ASCENDING, NO_NULLS)
    if key.null_count():
        found = select(plc.unary.is_valid(key), found, scalar(0, INT32))
    return found


def _in_order(
    node: Exchange, table: Table, slots: plc.Column, count: int
) -> tuple[plc.Table, list[int]]:
    """Return rows in the order of their slots, and where each slot begins, and their end."""
    numbers = plc.Table([slots])
    order = plc.sorting.stable_sorted_order(numbers, ASCENDING, NO_NULLS)
    bounds = _bounds(plc.copying.gather(numbers, order, tables.DONT_CHECK), count)
    picked = tables.gather(table, order, node.columns)
    return tables.plc_table(picked, node.columns), bounds


def _bounds(ordered: plc.Table, count: int) -> list[int]:
    wanted = plc.Table([sequence(count + 1)])
    found: list[int] = (
        plc.search.lower_bound(ordered, wanted, ASCENDING, NO_NULLS).to_arrow().to_pylist()
    )
    return found
