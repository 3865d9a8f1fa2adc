"""Pieces of work that threads of the process share with the one that has them to do."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def shared_threads(name: str, count: int) -> ThreadPoolExecutor:
    """Return threads that work for all queries; a process made by `fork` has none of its parent's, and makes its own."""
    return ThreadPoolExecutor(count, thread_name_prefix=name)


os.register_at_fork(after_in_child=shared_threads.cache_clear)


def together(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """Return what `work` makes of each item, or raise the error of the first one that has any.

    This thread takes items as the others do, and waits for none that has not begun: nobody waits for a thread that wakes up, nor for
    one that waits itself.  For work that looks itself whether it is to end.
    """
    others = min(threads, len(items)) - 1
    if others < 1:
        return [work(item) for item in items]
    left, results = deque(enumerate(items)), dict[int, Result]()
    failed: dict[int, BaseException] = {}

    def drain() -> None:
        while left:
            try:
                at, item = left.popleft()
            except IndexError:  # another thread has it
                return
            try:
                results[at] = work(item)
            except BaseException as error:  # raised by the thread that waits
                failed[at] = error
                left.clear()

    pool = shared_threads("fuseline-kernel", threads)
    begun = [pool.submit(drain) for _ in range(others)]
    drain()
    wait([future for future in begun if not future.cancel()])
    if failed:
        raise failed[min(failed)]
    return [results[at] for at in range(len(items))]
