"""Rows that workers write where they are sent from and get where they stay, over memory of the host in the place of a device's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.operators.exchange.exchange_placed import PlacedRows, arrays_of, exchange_placed
from fuseline.operators.exchange.exchange_rounds import Space
from tests.distributed.test_exchange_rounds import WORKERS, _Peers, run

WIDTHS = [8, 1, 16, 4]


class Host:
    """Memory of the host; so many of the first spaces of a worker cannot be had."""

    def __init__(self, full_at: Sequence[int] = ()) -> None:
        self.full_at, self.made = set(full_at), 0

    def space(self, size: int) -> Space:
        self.made += 1
        if self.made in self.full_at:
            raise MemoryError
        held = np.full(size, 0xEE, np.uint8)
        return Space(held.ctypes.data, held)

    def copy(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def fill(self, target: int, byte: int, size: int) -> None:
        ctypes.memset(target, byte, size)


class Rows:
    """Rows of a worker as bytes, the slot of each, where a column has NULLs (None: nowhere), and the bytes of a value."""

    def __init__(
        self,
        seed: int,
        rows: int,
        slots: int,
        nullable: Sequence[int],
        to: Any,
        widths: Sequence[int] = WIDTHS,
    ) -> None:
        draw = np.random.default_rng(seed)
        self.to, self.widths = to(draw, rows), widths
        self.columns = [draw.integers(0, 256, (rows, width), np.uint8) for width in widths]
        self.marks = [
            draw.random(rows) < 0.5 if i in nullable and rows else None for i in range(len(WIDTHS))
        ]
        self.counts = np.bincount(self.to, minlength=slots).tolist()
        self.nulls = [marks is not None for marks in self.marks]

    def part(self, slot: int) -> list[tuple[Any, Any]]:
        """The columns of a slot's rows, and whether there is a value."""
        here = self.to == slot
        return [
            (values[here], np.ones(here.sum(), bool) if marks is None else marks[here])
            for values, marks in zip(self.columns, self.marks, strict=True)
        ]

    def widen(self, widths: Sequence[int]) -> None:
        """Put zeros behind values."""
        given = zip(self.columns, widths, strict=True)
        self.columns = [np.pad(c, ((0, 0), (0, width - c.shape[1]))) for c, width in given]
        self.widths = widths

    def write(self, bases: Sequence[Sequence[int]]) -> None:
        for array, starts in zip(arrays_of(self.widths, self.nulls), bases, strict=True):
            for slot, start in enumerate(starts):
                values, there = self.part(slot)[array.column]
                data = (there.astype(np.uint8) if array.is_marks else values).tobytes()
                ctypes.memmove(start, data, len(data)) if data else None


def own_slot(rank: int, to: int) -> list[int]:
    return [to]


def with_heavy(rank: int, to: int) -> list[int]:
    """The rows of a last slot go to all."""
    return [to, WORKERS]


def heavy_stays(rank: int, to: int) -> list[int]:
    return [to, WORKERS] if rank == to else [to]


ROUTES: list[tuple[Callable[[int, int], list[int]], int]] = [
    (own_slot, WORKERS), (with_heavy, WORKERS + 1), (heavy_stays, WORKERS + 1),
]  # fmt: skip
SPREADS: dict[str, Callable[[Any, int, int], Any]] = {
    "evenly": lambda draw, rows, slots: draw.integers(0, slots, rows),
    "all to one": lambda draw, rows, slots: np.full(rows, 1),
    "all to the last": lambda draw, rows, slots: np.full(rows, slots - 1),
}
COUNTS = [[100, 37, 251], [0, 0, 0], [0, 5, 0], [1, 0, 1000]]


def columns_of(placed: PlacedRows) -> list[tuple[Any, Any]]:
    """The columns that have come, with whether there is a value."""
    found = []
    for width, column in zip(placed.widths, placed.columns, strict=True):
        marks = column.marks
        there = np.ones(placed.rows, np.uint8) if marks is None else marks.held  # type: ignore[attr-defined]
        found.append((column.values.held.reshape(-1, width), there))  # type: ignore[attr-defined]
    return found


def expected(sources: list[Rows], route: Any, own: int) -> list[tuple[bytes, list[int]]]:
    """What comes to a worker: the parts of all, in their order."""
    parts = [source.part(slot) for rank, source in enumerate(sources) for slot in route(rank, own)]
    return [
        (b"".join(p[i][0].tobytes() for p in parts), [int(t) for p in parts for t in p[i][1]])
        for i in range(len(WIDTHS))
    ]


def to_all(rank: int, to: int) -> list[int]:
    return [0]


def to_the_first(rank: int, to: int) -> list[int]:
    return [] if to else [0]


@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("narrow", [(), (0,), (0, 1), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("route", [own_slot, to_all, to_the_first])
def test_values_are_as_wide_as_those_of_any_worker_with_rows(
    route: Any, narrow: tuple[int, ...], counts: list[int]
) -> None:
    slots = WORKERS if route is own_slot else 1
    sources = [
        Rows(
            r, counts[r], slots, [2], lambda d, n: d.integers(0, slots, n),
            [8, 1, 8, 4] if r in narrow else WIDTHS,
        )
        for r in range(WORKERS)
    ]  # fmt: skip
    has_rows = [r for r in range(WORKERS) if counts[r]]

    def work(peers: _Peers) -> PlacedRows | None:
        return exchange_placed(peers, 4, WIDTHS, slots, route, sources[peers.rank], Host())

    placed = run(work)
    for own, found in enumerate(placed):
        all_narrow = bool(has_rows) and all(r in narrow for r in has_rows)
        assert list(found.widths) == ([8, 1, 8, 4] if all_narrow else WIDTHS)
        assert [(v.tobytes(), t.tolist()) for v, t in columns_of(found)] == expected(
            sources, route, own
        )


@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize(("route", "slots"), ROUTES, ids=lambda v: getattr(v, "__name__", ""))
def test_rows_come_where_they_stay(route: Any, slots: int, spread: str, counts: list[int]) -> None:
    nullable: list[list[int]] = [[0], [], [0, 2]]
    sources = [
        Rows(r, counts[r], slots, nullable[r], lambda d, n: SPREADS[spread](d, n, slots))
        for r in range(WORKERS)
    ]

    def work(peers: _Peers) -> PlacedRows | None:
        return exchange_placed(peers, 4, WIDTHS, slots, route, sources[peers.rank], Host())

    for own, placed in enumerate(run(work)):
        found = columns_of(placed)
        for (values, there), (data, valid) in zip(
            found, expected(sources, route, own), strict=True
        ):
            assert values.tobytes() == data
            assert there.tolist() == valid


def _source(rank: int) -> Rows:
    return Rows(rank, 50 + rank, WORKERS, [1], lambda draw, rows: draw.integers(0, WORKERS, rows))


@pytest.mark.parametrize("full", [None, 0, 1, 2])
def test_all_take_the_way_by_the_host_where_one_has_no_room_for_what_it_sends(full: Any) -> None:
    def work(peers: _Peers) -> tuple[PlacedRows | None, int]:
        source, memory = _source(peers.rank), Host([1] if peers.rank == full else [])
        given = None if full is None and peers.rank == 1 else source
        placed = exchange_placed(peers, 1, WIDTHS, WORKERS, own_slot, given, memory)
        assert not peers.owes
        return placed, peers.moves

    assert run(work) == [(None, 0)] * WORKERS


@pytest.mark.parametrize("full_at", [2, 4, 6])
def test_who_has_no_room_for_what_comes_goes_on_once_there_is(full_at: int) -> None:
    sources = [_source(rank) for rank in range(WORKERS)]

    def work(peers: _Peers) -> PlacedRows | None:
        memory = Host([full_at] if peers.rank == 0 else [])
        given = (peers, 2, WIDTHS, WORKERS, own_slot, sources[peers.rank], memory)
        if peers.rank:
            return exchange_placed(*given)
        with pytest.raises(MemoryError):
            exchange_placed(*given)
        assert peers.owes
        return exchange_placed(*given)

    for own, placed in enumerate(run(work)):
        found = [(values.tobytes(), there.tolist()) for values, there in columns_of(placed)]
        assert found == expected(sources, own_slot, own)
