"""An exchange between GPUs: each worker's rows packed into one buffer, moved in rounds, and put together in the order of workers.

Columns of fixed width, and texts of which all workers have the codes or the rows (`coded_exchange`), come where they stay at once
(`placed_exchange`), unless they are sorted.  Of others libcudf packs columns into one buffer, so that each worker gets one message a round.  Rows that stay are not packed.  Few rows that go to
the first worker, or to each, go by the host in one meeting: an aggregate of a few groups lies there, and is put together there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import field

import pyarrow as pa
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....plan.exchange import Exchange
from ....plan.expr import Column, new_column
from ....plan.physical import Stored
from ....plan.types import BIGINT
from ....records import dataclass
from ...context import Context, MovedBytes, Peers
from ...exchange.exchange_rounds import (
    FEW_ROWS,
    Arrived,
    ExchangeRounds,
    Packed,
    Space,
    exchange_in_rounds,
)
from ...exchange.exchange_rows import few_together, parts_of_few
from ..columns import INT64, empty, sequence
from ..memory import to_host
from ..memory.device import device_memory, synchronize, with_room
from ..memory.upload import on_host
from ..table import Table, check_rows, device_type
from .coded_exchange import with_codes
from .device_parts import DeviceParts, Ends, Stretch, device_parts, sliced
from .placed_exchange import is_placed, picked_table, placed_table

# Rows that a worker gives by the host, which is one meeting too many where another has more
MOST_FEW = 1 << 12
ROUND_SHARE = 32  # of the device's memory, that a worker packs at a time


def exchanged(node: Exchange, table: Table, ends_of: Ends, context: Context) -> Table | None:
    """Return the rows that this worker has after an exchange, as they came from the other GPUs; None where they have to go by the host.

    Raises `MemoryError` when there is no room for them; a second call then goes on.
    """
    peers = context.peers
    assert peers is not None
    if node.kind != "pick" and not peers.has_link:
        return None
    few = _few_exchanged(node, table, peers, context)
    if few is not None:
        return few
    coded = with_codes(node, table, context)
    sent = coded.sent
    made = _moved(sent, coded.table, ends_of, context)
    if (remark := context.remarks.pop(id(sent), None)) is not None:
        context.remarks[id(node)] = remark
    return None if made is None else coded.restored(made)


def _moved(node: Exchange, table: Table, ends_of: Ends, context: Context) -> Table | None:
    """Exchange rows as they are."""
    peers = context.peers
    assert peers is not None
    if is_placed(node):
        return placed_table(node, table, context)
    if node.kind == "pick":
        picked = with_room(lambda: picked_table(node, table, context), context)
        if picked is not None:
            return picked
    try:
        parts = with_room(lambda: device_parts(node, table, ends_of, context), context)
    except MemoryError:
        # The others would wait where they have to agree on the parts
        if node.kind == "pick" or node.is_spread or node.orders:
            raise
        sender = None
    else:
        if parts is None:
            return table
        if node.kind == "pick":
            return _together(_own(parts, peers.rank), node.columns, parts, peers.rank)
        sender = _Sender(parts, peers.rank) if peers.linked else None
    state = context.rounds.setdefault(node.number, ExchangeRounds())

    def space(size: int, total: int) -> Space:
        context.ask(node, total)
        made = with_room(
            lambda: DeviceBuffer(size=size, stream=plc.utils.CUDF_DEFAULT_STREAM), context
        )
        return Space(int(made.ptr), made)

    def pack(number: int) -> Sequence[Packed | None]:
        assert sender is not None
        return with_room(lambda: sender.pack(number), context)

    rounds = 0 if sender is None else sender.rounds
    if not exchange_in_rounds(peers, node.number, state, rounds, pack, space):
        del context.rounds[node.number]
        return None
    assert sender is not None
    pieces: list[plc.Table] = []
    for rank, arrived in enumerate(state.arrived):
        pieces += _own(sender.parts, rank) if rank == peers.rank else map(_unpacked, arrived)
    cut = sender.parts
    made = with_room(lambda: _together(pieces, node.columns, cut, peers.rank), context)
    # Else the buffers could go, and others be written over them, before they are read
    plc.utils.CUDF_DEFAULT_STREAM.synchronize()
    del context.rounds[node.number]
    return made


def _few_exchanged(node: Exchange, table: Table, peers: Peers, context: Context) -> Table | None:
    """Exchange few rows by the host, where a kernel's result lies and where operators over few rows run; None where a worker has many."""
    if node.kind not in ("gather", "broadcast"):
        return None
    held = with_room(lambda: to_host.on_host(table, node.columns, MOST_FEW), context)
    parts = None if held is None else parts_of_few(node, held.to_arrow(node.columns), peers)
    found = peers.exchange_few(FEW_ROWS - node.number, parts)
    if found is None:
        return None
    columns, count = few_together(found, node.columns)
    return on_host(columns.items(), count)


@dataclass
class _Sender:
    """What goes to other workers; in each round an even share of each stretch."""

    parts: DeviceParts
    own: int
    rounds: int = field(init=False)

    def __post_init__(self) -> None:
        nbytes = sum(
            _bytes_of(stretch)
            for rank, stretches in enumerate(self.parts)
            for stretch in stretches
            if rank != self.own
        )
        _, total = device_memory()
        self.rounds = max(1, -(-nbytes // max(1, total // ROUND_SHARE)))

    def pack(self, number: int) -> Sequence[Packed | None]:
        made: dict[tuple[tuple[int, int, int], ...], Packed] = {}  # what several get is packed once
        found: list[Packed | None] = []
        for rank, stretches in enumerate(self.parts):
            shares = [self._share(stretch, number) for stretch in stretches]
            shares = [share for share in shares if share.begin < share.end]
            if rank == self.own or not shares:
                found.append(None)
                continue
            key = tuple((id(rows), begin, end) for rows, begin, end in shares)
            if key not in made:
                made[key] = _packed([sliced(share) for share in shares])
            found.append(made[key])
        return found

    def _share(self, stretch: Stretch, number: int) -> Stretch:
        rows, begin, end = stretch
        count = end - begin
        return Stretch(
            rows,
            begin + count * number // self.rounds,
            begin + count * (number + 1) // self.rounds,
        )


def _bytes_of(stretch: Stretch) -> int:
    rows, begin, end = stretch
    size = sum(column.device_buffer_size() for column in rows.columns())
    return (end - begin) * size // max(1, rows.num_rows())


def _packed(pieces: Sequence[plc.Table]) -> Packed:
    rows = pieces[0] if len(pieces) == 1 else plc.concatenate.concatenate(list(pieces))
    packed = plc.contiguous_split.pack(rows)
    layout, data = packed.release()
    return Packed(bytes(layout), int(data.ptr), int(data.size), (rows, data))


def _unpacked(arrived: Arrived) -> plc.Table:
    data = plc.gpumemoryview(arrived.space.held)
    return plc.contiguous_split.unpack_from_memoryviews(memoryview(arrived.layout), data)


def _own(parts: DeviceParts, rank: int) -> list[plc.Table]:
    """Return the rows that stay."""
    return [sliced(stretch) for stretch in parts[rank] if stretch.begin < stretch.end]


def _together(
    pieces: Sequence[plc.Table], columns: Sequence[Column], parts: DeviceParts, own: int
) -> Table:
    """Return rows one after the other, in memory of their own unless they are all rows of one table that this worker has."""
    filled = [piece for piece in pieces if piece.num_rows()]
    count = check_rows(sum(piece.num_rows() for piece in filled), "An exchange")
    if not filled:
        return Table({c.id: empty(device_type(c.type)) for c in columns}, 0)
    is_own = len(filled) == 1 and any(filled[0] is held.rows for held in parts[own])
    rows = filled[0] if is_own else plc.concatenate.concatenate(filled)
    return Table({c.id: held for c, held in zip(columns, rows.columns(), strict=True)}, count)


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
