"""Rows of keys that many rows of one side of a join have: they stay where they are, and the other side's rows of these keys go to all workers.

Which keys are heavy is asked of their hash: the workers count the rows of each of its parts together.  A part with more than half of
a worker's even share would make that worker late.  To send the other side's rows of it to all costs some 1/64 of that side for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from ...plan.exchange import Exchange
from ..context import Context
from ..spill_area import SpilledPiece
from ..spilling import PARTS

SHARE = 0.5  # of a worker's even share of all rows, what a part of the hash may have
# How many times the rows of an even part a heavy one has at least, with however many workers
TIMES_USUAL = 4


def heavy_parts(
    node: Exchange, bounds: Iterable[Sequence[int]], context: Context
) -> frozenset[int]:
    """Return the parts that stay where they are, or of which the other side's do; all workers say the same.

    `bounds` say of some rows at a time where those of each part begin, and their end.
    """
    peers = context.peers
    assert peers is not None
    if node.beside is not None:
        return context.heavy[node.beside.number]
    counts = np.zeros(PARTS, np.int64)
    for ends in bounds:
        counts += np.diff(ends)
    told = [pa.record_batch({"rows": counts})]
    # A meeting that is not the exchange's own
    met = peers.exchange(~node.number, [told] * peers.workers)
    total = np.sum([batch.column(0).to_numpy() for batch in met], axis=0)
    most = max(SHARE / peers.workers, TIMES_USUAL / PARTS) * total.sum()
    found = context.heavy[node.number] = frozenset(np.flatnonzero(total > most).tolist())
    if found:
        rows = int(total[list(found)].sum())
        context.remarks[id(node)] = f"{rows:,} rows of heavy keys stay where they are"
    else:
        peers.over.add(~node.number)
    return found


def batches_of(
    pieces: Sequence[SpilledPiece], heavy: frozenset[int], wanted: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the parts that are heavy, or of those that are not."""
    for piece in pieces:
        for part in range(PARTS):
            if (part in heavy) == wanted and piece.bounds[part] < piece.bounds[part + 1]:
                yield from piece.parts(part, part + 1)
