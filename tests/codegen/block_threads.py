"""The threads of a block, as Python's: they wait for each other, and one that fails ends the others' waiting."""

from __future__ import annotations

import threading
from _thread import start_new_thread
from collections.abc import Callable

import numpy as np

from fuseline.codegen.cuda.accumulator_layout import WARP


class _Barrier:
    """As Python's, without its timeouts, for which each thread's wait costs several times as much."""

    def __init__(self, parties: int) -> None:
        self.parties, self.broken = parties, False
        self.lock = threading.Lock()
        self.waiting: list[threading.Lock] = []

    def wait(self) -> None:
        turn = threading.Lock()
        turn.acquire()
        with self.lock:
            together = self.waiting
            together.append(turn)
            if whole := self.broken or len(together) == self.parties:
                self.waiting = []
        if whole:
            for other in together:
                other.release()
        turn.acquire()
        if self.broken:
            raise threading.BrokenBarrierError

    def abort(self) -> None:
        with self.lock:
            self.broken, together, self.waiting = True, self.waiting, []
        for other in together:
            other.release()


class Block:
    """What the threads of a block share."""

    def __init__(self, threads: int, shared_bytes: int) -> None:
        self.barrier = _Barrier(threads)
        self.warps = [_Barrier(WARP) for _ in range(threads // WARP)]
        self.registers = [None] * threads
        self.memory = np.full(-(-max(shared_bytes, 8) // 8), -(2**62) + 12345)  # garbage at first

    def run(self, work: Callable[[int], None]) -> list[BaseException]:
        """Let all threads do their work, by their numbers, at the same time; return what they raised."""
        failed: list[BaseException] = []

        def one(thread: int, ended: threading.Lock) -> None:
            try:
                work(thread)
            except BaseException as error:
                failed.append(error)
                for barrier in (self.barrier, *self.warps):
                    barrier.abort()
            finally:
                ended.release()

        ends = [threading.Lock() for _ in self.registers]
        for thread, ended in enumerate(ends):
            ended.acquire()
            start_new_thread(one, (thread, ended))  # the start of a `Thread` would be waited for
        for ended in ends:
            ended.acquire()
        return failed
