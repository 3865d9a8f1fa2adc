"""How fast GPUs give each other bytes, and rows that are cut by a hash; the best of a few times, since who comes first waits."""

from __future__ import annotations

import time

import pyarrow as pa
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....plan.exchange import Exchange
from ....plan.expr import new_column
from ....plan.physical import Stored
from ....plan.types import BIGINT
from ...context import Context, MovedBytes, Peers
from ..columns import INT64, sequence
from ..memory.device import synchronize
from ..table import Table
from .device_exchange import exchanged

TIMES = 6
BYTES_A_ROW = 16
STEP = 7  # from one key to the next


def moved_seconds(peers: Peers, kind: str, nbytes: int) -> float:
    """Return the seconds in which bytes that lie ready are moved as an exchange of a kind moves them."""
    others = [rank for rank in range(peers.workers) if rank != peers.rank]
    share = max(1, nbytes // peers.workers if kind == "hash" else nbytes)
    to = [rank for rank in others if kind != "gather" or rank == 0]
    come = [rank for rank in others if kind != "gather" or peers.rank == 0]
    given = DeviceBuffer(size=share, stream=plc.utils.CUDF_DEFAULT_STREAM)
    taken = [DeviceBuffer(size=share, stream=plc.utils.CUDF_DEFAULT_STREAM) for _ in come]
    outgoing = [MovedBytes(rank, int(given.ptr), share) for rank in to]
    incoming = [
        MovedBytes(rank, int(buffer.ptr), share) for rank, buffer in zip(come, taken, strict=True)
    ]
    peers.exchange(0, [[pa.record_batch({"": [0]})]] * peers.workers)
    found = []
    for number in range(TIMES):
        begun = time.perf_counter()
        peers.move(number, outgoing, incoming)
        found.append(time.perf_counter() - begun)
    return min(found[1:])


def rows_seconds(peers: Peers, nbytes: int, context: Context) -> float:
    """Return the seconds of a whole exchange of rows by the hash of a key, from columns to columns."""
    key, value = new_column("key", BIGINT), new_column("value", BIGINT)
    rows = max(1, nbytes // BYTES_A_ROW)
    columns = {
        key.id: sequence(rows, peers.rank * rows, STEP, INT64),
        value.id: sequence(rows, 0, 1, INT64),
    }
    table, stored = Table(columns, rows), Stored(0, (key, value), device="gpu")
    context.fuse = "always"  # kernels are compiled in the first run, which does not count
    found = []
    for number in range(1, TIMES + 1):
        node = Exchange(stored, "hash", number, (key,), device="gpu")
        synchronize()
        peers.exchange(-number, [[pa.record_batch({"": [0]})]] * peers.workers)
        begun = time.perf_counter()
        made = exchanged(node, table, lambda keys: [], context)
        synchronize()
        found.append(time.perf_counter() - begun)
        del made
    return min(found[1:])
