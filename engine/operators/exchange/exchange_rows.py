"""Rows that the workers of a cluster give each other, in the form in which parts of joins are spilled: as they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ...plan import physical as p
from ...plan.exchange import Exchange
from ...plan.expr import Column
from ...plan.types import to_arrow
from ..context import Context, Peers
from ..run_unfused import T
from ..spill_area import SpilledPiece
from ..spilling import PARTS, Parting
from .cut_sorted_rows import ends_of_stretches, sort_columns
from .heavy_keys import batches_of, heavy_parts

Parts = Sequence[list[pa.RecordBatch] | None]


def exchanged(
    node: Exchange, table: T, backends: Mapping[p.Device, Parting[T]], context: Context
) -> T:
    """Return the rows that a worker has after an exchange; raises `MemoryError` where there is no room for them."""
    assert context.peers is not None
    found = _exchanged(node, table, backends[node.device], context)
    context.peers.over.add(node.number)
    return found


def _exchanged(node: Exchange, table: T, backend: Parting[T], context: Context) -> T:
    columns, peers = node.columns, context.peers
    assert peers is not None
    parts: Parts
    if not columns:  # rows alone, which no message could count
        count = pa.RecordBatch.from_arrays([pa.nulls(backend.num_rows(table))], [""])
        parts = _sent(node, count, peers)
        own = node.kind == "pick"
        arrived = parts[peers.rank] or [] if own else peers.exchange(node.number, parts)
        total = sum(batch.num_rows for batch in arrived)
        return backend.from_arrow(pa.table({"": pa.nulls(total)}).select([]), ())
    if backend.exchanged is not None:
        ends = partial(ends_of_stretches, node, backend=backend, context=context)
        moved = backend.exchanged(node, table, ends, context)
        if moved is not None:
            return moved
    context.ask(node, backend.num_bytes(table))
    found = _parts(node, table, backend, context)
    if found is None:
        return table
    parts = found
    if node.keys and node.of_first and peers.rank:
        parts = [[] for _ in parts]
    own = node.kind == "pick"
    arrived = parts[peers.rank] or [] if own else peers.exchange(node.number, parts)
    context.ask(node, sum(batch.nbytes for batch in arrived))
    return backend.unparted(arrived, columns)


def _parts(node: Exchange, table: T, backend: Parting[T], context: Context) -> Parts | None:
    """Return what each worker gets of a table, None where it stays as it is."""
    peers = context.peers
    assert peers is not None
    pieces: list[SpilledPiece] = []
    if node.kind == "spread" or not node.keys or node.cuts:
        numbers = backend.parted(table, node.keys, node.keys)
    else:
        numbers = iter(pieces := list(backend.parted(table, node.keys, node.columns)))
    if node.is_spread:
        heavy = heavy_parts(node, (piece.bounds for piece in numbers), context)
        if heavy:
            pieces = pieces or list(backend.parted(table, node.keys, node.columns))
            return _beside_heavy(node, pieces, heavy, peers)
    if node.kind == "spread":
        return None
    if node.orders:
        rows = _whole(backend, table, node.columns)
        keys = rows.select([node.columns.index(column) for column in sort_columns(node)])
        ends = ends_of_stretches(node, keys, backend, context)
        return [[rows.slice(begin, end - begin)] for begin, end in pairwise(ends)]
    if node.cuts:
        return _in_ranges(node, _whole(backend, table, node.columns))
    if node.keys:
        return [
            [batch for piece in pieces for batch in piece.parts(first, last)]
            for first, last in pairwise(ends_of_parts(peers.workers))
        ]
    return _sent(node, _whole(backend, table, node.columns), peers)


def _whole(backend: Parting[T], table: T, columns: tuple[Column, ...]) -> pa.RecordBatch:
    return backend.piece_of(table, [0, backend.num_rows(table)], columns).rows


def parts_of_few(node: Exchange, rows: pa.Table, peers: Peers) -> Parts:
    """What each worker gets of few rows, which all go to the first or to each."""
    arrays = [column.combine_chunks() for column in rows.columns]
    names = [str(column.id) for column in node.columns]
    return _sent(node, pa.RecordBatch.from_arrays(arrays, names), peers)


def few_together(
    batches: Sequence[pa.RecordBatch], columns: Sequence[Column]
) -> tuple[dict[Column, pa.Array], int]:
    """Return few rows of all workers by their columns, and how many there are."""
    arrays = {
        column: pa.chunked_array([b.column(i) for b in batches], to_arrow(column.type))
        for i, column in enumerate(columns)
    }
    count = sum(batch.num_rows for batch in batches)
    return {column: array.combine_chunks() for column, array in arrays.items()}, count


def ends_of_parts(workers: int) -> list[int]:
    """The parts of a hash of which each worker has those from one end to the next."""
    return [PARTS * rank // workers for rank in range(workers + 1)]


def _beside_heavy(
    node: Exchange, pieces: Sequence[SpilledPiece], heavy: frozenset[int], peers: Peers
) -> Parts:
    """Parts that are heavy stay here, or go to all beside those that do; the others go where keys say, or nowhere."""
    parts: list[list[pa.RecordBatch]] = [[] for _ in range(peers.workers)]
    light = list(batches_of(pieces, heavy, wanted=False))
    if node.kind == "spread":
        parts[peers.rank] += light
    elif node.cuts:
        for rows in light:
            for part, found in zip(parts, _in_ranges(node, rows), strict=True):
                part.extend(found or [])
    else:
        for part, (first, last) in zip(parts, pairwise(ends_of_parts(peers.workers)), strict=True):
            own = frozenset(range(first, last)) - heavy
            part.extend(batches_of(pieces, own, wanted=True))
    to = range(peers.workers) if node.beside is not None else (peers.rank,)
    rest = list(batches_of(pieces, heavy, wanted=True))
    for rank in to:
        parts[rank] += rest
    return parts


def _in_ranges(node: Exchange, rows: pa.RecordBatch) -> Parts:
    """Cut rows at values of an integer; those where it is NULL are with the least."""
    (key,) = node.keys
    values = rows.column(node.columns.index(key)).cast(pa.int64())
    keys = values.fill_null(np.iinfo(np.int64).min).to_numpy(zero_copy_only=False)
    ranks = np.searchsorted(np.array(node.cuts, np.int64), keys, side="right")
    ordered = rows.take(pa.array(np.argsort(ranks, kind="stable")))
    ends = [0, *np.cumsum(np.bincount(ranks, minlength=len(node.cuts) + 1)).tolist()]
    return [[ordered.slice(begin, end - begin)] for begin, end in pairwise(ends)]


def _sent(node: Exchange, rows: pa.RecordBatch, peers: Peers) -> Parts:
    """What each worker gets: all that there is, or the first alone does."""
    part = [rows.slice(0, 0) if node.of_first and peers.rank else rows]
    return [part if node.kind == "broadcast" or to == 0 else None for to in range(peers.workers)]
