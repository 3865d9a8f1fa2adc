"""Orders of integers, of many by buckets: each fits a core's cache, threads take them, and a query stops between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ....storage.columns.encodings import Array
from ..memory.chunks import CHUNK_ROWS, each, each_chunk
from ..table import Indices

Bits = npt.NDArray[np.uint64]

ROOM = 63  # bits of an integer that is not negative
LEAST_BY_WORDS = 1 << 10  # of which numpy's own sort takes as long
LOOKED_AT = 1 << 9


def order_by_words(words: Sequence[Ints]) -> Ints:
    """Return the row numbers sorted by several arrays, the most significant first; equal rows stay in input order.

    numpy sorts integers by vector instructions, but not by several arrays, nor where it returns places.  So the leading bits of all rows
    are sorted with the rows' numbers, and only rows that tie in them go on, with the number of their run before the next bits.  A million
    rows by a number of 14 bits and a DOUBLE take 46 ms, and `numpy.lexsort` 190 ms (one core of a 2024 server, which others used).
    """
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


Ints = npt.NDArray[np.int64]

MOST_AT_ONCE = 1 << 20  # rows of which a sort takes up to 0.1 s
MOST_PACKED = 1 << 22  # the same where a value and its row's number fit one integer
BUCKET_ROWS = 1 << 18
MOST_BITS = 10
MOST_BUCKETS = 1 << MOST_BITS
SAMPLE = 64  # values for each bucket
LEAST_SAMPLED = 4  # values of a sample for each of the first rows that are asked for
# Odd, so that multiplying by it loses no bit
STEP = np.uint64(0x9E3779B97F4A7C15)


def stable_order(codes: Ints, size: int) -> Indices:
    """Return the row numbers sorted by code in 0..size-1, equal codes in input order.

    numpy sorts 16-bit integers by radix; two such passes take half the time of one sort of int64.
    """
    if len(codes) > MOST_AT_ONCE:
        return lexicographic([codes])
    if size <= 1 << 16:
        return np.argsort(codes.astype(np.uint16), kind="stable")
    if bool((codes[1:] >= codes[:-1]).all()):
        return np.arange(len(codes))
    return _argsorted(codes)


def sorted_with_rows(values: Ints) -> tuple[Ints, Indices] | None:
    """Return values in order and their row numbers, equal ones in input order; None where both do not fit 63 bits, or one is negative.

    numpy sorts integers by vector instructions, and by none where it returns their places: 4 million rows take 0.1 s
    instead of 0.3 s for two radix passes, 0.5 s for a stable sort (one core of a 2024 server).
    """
    bits = len(values).bit_length()
    if not len(values) or int(values.max()).bit_length() + bits > 63 or int(values.min()) < 0:
        return None
    packed = values << bits
    packed |= np.arange(len(values))
    packed.sort()
    rows = packed & ((1 << bits) - 1)
    packed >>= bits
    return packed, rows


def _argsorted(values: Ints) -> Indices:
    """Return the row numbers of integers in order, equal ones in input order."""
    low = int(values.min(initial=0))
    if int(values.max(initial=0)) - low < 1 << 62:
        found = sorted_with_rows(values - low)
        if found is not None:
            return found[1]
    return order_by_words([values])


def lexicographic(parts: Sequence[Ints]) -> Indices:
    """Return the row numbers sorted by several arrays, the most significant first; equal rows stay in input order.

    numpy sorts integers by vector instructions, but not by several arrays, nor where it returns places.  So the leading bits of all rows
    are sorted with the rows' numbers, and only rows that tie in them go on, with the number of their run before the next bits.  A million
    rows by a number of 14 bits and a DOUBLE take 46 ms, and `numpy.lexsort` 190 ms (one core of a 2024 server, which others used).
    """
    leading, *others = parts
    count = len(leading)
    if count <= MOST_AT_ONCE:
        return order_by_words(parts) if others else _argsorted(leading)
    if not others and bool((leading[1:] >= leading[:-1]).all()):
        return np.arange(count)
    if not others and count <= MOST_PACKED:
        return _argsorted(leading)
    splitters = splitters_of(leading)
    rows, bounds = distributed(
        lambda part: np.searchsorted(splitters, leading[part], "right"), count, len(splitters) + 1
    )
    alike: list[slice] = []

    def sort(bucket: slice) -> None:
        here = rows[bucket]
        values = leading[here]
        if len(values) and values.min() < values.max():
            order = order_by_words([p[here] for p in parts]) if others else _argsorted(values)
            rows[bucket] = here[order]
        elif others:
            alike.append(bucket)

    each(sort, bounds, count)
    for bucket in alike:
        here = rows[bucket]
        rows[bucket] = here[lexicographic([p[here] for p in others])]
    return rows


def splitters_of(values: Ints) -> Ints:
    """Return where buckets of about equal size begin; a value that many rows have gets a bucket for itself."""
    buckets = min(max(2, len(values) // BUCKET_ROWS), MOST_BUCKETS)
    sample = np.sort(values[:: max(1, len(values) // (SAMPLE * buckets))])
    chosen = sample[:: max(1, len(sample) // buckets)]
    frequent = chosen[1:][chosen[1:] == chosen[:-1]]
    after = frequent[frequent < np.iinfo(np.int64).max] + 1
    return np.unique(np.concatenate([chosen, after]))


def by_hash(values: Ints, bits: int) -> tuple[Indices, list[slice]]:
    """Return row numbers by buckets, in each of which all rows of its values are."""
    shift, whole = np.uint64(64 - bits), values.astype(np.int64, copy=False).view(np.uint64)
    return distributed(lambda part: (whole[part] * STEP) >> shift, len(values), 1 << bits)


def distributed(
    bucket_of: Callable[[slice], Array], count: int, buckets: int
) -> tuple[Indices, list[slice]]:
    """Return row numbers by buckets, ascending within each, and where each bucket lies; `bucket_of` takes a slice of the rows."""
    numbers = np.empty(count, np.uint16)

    def count_rows(start: int, stop: int) -> Array:
        numbers[start:stop] = bucket_of(slice(start, stop))
        return np.bincount(numbers[start:stop], minlength=buckets)

    counts = np.array(each_chunk(count_rows, count))
    # Bucket by bucket, and in each chunk by chunk
    ends = np.cumsum(counts.T.ravel()).reshape(counts.T.shape).T
    rows = np.empty(count, np.int64)

    def place(start: int, stop: int) -> None:
        order = np.argsort(numbers[start:stop], kind="stable") + start
        chunk, taken = start // CHUNK_ROWS, 0
        for bucket in np.flatnonzero(counts[chunk]):
            size, end = counts[chunk, bucket], ends[chunk, bucket]
            rows[end - size : end] = order[taken : taken + size]
            taken += size

    each_chunk(place, count)
    last = [0, *ends[-1].tolist()]
    return rows, [slice(a, b) for a, b in pairwise(last)]
