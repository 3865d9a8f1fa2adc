"""How long workers take to give each other bytes, which benchmarks and `fuseline doctor --cluster` ask."""

from __future__ import annotations

import time
from statistics import quantiles
from typing import Literal as OneOf

import numpy as np
import pyarrow as pa

from ..operators.context import Context
from .own_plans import FIRST
from .query_peers import QueryPeers

# A meeting without data, or as exchanges; of rows: those of two columns of integers, which are cut by the hash of one
TrialKind = OneOf["meeting", "gather", "broadcast", "hash", "rows"]
MEETINGS = 21


def trial_seconds(peers: QueryPeers, kind: TrialKind, nbytes: int, context: Context) -> float:
    """Exchange bytes, all that this worker has to give; return the seconds after all have met."""
    workers = peers.workers
    if kind == "meeting":
        return _meeting_seconds(peers)
    if peers.linked:
        from ..operators.gpu.exchange.device_exchange import moved_seconds, rows_seconds

        context.peers = peers
        return (
            rows_seconds(peers, nbytes, context)
            if kind == "rows"
            else moved_seconds(peers, kind, nbytes)
        )
    peers.exchange(0, [[_zeros(1)]] * workers)
    begun = time.perf_counter()
    if kind in ("hash", "rows"):
        peers.exchange(1, [[_zeros(nbytes // workers)] for _ in range(workers)])
    else:
        rows = [_zeros(nbytes)]
        to = range(workers)
        peers.exchange(1, [rows if kind == "broadcast" or r == FIRST else None for r in to])
    return time.perf_counter() - begun


def _meeting_seconds(peers: QueryPeers) -> float:
    """Return the median of the seconds that workers take who meet again as soon as they have met."""
    nothing = [[_zeros(1)]] * peers.workers
    found = []
    for number in range(MEETINGS + 1):
        begun = time.perf_counter()
        if peers.linked:
            peers.meet(number, b"")
        else:
            peers.exchange(number, nothing)
        found.append(time.perf_counter() - begun)
    return quantiles(found[1:], n=2)[0]


def _zeros(nbytes: int) -> pa.RecordBatch:
    return pa.record_batch({"": np.zeros(nbytes, np.int8)})
