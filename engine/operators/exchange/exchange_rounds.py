"""An exchange of packed rows between devices: in rounds, each of which begins with a header from every worker.

A header says how many rounds a worker needs, how many bytes it has for each other worker in this one, and how they are laid out.  They
are sent once all are known to be at the same round.  A worker that has no room on its device for what it gives says 0 rounds: then all take the way by the host.

What has arrived is kept in the query's context until it is put together, so that a worker that runs out of memory goes on at the round
where it was once there is room, and the others have waited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np

from ...records import dataclass
from ..context import MovedBytes, Peers

# Times the round, beside the number of the exchange: the number of a header's meeting
HEADERS = 1 << 20
FEW_ROWS = (
    -HEADERS
)  # less the number of the exchange: the number of the meeting in which all may have few rows
SLOT_ALIGNMENT = 256  # of what is sent in one piece, as of an allocation


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
    """The rounds of a worker, and for each worker the bytes of its part and their layout."""

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
    own = peers.rank
    state.arrived = state.arrived or [[] for _ in range(peers.workers)]
    while state.over < state.count:
        packed: Sequence[Packed | None] = [None] * peers.workers
        if state.over < rounds:
            packed = [None if r == own else part for r, part in enumerate(pack(state.over))]
        told = peers.meet(HEADERS * (state.over + 1) + number, _message(rounds, packed))
        headers = [_header(said, peers.workers) for said in told]
        if not all(header.rounds for header in headers):
            return False
        state.count = max(header.rounds for header in headers)
        coming = [(r, h) for r, h in enumerate(headers) if r != own and h.sizes[own]]
        is_moving = any(map(any, (header.sizes for header in headers)))
        peers.owes = is_moving
        total = sum(header.sizes[own] for _, header in coming)
        spaces = [space(header.sizes[own], total) for _, header in coming]
        if is_moving:
            incoming = [
                MovedBytes(rank, place.address, header.sizes[own])
                for (rank, header), place in zip(coming, spaces, strict=True)
            ]
            outgoing = [
                MovedBytes(rank, part.address, part.size)
                for rank, part in enumerate(packed)
                if part is not None and part.size
            ]
            peers.move(number, outgoing, incoming)
            peers.owes = False
        for (rank, header), place in zip(coming, spaces, strict=True):
            state.arrived[rank].append(Arrived(header.layouts[own], place))
        state.over += 1
    return True


def _message(rounds: int, packed: Sequence[Packed | None]) -> bytes:
    sizes = [0 if part is None else part.size for part in packed]
    layouts = [b"" if part is None else part.layout for part in packed]
    return np.array([rounds, *sizes, *map(len, layouts)], np.int64).tobytes() + b"".join(layouts)


def _header(message: bytes, workers: int) -> _Header:
    end = 8 * (1 + 2 * workers)
    rounds, *numbers = np.frombuffer(message[:end], np.int64).tolist()
    layouts = []
    for length in numbers[workers:]:
        layouts.append(message[end : end + length])
        end += length
    return _Header(rounds, numbers[:workers], layouts)
