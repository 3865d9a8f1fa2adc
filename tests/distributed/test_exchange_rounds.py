"""Packed rows that workers give each other in rounds, over memory of the host in the place of a device's: threads are the workers."""

from __future__ import annotations

import ctypes
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from fuseline.operators.context import MovedBytes
from fuseline.operators.exchange.exchange_rounds import (
    ExchangeRounds,
    Packed,
    Space,
    exchange_in_rounds,
)

WORKERS = 3
WAIT_SECONDS = 20.0


class _Board:
    """What all workers see: batches by meeting and worker, and bytes on their way from one worker to another."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.met: dict[int, dict[int, Any]] = defaultdict(dict)
        self.moved: dict[tuple[int, int], list[bytes]] = defaultdict(list)

    def wait(self, is_there: Callable[[], bool]) -> None:
        assert self.changed.wait_for(is_there, WAIT_SECONDS)


class _Peers:
    has_link = linked = True

    def __init__(self, board: _Board, rank: int) -> None:
        self.workers, self.rank, self.board = WORKERS, rank, board
        self.moves, self.owes, self.over = 0, False, set[int]()
        self.dictionaries: dict[str, Any] = {}

    def meet(self, number: int, message: bytes) -> list[bytes]:
        with self.board.changed:
            self.board.met[number].setdefault(self.rank, message)
            self.board.changed.notify_all()
            self.board.wait(lambda: len(self.board.met[number]) == WORKERS)
            return [self.board.met[number][rank] for rank in range(WORKERS)]

    def move(
        self, number: int, outgoing: Sequence[MovedBytes], incoming: Sequence[MovedBytes]
    ) -> None:
        self.moves += 1
        with self.board.changed:
            for rank, address, size in outgoing:
                self.board.moved[self.rank, rank].append(ctypes.string_at(address, size))
            self.board.changed.notify_all()
            for rank, address, size in incoming:
                waiting = self.board.moved[rank, self.rank]
                self.board.wait(lambda waiting=waiting: bool(waiting))
                sent = waiting.pop(0)
                assert len(sent) == size
                ctypes.memmove(address, sent, size)


def _packed(text: bytes) -> Packed:
    held = np.frombuffer(text, np.uint8).copy()
    return Packed(b"%d bytes" % len(text), held.ctypes.data, len(text), held)


def _space(size: int, total: int) -> Space:
    assert size <= total
    held = np.empty(size, np.uint8)
    return Space(held.ctypes.data, held)


def _received(state: ExchangeRounds) -> list[list[bytes]]:
    return [[part.space.held.tobytes() for part in parts] for parts in state.arrived]


def run(work: Callable[[_Peers], Any]) -> list[Any]:
    board = _Board()
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(work, [_Peers(board, rank) for rank in range(WORKERS)]))


def _text(rank: int, to: int, number: int) -> bytes:
    return b"from %d to %d in round %d" % (rank, to, number)


def test_each_gets_what_the_others_have_for_it_round_by_round() -> None:
    def work(peers: _Peers) -> list[list[bytes]]:
        state, rounds = (
            ExchangeRounds(),
            peers.rank + 1,
        )  # the first worker needs one, the last one three

        def pack(number: int) -> list[Packed | None]:
            to = range(WORKERS)
            return [_packed(_text(peers.rank, r, number)) if r != peers.rank else None for r in to]

        assert exchange_in_rounds(peers, 5, state, rounds, pack, _space)
        return _received(state)

    for own, found in enumerate(run(work)):
        assert found == [
            [_text(rank, own, number) for number in range(rank + 1)] if rank != own else []
            for rank in range(WORKERS)
        ]


def test_who_has_nothing_for_anybody_moves_nothing() -> None:
    def work(peers: _Peers) -> tuple[list[list[bytes]], int]:
        state = ExchangeRounds()
        given = [_packed(b"rows")] * WORKERS if peers.rank == 1 else [None] * WORKERS
        assert exchange_in_rounds(peers, 0, state, 1, lambda _: given, _space)
        return _received(state), peers.moves

    assert [found for found, _ in run(work)] == [
        [[], [b"rows"], []],
        [[], [], []],
        [[], [b"rows"], []],
    ]


def test_all_take_the_way_by_the_host_where_one_has_no_room() -> None:
    def work(peers: _Peers) -> tuple[bool, int]:
        rounds = 0 if peers.rank == 2 else 2
        given = [_packed(b"rows")] * WORKERS
        return exchange_in_rounds(
            peers, 0, ExchangeRounds(), rounds, lambda _: given, _space
        ), peers.moves

    assert run(work) == [(False, 0)] * WORKERS


@pytest.mark.parametrize("full_in", [0, 1])
def test_who_runs_out_of_memory_goes_on_where_it_was(full_in: int) -> None:
    def work(peers: _Peers) -> list[list[bytes]]:
        state = ExchangeRounds()
        is_full = peers.rank == 0

        def space(size: int, total: int) -> Space:
            nonlocal is_full
            if is_full and state.over == full_in:
                is_full = False
                raise MemoryError
            return _space(size, total)

        def pack(number: int) -> list[Packed | None]:
            return [_packed(_text(peers.rank, r, number)) for r in range(WORKERS)]

        try:
            assert exchange_in_rounds(peers, 3, state, 2, pack, space)
        except MemoryError:
            assert exchange_in_rounds(peers, 3, state, 2, pack, space)
        return _received(state)

    for own, found in enumerate(run(work)):
        assert found == [
            [_text(rank, own, number) for number in range(2)] if rank != own else []
            for rank in range(WORKERS)
        ]
