"""Rows that the workers of a cluster give each other, in the form in which parts of joins are spilled: as they lie."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pyarrow as pa

from ..plan import physical as p
from ..plan.partial import Exchange
from .context import Context, Peers
from .run_unfused import T
from .spilling import PARTS, Parting


def exchanged(
    node: Exchange, table: T, backends: Mapping[p.Device, Parting[T]], context: Context
) -> T:
    """Return the rows that a worker has after an exchange; raises `MemoryError` where there is no room for them."""
    backend, columns, peers = backends[node.device], node.columns, context.peers
    assert peers is not None
    if not columns:  # rows alone, which no message could count
        count = pa.RecordBatch.from_arrays([pa.nulls(backend.num_rows(table))], [""])
        arrived = peers.exchange(node.number, _sent(node, count, peers))
        total = sum(batch.num_rows for batch in arrived)
        return backend.from_arrow(pa.table({"": pa.nulls(total)}).select([]), ())
    context.ask(node, backend.num_bytes(table))
    if node.keys:
        pieces = list(backend.parted(table, node.keys, columns))
        ends = [PARTS * rank // peers.workers for rank in range(peers.workers + 1)]
        parts = [
            [batch for piece in pieces for batch in piece.parts(first, last)]
            for first, last in pairwise(ends)
        ]
        if node.of_first and peers.rank:
            parts = [[] for _ in parts]
        own = node.kind == "pick"
        arrived = parts[peers.rank] if own else peers.exchange(node.number, parts)
    else:
        whole = backend.piece_of(table, [0, backend.num_rows(table)], columns).rows
        arrived = peers.exchange(node.number, _sent(node, whole, peers))
    context.ask(node, sum(batch.nbytes for batch in arrived))
    return backend.unparted(arrived, columns)


def _sent(node: Exchange, rows: pa.RecordBatch, peers: Peers) -> list[list[pa.RecordBatch] | None]:
    """What each worker gets: all that there is, or the first alone does."""
    part = [rows.slice(0, 0) if node.of_first and peers.rank else rows]
    return [part if node.kind == "broadcast" or to == 0 else None for to in range(peers.workers)]
