"""Rows that the workers of a cluster give each other, in the form in which parts of joins are spilled: as they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ..plan import physical as p
from ..plan.exchange import Exchange
from ..plan.expr import Column
from .context import Context, Peers
from .cut_sorted_rows import ends_of_stretches
from .run_unfused import T
from .spilling import PARTS, Parting

Parts = Sequence[list[pa.RecordBatch] | None]


def exchanged(
    node: Exchange, table: T, backends: Mapping[p.Device, Parting[T]], context: Context
) -> T:
    """Return the rows that a worker has after an exchange; raises `MemoryError` where there is no room for them."""
    backend, columns, peers = backends[node.device], node.columns, context.peers
    assert peers is not None
    parts: Parts
    if not columns:  # rows alone, which no message could count
        count = pa.RecordBatch.from_arrays([pa.nulls(backend.num_rows(table))], [""])
        parts = _sent(node, count, peers)
        own = node.kind == "pick"
        arrived = parts[peers.rank] or [] if own else peers.exchange(node.number, parts)
        total = sum(batch.num_rows for batch in arrived)
        return backend.from_arrow(pa.table({"": pa.nulls(total)}).select([]), ())
    context.ask(node, backend.num_bytes(table))
    if node.orders:
        rows = _whole(backend, table, columns)
        ends = ends_of_stretches(node, rows, backend, context)
        parts = [[rows.slice(begin, end - begin)] for begin, end in pairwise(ends)]
    elif node.cuts:
        parts = _in_ranges(node, _whole(backend, table, columns))
    elif node.keys:
        pieces = list(backend.parted(table, node.keys, columns))
        ends = [PARTS * rank // peers.workers for rank in range(peers.workers + 1)]
        parts = [
            [batch for piece in pieces for batch in piece.parts(first, last)]
            for first, last in pairwise(ends)
        ]
    else:
        parts = _sent(node, _whole(backend, table, columns), peers)
    if node.keys and node.of_first and peers.rank:
        parts = [[] for _ in parts]
    own = node.kind == "pick"
    arrived = parts[peers.rank] or [] if own else peers.exchange(node.number, parts)
    context.ask(node, sum(batch.nbytes for batch in arrived))
    return backend.unparted(arrived, columns)


def _whole(backend: Parting[T], table: T, columns: tuple[Column, ...]) -> pa.RecordBatch:
    return backend.piece_of(table, [0, backend.num_rows(table)], columns).rows


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
