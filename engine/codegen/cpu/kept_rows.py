"""Rows of relation 0 that a kernel on the CPU goes through, where an index of its joins tells that others find nothing, or a comparison.

A join that keeps only rows with a match reads the key of each row of the probe side.  Where rows lie in an order that has to do with
it, as those of sales do with days, few zones of the column (`storage.columns.row_zones`) have any key of a small build side: the kernel
is not run over the others.  CPU time at SF1 of queries that are not among TPC-DS's, with the same joins: a month of inventory 8.2 to
1.8 ms, a year of catalog_sales 4.9 to 2.8; TPC-DS's own Q37 14 to 3.4.  `ZONE_ROWS` of 2**62 switches it off.

So it is where a filter compares such a column with a constant: a row of a million by its number takes 0.4 ms instead of 1.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...records import dataclass
from ...storage.columns.encodings import Array, EncodedColumn, Narrow
from ...storage.columns.row_zones import ZONE_ROWS, Zones
from ..indexes.layers import Bitmap, Direct, Index
from ..loop import Apply, Guard, Let, Machine, Name, Number, Term
from ..program import Program, once

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


class Compared(NamedTuple):
    """That only rows are in whose code in a column, by its place among `Program.read`, is so compared with a number."""

    place: int
    operator: str
    code: int


@once
def compared(made: Program) -> list[Compared]:
    """Return what a kernel asks of the codes of columns before anything else keeps a row."""
    terms: list[Term] = [] if made.keep is None else [made.keep]
    values: dict[str, Term] = {}
    for statement in made.body:
        if isinstance(statement, Let):
            values[statement.name.text] = statement.value
        elif isinstance(statement, Guard):
            terms.append(statement.condition)
    codes = {f"{made.names[i.column]}_code": place for place, i in enumerate(made.inputs)}
    numbers = {p.name: p.value for p in made.parameters if p.machine in (Machine.I32, Machine.I64)}
    found: list[Compared] = []
    while terms:
        match terms.pop():
            case Name(text=name) if name in values:
                terms.append(values.pop(name))
            case Apply(operator="&", args=args):
                terms += args
            case Apply(operator=sign, args=(Name(text=a), Name(text=b))) if sign in MIRRORED:
                if a in codes and b in numbers:
                    found.append(Compared(codes[a], sign, int(numbers[b])))
                elif b in codes and a in numbers:
                    found.append(Compared(codes[b], MIRRORED[sign], int(numbers[a])))
            case Apply(operator=sign, args=(Name(text=a), Number(value=n))) if sign in MIRRORED:
                if a in codes and isinstance(n, int):
                    found.append(Compared(codes[a], sign, n))
    return found


MIRRORED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def zones_within(column: EncodedColumn, zones: Zones, asked: Compared) -> Array | None:
    """Return which zones of a column may have a value that a comparison keeps, None where that is not known."""
    if not isinstance(column.encoding, Narrow):
        return None
    bound = column.encoding.registers(np.array([asked.code]))[0]
    low, high = zones.low, zones.high
    match asked.operator:
        case "==":
            return (low <= bound) & (bound <= high)
        case "<" | "<=":
            return low <= bound
    return high >= bound


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
