"""Groups that are addressed directly on the CPU, of which each range of rows may meet few: rows in the order of a key meet a
stretch of them.

What a range has met is copied out of its accumulators, which are as large as the domain, before ranges are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ...storage.columns.encodings import Array
from ..compile.compiler import Signature, parameters
from ..groups.accumulate import FOLDS
from ..loop import Machine
from ..program import Program

# A kernel too, but the same for all programs
COPY_GROUPS = '''"""Copy the accumulators of the groups that have rows, by the integers of a row; return how many there are."""

import numpy as np


def copy_groups(integers, floats, counts, numbers, kept_i, kept_f):
    found = np.uint64(0)
    for slot in range(np.uint64(integers.shape[1])):
        if integers[counts, slot] != 0:
            numbers[found] = slot
            for i in range(integers.shape[0]):
                kept_i[i, found] = integers[i, slot]
            for i in range(floats.shape[0]):
                kept_f[i, found] = floats[i, slot]
            found += np.uint64(1)
    return found
'''
COPY_SIGNATURE: Signature = parameters(
    "integers [int64:F], floats [float64:F], counts int64, numbers [int64], "
    "kept_i [int64:C], kept_f [float64:C]"
)

# Numbers of the groups that a range met, ascending, and an array for each accumulator; None for all groups, met or not
Met = tuple[Array | None, list[Array]]
Counted = tuple[Array, list[Array]]
MOST_LEFT_OUT = 2  # the domain, as a multiple of the groups that a range met, up to which their accumulators stay where they are


def met(
    copy: Callable[..., int], program: Program, out_i: Array, out_f: Array, rows: int | None
) -> Met:
    """Copy the groups that a range has met, unless these are most; it has so many rows, None where they are not known.

    Orders of 150,000 customers in no order are met by both of two ranges: with a condition on them they take 13 ms of CPU time, and 32 put together by number.
    """
    grouping = program.grouping
    assert grouping is not None
    slots = program.slots
    room = grouping.groups if rows is None else min(rows, grouping.groups)
    integers = sum(a.machine is Machine.I64 for a in program.accumulators)
    floats = len(slots) - integers
    counts = slots[grouping.rows][1]
    if np.count_nonzero(out_i[counts]) * MOST_LEFT_OUT >= grouping.groups:
        whole = {"out_i": out_i, "out_f": out_f}
        return None, [whole[array][at] for array, at in slots]
    numbers = np.empty(room, np.int64)
    kept = {
        "out_i": np.empty((integers, room), np.int64),
        "out_f": np.empty((floats, room), np.float64),
    }
    given = out_i[:integers], out_f[:floats], counts
    found = copy(*given, numbers, kept["out_i"], kept["out_f"])
    return numbers[:found], [kept[array][at, :found] for array, at in slots]


def merged(program: Program, parts: Sequence[Met]) -> Met:
    """Merge what ranges have met, in the order of group numbers; of all groups where each range has those."""
    if all(numbers is None for numbers, _ in parts):
        (_, held), *others = parts
        for _, arrays in others:
            for a, old, new in zip(program.accumulators, held, arrays, strict=True):
                FOLDS[a.fold](old, new, out=old)
        return None, held
    return _merged(program, [_counted(program, part) for part in parts])


def _counted(program: Program, part: Met) -> Counted:
    """Leave out the groups that a range has not met."""
    numbers, arrays = part
    if numbers is not None:
        return numbers, arrays
    assert program.grouping is not None
    numbers = np.flatnonzero(arrays[program.grouping.rows])
    return numbers, [array[numbers] for array in arrays]


def _merged(program: Program, parts: Sequence[Counted]) -> Counted:
    parts = [part for part in parts if len(part[0])] or list(parts[:1])
    if all(a[0][-1] <= b[0][0] for a, b in pairwise(parts)):
        return _joined(program, parts)
    numbers = np.concatenate([found for found, _ in parts])
    arrays = [np.concatenate(found) for found in zip(*(a for _, a in parts), strict=True)]
    order = np.argsort(numbers, kind="stable")  # which merges runs that ascend
    numbers = numbers[order]
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    folded = [
        FOLDS[a.fold].reduceat(array[order], starts)
        for a, array in zip(program.accumulators, arrays, strict=True)
    ]
    return numbers[starts], folded


def _joined(program: Program, parts: Sequence[Counted]) -> Counted:
    """Put stretches of groups one after the other; two that meet may share one group."""
    pieces = [parts[0]]
    for numbers, arrays in parts[1:]:
        before, held = pieces[-1]
        shared = before[-1] == numbers[0]
        if shared:
            for a, old, new in zip(program.accumulators, held, arrays, strict=True):
                new[0] = FOLDS[a.fold](old[-1], new[0])
            pieces[-1] = before[:-1], [array[:-1] for array in held]
        pieces.append((numbers, arrays))
    if len(pieces) == 1:
        return pieces[0]
    numbers = np.concatenate([found for found, _ in pieces])
    return numbers, [np.concatenate(a) for a in zip(*(a for _, a in pieces), strict=True)]
