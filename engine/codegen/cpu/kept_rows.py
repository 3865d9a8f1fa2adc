"""Rows of relation 0 that a kernel on the CPU goes through, where an index of its joins tells that others find nothing.

A join that keeps only rows with a match reads the key of each row of the probe side.  Where rows lie in an order that has to do with
it, as those of sales do with days, few zones of the column (`storage.columns.row_zones`) have any key of a small build side: the kernel
is not run over the others.  CPU time at SF1 of queries that are not among TPC-DS's, with the same joins: a month of inventory 8.2 to
1.8 ms, a year of catalog_sales 4.9 to 2.8; TPC-DS's own Q37 14 to 3.4.  `ZONE_ROWS` of 2**62 switches it off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...records import dataclass
from ...storage.columns.encodings import Array
from ...storage.columns.row_zones import ZONE_ROWS, Zones
from ..indexes.layers import Bitmap, Direct, Index

TOGETHER = 8  # numbers of which it matters whether any is there: a byte of bits
ROWS_A_SLOT = 8  # of the probe side: to look through row numbers takes as long as to probe with about as many rows


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Stretches of rows, ascending and apart, each but the last a multiple of 8 long."""

    starts: Array
    ends: Array

    @property
    def count(self) -> int:
        return int((self.ends - self.starts).sum())

    def bounds(self, places: Sequence[int]) -> list[int]:
        """Return which rows are at some places among those that are kept."""
        if not len(self.starts):
            return [0 for _ in places]
        lengths = self.ends - self.starts
        before = np.cumsum(lengths) - lengths
        stretch = np.searchsorted(before, places, "right") - 1
        return (self.starts[stretch] + (places - before[stretch])).tolist()

    def within(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of stretches that lie in a range of rows."""
        first, last = np.searchsorted(self.ends, start, "right"), np.searchsorted(self.starts, end)
        for low, high in zip(
            self.starts[first:last].tolist(), self.ends[first:last].tolist(), strict=True
        ):
            yield max(low, start), min(high, end)

    def only(self, kernel: Callable[..., int], resumes: bool) -> Callable[..., int]:
        """Return a kernel that leaves out the other rows; `resumes`: it returns the row at which it has stopped, else what adds up."""

        def up_to(start: int, end: int, *results: Array) -> int:
            for low, high in self.within(start, end):
                stop = kernel(low, high, *results)
                if stop < high:
                    return stop
            return end

        def added(start: int, end: int, *results: Array) -> int:
            return sum(kernel(low, high, *results) for low, high in self.within(start, end))

        return up_to if resumes else added


def zones_with(
    index: Index, buffers: dict[str, Array], zones: Zones, least: int, rows: int
) -> Array | None:
    """Return which zones of a key have a value that is in an index, whose numbers begin with the value `least`.

    None where that is not known, or where to look through the index costs more than it may save of `rows` that probe.
    """
    there = _there(index, buffers, rows)
    if there is None:
        return None
    before = np.append(0, np.cumsum(there))
    low, high = zones.low - least, zones.high - least
    first, last = (np.clip(number, 0, index.slots - 1) // TOGETHER for number in (low, high))
    inside = (low <= high) & (high >= 0) & (low < index.slots)
    return inside & (before[last + 1] > before[first])


def kept_rows(zones: Array, rows: int) -> KeptRows:
    """Return the rows of some zones, of which truth values say whether they are kept."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], zones, [False])).astype(np.int8)))
    return KeptRows(edges[::2] * ZONE_ROWS, np.minimum(edges[1::2] * ZONE_ROWS, rows))


def _there(index: Index, buffers: dict[str, Array], rows: int) -> Array | None:
    """Which `TOGETHER` numbers have any that is in."""
    if index.guarded or index.form is Bitmap:
        bits = buffers[f"{index.name}_members"].astype("<u4", copy=False).view(np.uint8)
        return bits.astype(bool) if index.slots <= rows else None
    if index.form is not Direct or index.slots > rows // ROWS_A_SLOT:
        return None
    heads = buffers[f"{index.name}_heads"]
    there = np.zeros(-(-len(heads) // TOGETHER) * TOGETHER, bool)
    np.greater_equal(heads, 0, out=there[: len(heads)])
    together: Array = np.logical_or.reduce(there.reshape(-1, TOGETHER), axis=1)
    return together
