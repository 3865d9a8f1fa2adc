"""An exchange between devices of columns of fixed width: each worker tells how many rows it has for each, and rows are sent from where
they were put for that, to where they stay.

A slot holds the rows of a worker that go to the same others: there is one for each worker, and with heavy keys one more, behind them.
Rows come in the order of workers, and those of one in their order, slot by slot.  Own rows are written where they stay at once.

All meet once, and then those that have rows for others move them, so that a worker that runs out of memory between the two can go on.
Integers of 128 bits that lie as 64 bits on all workers with rows are moved so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

import numpy as np

from ...plan.exchange import Exchange
from ..context import MovedBytes, Peers
from .exchange_rounds import HEADERS, SLOT_ALIGNMENT, Space

Route = Callable[
    [int, int], Sequence[int]
]  # the slots of which a worker gives another one, or itself, the rows


class SlotRows(Protocol):
    """A worker's rows before an exchange: how many are in each slot, the bytes of a value of each column, and which columns have NULLs."""

    @property
    def counts(self) -> Sequence[int]: ...

    @property
    def widths(self) -> Sequence[int]: ...

    @property
    def nulls(self) -> Sequence[bool]: ...

    def widen(self, widths: Sequence[int]) -> None:
        """Have values of so many bytes, which are no fewer than before."""
        ...

    def write(self, bases: Sequence[Sequence[int]]) -> None:
        """Copy the rows of all slots: `bases` say for each array of `arrays_of` where each slot's part begins."""
        ...


class DeviceBytes(Protocol):
    """Memory of a device, in the order of its stream; `space` may raise `MemoryError`."""

    def space(self, size: int) -> Space: ...

    def copy(self, target: int, source: int, size: int) -> None: ...

    def fill(self, target: int, byte: int, size: int) -> None: ...


class ColumnArray(NamedTuple):
    """The values of a column, or a byte for each that says whether there is one."""

    column: int
    is_marks: bool
    width: int


class PlacedColumn(NamedTuple):
    """A column as it has come; `marks` are the bytes that say where values are, None where no worker has NULLs."""

    values: Space
    marks: Space | None


class PlacedRows(NamedTuple):
    """Rows of all workers for this one; `widths` are the bytes of a value of each column."""

    rows: int
    columns: Sequence[PlacedColumn]
    widths: Sequence[int]


class _Told(NamedTuple):
    """What a worker says before rows are sent: whether it has room for what it sends, its rows by slot, its columns with NULLs, and their widths."""

    is_ready: bool
    counts: Sequence[int]
    nulls: Sequence[bool]
    widths: Sequence[int]


def route_of(node: Exchange, workers: int) -> Route:
    """Return which slots of one worker's rows go to another: those of heavy keys to all, or to nobody; without keys there is one slot."""

    def route(rank: int, to: int) -> tuple[int, ...]:
        if not node.keys:
            return (0,) if node.kind == "broadcast" or to == 0 else ()
        has_heavy = node.is_spread and (node.beside is not None or rank == to)
        return (to, workers) if has_heavy else (to,)

    return route


def arrays_of(widths: Sequence[int], nulls: Sequence[bool]) -> list[ColumnArray]:
    """The arrays of columns of so many bytes a value, some of which have NULLs."""
    found: list[ColumnArray] = []
    for column, (width, nullable) in enumerate(zip(widths, nulls, strict=True)):
        found.append(ColumnArray(column, False, width))
        if nullable:
            found.append(ColumnArray(column, True, 1))
    return found


def exchange_placed(
    peers: Peers,
    number: int,
    widths: Sequence[int],
    slots: int,
    route: Route,
    source: SlotRows | None,
    memory: DeviceBytes,
) -> PlacedRows | None:
    """Give other workers the rows of their slots, and take theirs in; None where one has no room, and says so by no source.

    `widths` are the bytes that a value of each column has at most.
    Raises `MemoryError` where there is none for what comes; a second call goes on.
    """
    exchange = _PlacedExchange(peers, widths, slots, route, source, memory)
    told = exchange.meet(number)
    if not all(said.is_ready for said in told):
        return None
    if exchange.sent is None:
        raise MemoryError("rows that others wait for have no place")
    return exchange.move(number, told)


class _PlacedExchange:
    """One exchange, from this worker's side."""

    def __init__(
        self,
        peers: Peers,
        widths: Sequence[int],
        slots: int,
        route: Route,
        source: SlotRows | None,
        memory: DeviceBytes,
    ) -> None:
        self.peers, self.widths, self.slots, self.route = peers, widths, slots, route
        self.source, self.memory = source, memory
        self.sent: Space | None = None
        self.places: dict[tuple[ColumnArray, int], int] = {}  # of arrays and slots that are sent

    def meet(self, number: int) -> list[_Told]:
        """Tell all what this worker has, once there is room for what it sends."""
        source = self.source
        if source is not None:
            try:
                self._make_room(source)
            except MemoryError:
                source = None
        counts = [0] * self.slots if source is None else source.counts
        nulls = [False] * len(self.widths) if source is None else source.nulls
        widths = self.widths if source is None else source.widths
        message = np.array([source is not None, *counts, *nulls, *widths], np.int64).tobytes()
        told = self.peers.meet(HEADERS + number, message)
        found = []
        for said in told:
            is_ready, *rest = np.frombuffer(said, np.int64).tolist()
            of_columns, end = rest[self.slots :], len(self.widths)
            nulls = [bool(nullable) for nullable in of_columns[:end]]
            found.append(_Told(bool(is_ready), rest[: self.slots], nulls, of_columns[end:]))
        return found

    def _make_room(self, source: SlotRows) -> None:
        own, others = self.peers.rank, range(self.peers.workers)
        given = {slot for rank in others if rank != own for slot in self.route(own, rank)}
        end = 0
        for slot in sorted(given):
            for array in arrays_of(source.widths, source.nulls):
                self.places[array, slot] = end
                size = source.counts[slot] * array.width
                end += -(-size // SLOT_ALIGNMENT) * SLOT_ALIGNMENT
        self.sent = self.memory.space(end)

    def move(self, number: int, told: Sequence[_Told]) -> PlacedRows:
        """Write own rows, send and receive the others."""
        peers, source = self.peers, self.source
        own, workers = peers.rank, range(peers.workers)
        assert source is not None
        self._agree_on_widths(source, told)
        sent = self.sent
        assert sent is not None
        counts = [
            sum(told[rank].counts[slot] for slot in self.route(rank, own)) for rank in workers
        ]
        starts = [0, *accumulate(counts)]
        is_moving = any(
            told[rank].counts[slot]
            for rank in workers
            for to in workers
            if to != rank
            for slot in self.route(rank, to)
        )
        peers.owes = is_moving
        placed = self._placed(told, starts[-1])
        at = {
            (rank, array.column, array.is_marks): self._address(placed, array) + array.width * start
            for rank, start in enumerate(starts[:-1])
            for array in arrays_of(self.widths, self._nulls(told))
        }
        self._write(source, sent, at)
        for (rank, column, is_marks), address in at.items():
            if is_marks and not told[rank].nulls[column] and counts[rank]:
                self.memory.fill(address, 1, counts[rank])
        incoming = []
        for rank in workers:
            if rank != own:
                begin = 0
                for slot in self.route(rank, own):
                    rows = told[rank].counts[slot]
                    for array in arrays_of(self.widths, told[rank].nulls) if rows else ():
                        address = at[rank, array.column, array.is_marks] + array.width * begin
                        incoming.append(MovedBytes(rank, address, rows * array.width))
                    begin += rows
        outgoing = [
            MovedBytes(rank, sent.address + self.places[array, slot], rows * array.width)
            for rank in workers
            if rank != own
            for slot in self.route(own, rank)
            if (rows := source.counts[slot])
            for array in arrays_of(self.widths, source.nulls)
        ]
        if is_moving:
            peers.move(number, outgoing, incoming)
        peers.owes = False
        return placed

    def _agree_on_widths(self, source: SlotRows, told: Sequence[_Told]) -> None:
        """Have values as wide as those of any worker that has rows."""
        filled = [said.widths for said in told if any(said.counts)]
        self.widths = [*map(max, zip(*filled, strict=True))] if filled else self.widths
        if any(source.counts) and list(source.widths) != list(self.widths):
            source.widen(self.widths)
            self.places.clear()
            self._make_room(source)

    @staticmethod
    def _nulls(told: Sequence[_Told]) -> list[bool]:
        """Which columns have NULLs on any worker."""
        return [any(of_workers) for of_workers in zip(*(said.nulls for said in told), strict=True)]

    def _placed(self, told: Sequence[_Told], rows: int) -> PlacedRows:
        columns = [
            PlacedColumn(
                self.memory.space(rows * width), self.memory.space(rows) if nullable else None
            )
            for width, nullable in zip(self.widths, self._nulls(told), strict=True)
        ]
        return PlacedRows(rows, columns, self.widths)

    @staticmethod
    def _address(placed: PlacedRows, array: ColumnArray) -> int:
        values, marks = placed.columns[array.column]
        found = marks if array.is_marks else values
        assert found is not None
        return found.address

    def _write(self, source: SlotRows, sent: Space, at: dict[tuple[int, int, bool], int]) -> None:
        """Write rows where they are sent from, and those that stay where they stay; what stays and is sent too is copied."""
        own, stay = self.peers.rank, list(self.route(self.peers.rank, self.peers.rank))
        before = [0, *accumulate(source.counts[slot] for slot in stay)]
        begins = dict(zip(stay, before, strict=False))
        arrays = arrays_of(self.widths, source.nulls)
        bases = [[0] * self.slots for _ in arrays]
        copies = []
        for array, starts in zip(arrays, bases, strict=True):
            for slot in range(self.slots):
                place = self.places.get((array, slot))
                address = at[own, array.column, array.is_marks] + array.width * begins.get(slot, 0)
                starts[slot] = address if place is None else sent.address + place
                size = array.width * source.counts[slot]
                if place is not None and slot in begins and size:
                    copies.append((address, starts[slot], size))
        if any(source.counts):
            source.write(bases)
        for target, origin, size in copies:
            self.memory.copy(target, origin, size)
