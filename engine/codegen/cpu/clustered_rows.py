"""Rows of a scan put beside others of nearby groups, before they are grouped by a key whose numbers are many and in no order.

Each row would change accumulators somewhere in a table as large as the domain of the key, outside of a core's cache, or be listed with all
that it folds (`hash_groups`).  Instead what a kernel reads of a row is written by the high bits of the key's code (radix partitioning,
stable): what it then does to the rows of a part stays within a table that fits a cache, in which each number has a slot of its own.

CPU time of six million rows in no order and 1.5 million groups, two threads, least of eight to twelve in turn: of what lists take, one sum
with a condition on it 0.69, a sum and an average 0.50 to 0.70, five aggregates 0.66 to 0.82, TPC-H's Q18 over shuffled rows 0.70 to 0.82;
of 20,000 groups 0.53 to 0.74.  `LEAST_GROUPS` of 2**63 switches it off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ... import stopping
from ...records import dataclass
from ...storage.columns.encodings import Array
from ..compile.compiler import Signature, parameters
from ..groups.ordered import has_all_rows, key_of
from ..program import Program, once

PARTS = 1 << 8
LEAST_GROUPS = 1 << 19  # whose accumulators do not fit a core's cache
MOST_NUMBERS_A_ROW = 2  # up to which parts have enough rows for a table of their numbers
ROWS_SEEN = 1 << 12  # of which it is told whether rows are scattered
LEAST_NEW = 0.9  # of them of different groups: below, groups are so few that one table holds them
MOST_IN_STRETCHES = 0.8  # of them of the group of the row before
STEP = 1 << 20  # rows between which a query may be stopped
KEY_BYTES = 4

# Kernels too, but the same for all programs
MOVE_ROWS = '''"""Write a column's codes, each to the next place of its row's part."""

import numpy as np


def move_rows(start, end, keys, shift, places, codes, moved):
    for row in range(np.uint64(start), np.uint64(end)):
        part = np.uint64(keys[row] >> np.uint32(shift))
        place = np.uint64(places[part])
        places[part] = place + np.uint64(1)
        moved[place] = codes[row]
'''
COUNT_ROWS = '''"""Count the rows of each part."""

import numpy as np


def count_rows(start, end, keys, shift, counts):
    for row in range(np.uint64(start), np.uint64(end)):
        counts[np.uint64(keys[row] >> np.uint32(shift))] += 1
'''
_PARTS = "start end int64, keys [uint32], shift int64,"
COUNT_SIGNATURE: Signature = parameters(f"{_PARTS} counts [int64]")

Range = tuple[int, int]
Kernel = Callable[..., int]


def move_signature(width: int) -> Signature:
    """The parameters of the kernel that moves codes of so many bytes."""
    return parameters(f"{_PARTS} places [int64], codes moved [uint{8 * width}]")


@once
def clustering_key(program: Program) -> int | None:
    """The place among a program's columns of the key by which its rows may be moved; None where they are not.

    Rows of filters stay, since few may pass, and those of joins: what is found for a row may depend on where it lies.
    """
    grouping, key = program.grouping, key_of(program)
    if key is None or grouping is None or not grouping.hashed or grouping.groups < LEAST_GROUPS:
        return None
    if program.buffers or program.elements or not has_all_rows(program):
        return None
    if key.codes is None or key.width != KEY_BYTES:
        return None
    if any(len(i.encoding.arrays) > 1 for i in program.inputs):
        return None
    return sum(1 + i.nullable for i in program.inputs[: program.inputs.index(key)])


@once
def ascending_key(program: Program) -> int | None:
    """The place among a program's columns of a key in whose order the rows lie; None where there is none.

    Groups by it and by others are then done where the next of its values begins.
    """
    grouping = program.grouping
    if grouping is None or not grouping.hashed or program.repeats:
        return None
    for number, i in enumerate(program.inputs):
        if i.column in grouping.columns and (i.ascending or i.clustered):
            return sum(1 + before.nullable for before in program.inputs[:number])
    return None


def widths(program: Program) -> list[int]:
    """Return how many bytes the codes have that are moved, each number once; validities are moved as bytes."""
    return sorted({width for i in program.inputs for width in (i.width, 1)[: 1 + i.nullable]})


@dataclass(frozen=True)
class Moved:
    """The columns of rows that were moved, where parts begin and end, and how many slots a table of any part's numbers needs."""

    columns: list[Array]
    parts: list[Range]
    slots: int


def clustered(
    program: Program,
    columns: Sequence[Array],
    ranges: Sequence[Range],
    kernels: Sequence[Kernel],
    each: Callable[[Callable[[int], None], list[int]], list[None]],
    ask: Callable[[int], None],
) -> Moved | None:
    """Return the rows moved, those of a part in their order; None where they stay where they are.

    That is where numbers are sparse, where a look at some rows says so (`_are_scattered`), and where one part has more than a thread's
    share.  `kernels` are what counts and what moves codes, by `widths`; `each` maps on threads.
    """
    place, (_, rows) = clustering_key(program), ranges[-1]
    assert place is not None
    assert program.grouping is not None
    keys = columns[place][:rows]
    if program.grouping.groups > MOST_NUMBERS_A_ROW * rows or not _are_scattered(keys):
        return None
    shift = max(0, int(keys.max()).bit_length() - (PARTS - 1).bit_length())

    def run(kernel: Kernel, of_ranges: Array, *codes: Array) -> None:
        def go(number: int) -> None:
            start, end = ranges[number]
            for at in range(start, end, STEP):
                stopping.check()
                kernel(at, min(at + STEP, end), keys, shift, of_ranges[number], *codes)

        each(go, list(range(len(ranges))))

    def moved(codes: Array) -> Array:
        plain = codes.view(f"u{codes.itemsize}")
        made = np.empty_like(plain)
        run(moves[codes.itemsize], places.copy(), plain, made)
        return made.view(codes.dtype)

    counts = np.zeros((len(ranges), PARTS), np.int64)
    run(kernels[0], counts)
    parts = counts.sum(axis=0)
    if parts.max() * len(ranges) > rows:
        return None
    ends = np.cumsum(parts)
    places = ends - parts + np.cumsum(counts, axis=0) - counts
    moves = dict(zip(widths(program), kernels[1:], strict=True))
    ask(sum(rows * (i.width + i.nullable) for i in program.inputs))
    made: list[Array] = []
    arrays = iter(columns)
    for i in program.inputs:
        made.append(moved(next(arrays)[:rows]))
        if i.nullable:
            valid = np.unpackbits(next(arrays), count=rows, bitorder="little")
            made.append(np.packbits(moved(valid), bitorder="little"))
    return Moved(made, list(pairwise([0, *ends.tolist()])), _slots(program, shift))


def _are_scattered(keys: Array) -> bool:
    """Whether rows are in no order, few have the group of the row before, and groups are more than a small table holds, by a look at some."""
    step = len(keys) // ROWS_SEEN | 1  # odd, since stretches are often not
    seen, following = keys[:-1:step], keys[1::step]
    if (seen[1:] >= seen[:-1]).all():
        return False
    repeated = np.count_nonzero(seen == following)
    return bool(
        len(np.unique(seen)) > LEAST_NEW * len(seen) and repeated < MOST_IN_STRETCHES * len(seen)
    )


def _slots(program: Program, shift: int) -> int:
    """Return a power of two that is at least the distance of the numbers of two codes of a part, which rise or fall evenly."""
    key = key_of(program)
    assert key is not None
    assert key.codes is not None
    assert program.grouping is not None
    steps = -(-program.grouping.groups // max(1, key.codes - 1))
    return 1 << (shift + (steps - 1).bit_length())
