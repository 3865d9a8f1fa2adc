"""Calls of a CPU kernel that end soon: a range of rows is gone through in steps, between which the query may be stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ... import stopping

FIRST_ROWS = 1 << 17
MOST_ROWS = 1 << 20  # a call costs 2 us, and so many rows seldom less than 500
LEAST_ROWS = 8
SHORT, LONG = 0.005, 0.02  # seconds of a call after which the next one takes more rows, or fewer


class Pace:
    """Where steps of a range of rows end: a row of a join may become thousands, so the time of a step decides about the next."""

    __slots__ = ("_began", "_rows", "_taken")

    def __init__(self) -> None:
        self._rows = FIRST_ROWS

    def end(self, start: int, last: int) -> int:
        """Return where the step from `start` on ends, which begins now."""
        self._began = time.perf_counter()
        end = min(start + self._rows, last)
        self._taken = end - start
        return end

    def done(self) -> None:
        """Note that a step has ended, in the query's progress too; raises when the query is to stop."""
        seconds = time.perf_counter() - self._began
        if seconds < SHORT:
            self._rows = min(4 * self._rows, MOST_ROWS)
        elif seconds > LONG:
            self._rows = max(self._rows // 4, LEAST_ROWS)
        stopping.advance(self._taken)


def in_steps(kernel: Callable[..., int], start: int, end: int, *results: Any) -> int:
    """Run a kernel whose results carry over from call to call over a range of rows; return the sum of what the calls give."""
    if 0 < end - start <= FIRST_ROWS:
        found = kernel(start, end, *results)
        stopping.advance(end - start)
        return found
    found, pace = 0, Pace()
    while start < end:
        stop = pace.end(start, end)
        found += kernel(start, stop, *results)
        start = stop
        pace.done()
    return found
