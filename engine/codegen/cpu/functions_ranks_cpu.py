"""Row numbers by rank on the CPU, where a column's codes ascend strictly: how `functions_cpu` fills and reads the array of ranks.

An element stands for 32 numbers: its low half says which of them rows have, its high half is the row of the least of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from .functions_atomic_cpu import unite


@intrinsic
def ones(context, bits):  # type: ignore[no-untyped-def]
    """How many bits of an integer are set, in its type."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return (bits(bits), generate) if isinstance(bits, types.Integer) else None


@njit
def rank_rows(codes, ranks, start, end, step):  # type: ignore[no-untyped-def]
    """Rank the rows from start to end of a table, whose number in order is step * code; ranges may share an element."""
    at, gathered = np.int64(-1), np.uint64(0)
    if 0 < start < end:
        at = np.int64(codes[np.uint64(start - 1)]) * step >> 5
    for row in range(np.uint64(start), np.uint64(end)):
        number = np.int64(codes[row]) * step
        word = number >> 5
        if word != at:
            if gathered != 0:
                unite(ranks, np.uint64(at), gathered)
            at, gathered = word, row << np.uint64(32)
        gathered |= np.uint64(1) << np.uint64(number & 31)
    if gathered != 0:
        unite(ranks, np.uint64(at), gathered)


@njit
def find_rank(ranks, number):  # type: ignore[no-untyped-def]
    """The row of a number, or -1."""
    if number < 0:
        return np.int32(-1)
    entry = ranks[np.uint64(number) >> np.uint64(5)]
    bit = np.uint64(1) << np.uint64(number & 31)
    if entry & bit == 0:
        return np.int32(-1)
    return np.int32(entry >> np.uint64(32)) + np.int32(ones(entry & (bit - np.uint64(1))))


__all__ = ["find_rank", "rank_rows"]
