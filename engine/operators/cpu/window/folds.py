"""Aggregates over ranges of places: integers by differences of prefix sums, all else by blocks of powers of two.

A difference of floating-point prefix sums would cancel, and be NaN behind an infinite value; a frame is put together of at most two
blocks of each size instead, as in a segment tree of which one level is there at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from .... import stopping
from ....records import dataclass
from ...windows.frames import Ranges, Values
from ...windows.wavelet import State
from ..sort.keys import Ints
from ..table import Mask

MOST_RUNS = 16  # rows a partition from which those are gone through one after the other


@dataclass(frozen=True)
class FrameGroups:
    """Frames as groups of rows, with those methods of `Groups` that need no group's number for each row."""

    ranges: Ranges
    rows: int
    memo: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def count(self) -> int:
        return len(self.ranges)

    @property
    def sizes(self) -> Ints:
        return self.ranges.sizes

    @cached_property
    def most_rows(self) -> int:
        return int(self.sizes.max(initial=0))

    def counts(self, valid: Mask | None) -> Ints:
        return self.sizes if valid is None else self.add(valid.astype(np.int64))

    def some(self, valid: Mask | None) -> Mask | None:
        return self.counts(valid) > 0

    def add(self, values: Values) -> Values:
        """Sums; the caller knows that those of integers do not overflow, as prefix sums may."""
        if values.dtype.kind == "f":
            return self.reduce(np.add, values, 0.0)
        before = np.zeros(len(values) + 1, values.dtype)
        np.cumsum(values, out=before[1:])
        total = np.zeros(self.count, values.dtype)
        for begin, end in self.ranges.parts:
            total += before[end] - before[begin]
        return total

    def reduce(self, operation: np.ufunc, values: Values, start: Any) -> Values:
        """Combine the values of each frame with an associative ufunc, beginning with `start`."""
        running = self._running(operation, values, start)
        if running is not None:
            return running
        result = (np.full(self.count, start, values.dtype),)
        if operation in (np.maximum, np.minimum, np.bitwise_and, np.bitwise_or):
            return overlapping((values,), (operation,), self.ranges, result)[0]
        return folded((values,), lambda a, b: (operation(a[0], b[0]),), self.ranges, result)[0]

    def _running(self, operation: np.ufunc, values: Values, start: Any) -> Values | None:
        """Accumulate where all frames begin where one of few others does, and ends follow."""
        if len(self.ranges.parts) > 1 or not len(values):
            return None
        begin, end = self.ranges.parts[0]
        heads = np.flatnonzero(np.diff(begin, prepend=-1))
        if len(heads) * MOST_RUNS > len(values) or bool(
            (begin[heads][1:] < begin[heads][:-1]).any()
        ):
            return None
        starts = begin[heads]
        stops = np.maximum.reduceat(end, heads)
        if bool((starts[1:] < stops[:-1]).any()):
            return None
        scanned = np.empty_like(values)
        for i, (first, last) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
            if not i & 0xFFFF:
                stopping.check()
            operation.accumulate(values[first:last], out=scanned[first:last])
        found = scanned[np.maximum(end - 1, 0)]
        return np.where(end > begin, found, values.dtype.type(start))


def folded(
    state: State, combine: Callable[[State, State], State], ranges: Ranges, result: State
) -> State:
    """Combine the states of each row's ranges into `result`, in some order."""
    result = tuple(values.copy() for values in result)
    waiting = [(begin.copy(), end - begin) for begin, end in ranges.parts]
    most = max((int(size.max(initial=0)) for _, size in waiting), default=0)
    width = 1
    while width <= most:
        stopping.check()
        for place, size in waiting:
            hit = np.flatnonzero(size & width)
            if len(hit):
                here = place[hit]
                made = combine(tuple(r[hit] for r in result), tuple(s[here] for s in state))
                for values, new in zip(result, made, strict=True):
                    values[hit] = new
                place[hit] += width
        if 2 * width <= most:
            state = combine(tuple(s[:-width] for s in state), tuple(s[width:] for s in state))
        width *= 2
    return result


def overlapping(
    state: State, operations: Sequence[np.ufunc], ranges: Ranges, result: State
) -> State:
    """As `folded` for what may come twice: two blocks, which may overlap, are enough for each range."""
    result = tuple(values.copy() for values in result)
    sizes = [end - begin for begin, end in ranges.parts]
    most = max((int(size.max(initial=0)) for size in sizes), default=0)
    width = 1
    while width <= most:
        stopping.check()
        for (begin, end), size in zip(ranges.parts, sizes, strict=True):
            hit = np.flatnonzero((size >= width) & (size < 2 * width))
            for places in (begin[hit], end[hit] - width):
                for values, own, operation in zip(result, state, operations, strict=True):
                    values[hit] = operation(values[hit], own[places])
        if 2 * width <= most:
            state = tuple(
                operation(s[:-width], s[width:])
                for s, operation in zip(state, operations, strict=True)
            )
        width *= 2
    return result
