"""An exchange of packed rows between devices: in rounds, each of which begins with a header from every worker.

A header says how many rounds a worker needs, how many bytes it has for each other worker in this one, and how they are laid out.  It goes
over the workers' connections, so that whoever fails or is lost ends the wait of the others there; bytes are sent only once all are known
to be at the same round.  A worker that has no room on its device for what it gives says 0 rounds: then all take the way by the host.

What has arrived is kept in the query's context until it is put together, so that a worker that runs out of memory goes on at the round
where it was once there is room, and the others have waited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from .context import MovedBytes, Peers

HEADERS = (
    1 << 20
)  # times the round, beside the number of the exchange: the number of a header's meeting


class Packed(NamedTuple):
    """Rows in one piece of device memory, which `held` keeps, and how they are laid out in it."""

    layout: bytes
    address: int
    size: int
    held: object


class Space(NamedTuple):
    """Device memory that `held` keeps."""

    address: int
    held: object


class Arrived(NamedTuple):
    """Rows of another worker, packed."""

    layout: bytes
    space: Space


@dataclass
class ExchangeRounds:
    """How far an exchange is: rounds that are over, those of the worker that needs most, and what has come from each worker."""

    over: int = 0
    count: int = 1
    arrived: list[list[Arrived]] = field(default_factory=list)


class _Header(NamedTuple):
    rounds: int
    sizes: Sequence[int]
    layouts: Sequence[bytes]


def exchange_in_rounds(
    peers: Peers,
    number: int,
    state: ExchangeRounds,
    rounds: int,
    pack: Callable[[int], Sequence[Packed | None]],
    space: Callable[[int, int], Space],
) -> bool:
    """Give other workers what `pack` makes of a round's rows for each, and take theirs in; False where one has no room for it.

    `space` returns memory for bytes, of which so many come altogether in a round; it may raise `MemoryError`, and a second call goes on.
    """
    state.arrived = state.arrived or [[] for _ in range(peers.workers)]
    while state.over < state.count:
        packed: Sequence[Packed | None] = [None] * peers.workers
        if state.over < rounds:
            packed = pack(state.over)
        told = _told(rounds, packed)
        met = peers.exchange(HEADERS * (state.over + 1) + number, [[told]] * peers.workers)
        headers = list(map(_header, met))
        if not all(header.rounds for header in headers):
            return False
        state.count = max(header.rounds for header in headers)
        coming = _coming(headers, peers.rank)
        total = sum(header.sizes[peers.rank] for _, header in coming)
        spaces = [space(header.sizes[peers.rank], total) for _, header in coming]
        incoming = [
            MovedBytes(rank, place.address, header.sizes[peers.rank])
            for (rank, header), place in zip(coming, spaces, strict=True)
        ]
        outgoing = [
            MovedBytes(rank, part.address, part.size)
            for rank, part in enumerate(packed)
            if part is not None and part.size and rank != peers.rank
        ]
        peers.move(number, outgoing, incoming)
        for (rank, header), place in zip(coming, spaces, strict=True):
            state.arrived[rank].append(Arrived(header.layouts[peers.rank], place))
        state.over += 1
    return True


def _coming(headers: Sequence[_Header], own: int) -> list[tuple[int, _Header]]:
    """The headers of other workers that have something for this one, with their ranks."""
    return [
        (rank, header) for rank, header in enumerate(headers) if rank != own and header.sizes[own]
    ]


def _told(rounds: int, packed: Sequence[Packed | None]) -> pa.RecordBatch:
    columns = {
        "rounds": pa.array([rounds] * len(packed), pa.int64()),
        "sizes": pa.array([0 if part is None else part.size for part in packed], pa.int64()),
        "layouts": pa.array([b"" if part is None else part.layout for part in packed], pa.binary()),
    }
    return pa.record_batch(columns)


def _header(told: pa.RecordBatch) -> _Header:
    rounds, sizes, layouts = (column.to_pylist() for column in told.columns)
    return _Header(rounds[0], sizes, layouts)
