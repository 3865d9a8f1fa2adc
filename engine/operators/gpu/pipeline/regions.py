"""Where the arrays of a pipeline's kernels lie: in three buffers a run, two of which share an allocation;
and as many buckets of hashed indexes as an earlier run put rows in.

What is small goes to the host in one copy after the last kernel: states of indexes, accumulators of few groups, counters.  Indexes
and accumulators of many groups are let go of after the run.  Results stay: what is picked of groups, lists of rows.

Any number of buckets gives the right answer, so that kernels are neither made anew nor run again for another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from ....codegen.groups.accumulate import ALIKE
from ....codegen.indexes.choose import CACHED_SLOTS, buckets
from ....codegen.indexes.layers import Buckets, Buffer, Index
from ....records import dataclass

ALIGNMENT = 256
# Words all of whose bytes are alike
BYTES = {0: 0, -1: 0xFF} | {word: word & 0xFF for word in ALIKE.values()}


class Region(StrEnum):
    """The buffers."""

    SMALL = "small"
    WORKING = "working"  # of the run alone
    RESULTS = "results"
    HOST = "host"  # where the small buffer goes after the last kernel


@dataclass(frozen=True, slots=True)
class BufferSpan:
    """An array in one of the buffers: `length` elements of `width` bytes, `start` bytes in."""

    region: Region
    start: int
    length: int
    width: int

    @property
    def size(self) -> int:
        return self.length * self.width

    def part(self, first: int, length: int) -> BufferSpan:
        """Return `length` elements from `first` on."""
        return BufferSpan(self.region, self.start + first * self.width, length, self.width)


@dataclass
class Regions:
    """The layout of the buffers: arrays are added before the first run.

    `initial` are the contents of the small buffer, a part an array.  `fills` are spans of 64-bit words and what each begins with.  After the last kernel the words
    of `reports` are copied from a large array into the small buffer.
    """

    sizes: dict[Region, int] = field(default_factory=lambda: dict.fromkeys(Region, 0))
    initial: list[Any] = field(default_factory=list)
    fills: list[tuple[BufferSpan, int]] = field(default_factory=list)
    reports: list[tuple[BufferSpan, BufferSpan]] = field(default_factory=list)

    def small(self, contents: Any) -> BufferSpan:
        """Add a small array of 8 bytes an element, with its first contents."""
        words = np.ascontiguousarray(contents).view(np.int64)
        self.initial.append(words)
        return self._add(Region.SMALL, len(words), 8)

    def working(self, length: int, width: int) -> BufferSpan:
        """Add a large array of anything, for the run alone."""
        return self._add(Region.WORKING, length, width)

    def results(self, length: int, width: int) -> BufferSpan:
        """Add a large array that an answer keeps."""
        return self._add(Region.RESULTS, length, width)

    def accumulators(
        self, identities: Sequence[int | float], groups: int, more: int = 0
    ) -> BufferSpan:
        """Add a large array of `groups` elements for each identity, and `more` zeros."""
        span = self.working(len(identities) * groups + more, 8)
        words = [int(np.array(i, type(i)).view(np.int64)) for i in identities]
        at = 0
        while at < len(words):
            end = at
            while end < len(words) and words[end] == words[at]:
                end += 1
            tail = more if end == len(words) and not words[at] else 0
            self._fill(span.part(at * groups, (end - at) * groups + tail), words[at])
            at = end
        if more and (not words or words[-1]):
            self._fill(span.part(len(words) * groups, more), 0)
        return span

    def short_accumulators(self, length: int) -> BufferSpan:
        """Add a large array of zeros of 32 bits."""
        span = self.working(length, 4)
        self._fill(BufferSpan(span.region, span.start, -(-length // 2), 8), 0)
        return span

    def keys(self, slots: int) -> BufferSpan:
        """Add a large array of -1, the keys of an empty hash table."""
        span = self.working(slots, 8)
        self._fill(span, -1)
        return span

    def indexes(self, buffers: Sequence[Buffer]) -> dict[str, BufferSpan]:
        """Add the buffers of all indexes, those of one fill side by side."""
        found = {}
        for fill in (-1, 0, None):
            start = self.sizes[Region.WORKING]
            for buffer in (b for b in buffers if b.fill == fill):
                width = np.dtype(buffer.type).itemsize
                found[buffer.name] = self._add(Region.WORKING, buffer.length, width)
            words = (self.sizes[Region.WORKING] - start) // 8
            if fill is not None:
                self._fill(BufferSpan(Region.WORKING, start, words, 8), fill)
        return found

    def report(self, word: BufferSpan) -> BufferSpan:
        """Have a word of a large array copied into the small buffer, and return its place there."""
        place = self.small(np.zeros(1, np.int64))
        self.reports.append((word, place))
        return place

    def _add(self, region: Region, length: int, width: int) -> BufferSpan:
        # The small buffer is copied as a whole, so that its arrays lie without gaps
        alignment = 8 if region is Region.SMALL else ALIGNMENT
        span = BufferSpan(region, self.sizes[region], length, width)
        self.sizes[region] += -(-span.size // alignment) * alignment
        return span

    def _fill(self, span: BufferSpan, word: int) -> None:
        """Note what an array begins with, together with the one before it where that begins with the same."""
        if not span.length:
            return
        if self.fills:
            before, same = self.fills[-1]
            end = before.start + before.size
            if (before.region, same) == (span.region, word) and end <= span.start < end + ALIGNMENT:
                self.fills.pop()
                length = (span.start - before.start) // span.width + span.length
                span = BufferSpan(span.region, before.start, length, span.width)
        self.fills.append((span, word))


FAR = 4  # times too many, or too few


def with_buckets(indexes: Sequence[Index], built: Mapping[int, int]) -> tuple[Index, ...]:
    """Return indexes with buckets for so many rows, by the numbers of those of which that is known."""
    return tuple(
        replace(i, slots=buckets(built[i.number])) if i.form is Buckets and i.number in built else i
        for i in indexes
    )


def far_off(
    indexes: Sequence[Index], rows: Sequence[int], built: Mapping[int, int]
) -> dict[int, int]:
    """Return for how many rows large hashed indexes should rather have buckets, by number, given how many they hold now.

    Runs with other parameters hold other rows; what has once been found is not gone below.
    """
    found = {}
    for index, count in zip(indexes, rows, strict=True):
        if index.form is not Buckets:
            continue
        most = max(count, built.get(index.number, 0))
        wanted = buckets(most)
        large = max(index.slots, wanted) > CACHED_SLOTS
        if large and (index.slots >= FAR * wanted or wanted >= FAR * index.slots):
            found[index.number] = most
    return found
