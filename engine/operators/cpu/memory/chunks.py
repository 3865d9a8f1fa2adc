"""Work on ranges of rows, or on whole columns, spread over threads: numpy and pyarrow release the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TypeVar

from .... import stopping
from ....settings import usable_cores
from ....threads.together import shared_threads
from ...context import Context

CHUNK_ROWS = 1 << 17  # int64 intermediates of 1 MB stay in the second-level cache

T = TypeVar("T")
A = TypeVar("A")


def each_chunk(work: Callable[[int, int], T], rows: int, context: Context | None = None) -> list[T]:
    """Return the results of `work(start, stop)` for consecutive ranges of rows, in order.

    `work` must not call this itself: the threads could all wait for each other.
    """
    ranges = [(start, min(start + CHUNK_ROWS, rows)) for start in range(0, rows, CHUNK_ROWS)]
    return list(_each(lambda part: work(*part), ranges, context.threads if context else None))


def each(work: Callable[[A], T], items: list[A], rows: int) -> list[T]:
    """Return the results of `work` for each item; with one thread when so few `rows` are not worth more."""
    if rows * len(items) < CHUNK_ROWS:  # less than a moment
        stopping.check()
        return list(map(work, items))
    return list(_each(work, items, 1 if rows < CHUNK_ROWS else None))


def _each(work: Callable[[A], T], items: list[A], threads: int | None) -> Iterator[T]:
    if len(items) < 2:
        threads = 1
    elif threads is None:
        threads = usable_cores()
    if threads == 1:
        for item in items:
            stopping.check()
            yield work(item)
        return
    run = stopping.carried(work)
    pool = shared_threads("fuseline-rows", threads)
    futures: list[Future[T]] = [pool.submit(run, item) for item in items]
    try:
        for future in futures:
            yield stopping.wait(future)
    finally:
        for future in futures:
            future.cancel()
