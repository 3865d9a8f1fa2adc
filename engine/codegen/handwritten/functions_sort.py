"""CUDA kernels, written by hand, that make sort keys numbers, several keys one and texts by their first bytes, and find values by their ranks; `sort_kernels` lists their parameters."""

from __future__ import annotations

import numpy as np
from numba import cuda

ALL_LANES = 0xFFFFFFFF


def sort_digit(  # type: ignore[no-untyped-def]
    rows, narrow, keys32, keys64, bits, first_bit, nullable, turned, base, null, size, begun,
    numbers, short, out32, out64,
):  # fmt: skip
    """Put a key behind numbers, as their last digit of `size`; where none is `begun`, it is the first.

    A digit is the distance of a value from `base`, downwards where the order is `turned`, and `null` for NULL: `bits` is a bitmap
    whose first bit is that of row -`first_bit`, read where `nullable` is not 0.
    """
    row = np.int64(cuda.grid(1))
    while row < rows:
        value = np.int64(0)
        if narrow != 0:
            value = np.int64(keys32[row])
        else:
            value = np.int64(keys64[row])
        digit = value - base
        if turned != 0:
            digit = base - value
        if nullable != 0:
            place = row + first_bit
            word = np.uint32(bits[place >> np.int64(5)])
            if (word >> np.uint32(place & np.int64(31))) & np.uint32(1) == 0:
                digit = np.int64(null)
        if begun != 0:
            digit += np.int64(numbers[row]) * size
        if short != 0:
            out32[row] = np.int32(digit)
        else:
            out64[row] = digit
        row += np.int64(cuda.gridsize(1))


def text_lead(rows, characters, wide, offsets32, offsets64, out):  # type: ignore[no-untyped-def]
    """Write the first 8 bytes of each string as a number: one that is less has less text, equal ones may differ behind them."""
    row = np.int64(cuda.grid(1))
    while row < rows:
        if wide != 0:
            at, end = np.int64(offsets64[row]), np.int64(offsets64[row + 1])
        else:
            at, end = np.int64(offsets32[row]), np.int64(offsets32[row + 1])
        number = np.int64(0)
        for place in range(8):
            number <<= np.int64(8)
            if at + place < end:
                number |= np.int64(characters[at + place])
        out[row] = number ^ np.int64(-(2**63))  # bytes have no sign
        row += np.int64(cuda.gridsize(1))


def count_digits(  # type: ignore[no-untyped-def]
    rows, grouped, keys, width, values32, values64, end, shift, bits, slots, items, copies,
    prefixes, counters,
):  # fmt: skip
    """Count values by a digit of so many `bits` from bit `shift` on: for each item those of its slot below `end` that begin as its prefix.

    The items of a slot lie `slots` apart.  Neighbouring warps count in different `copies`, since equal values wait for one another.
    """
    thread = np.int64(cuda.grid(1))
    first = (thread >> 5) % copies * items
    row = thread
    while row < rows:
        value = values64[row] if width == 8 else np.int64(values32[row])
        if value < end:
            head = value >> shift
            digit = head & ((np.int64(1) << bits) - 1)
            head >>= bits
            item = np.int64(0)
            if grouped != 0:
                item = np.int64(keys[row])
            while item < items:
                if prefixes[item] == head:
                    cuda.atomic.add(counters, ((first + item) << bits) + digit, np.int32(1))
                item += slots
        row += np.int64(cuda.gridsize(1))


def fold_counts(size, copies, counters):  # type: ignore[no-untyped-def]
    """Add up the copies of so many counters in the first one."""
    place = np.int64(cuda.grid(1))
    while place < size:
        total = np.int32(0)
        copy = np.int64(0)
        while copy < copies:
            total += counters[copy * size + place]
            copy += 1
        counters[place] = total
        place += np.int64(cuda.gridsize(1))


def choose_digits(items, slots, bits, ranks, prefixes, counters):  # type: ignore[no-untyped-def]
    """Put the digit behind each item's prefix in which the value of its rank lies, and leave the rank among the values that have it.

    Of `slots` less than items each slot's counters are those of all its items.
    """
    thread = np.int64(cuda.grid(1))
    lane = thread & 31
    item = thread >> 5
    while item < items:
        rank = ranks[item]
        size = np.int64(1) << bits
        base = (item % slots) << bits
        before = np.int64(0)
        found = np.int64(-1)
        start = np.int64(0)
        while found < 0 and start < size:
            count = np.int64(0)
            if start + lane < size:
                count = np.int64(counters[base + start + lane])
            upto = count
            for distance in (1, 2, 4, 8, 16):
                other = cuda.shfl_up_sync(ALL_LANES, upto, distance)
                if lane >= distance:
                    upto += other
            votes = np.int32(cuda.ballot_sync(ALL_LANES, before + upto > rank))
            last = np.int32(31)
            if votes != 0:
                last = np.int32(cuda.ffs(votes) - 1)
                found = start + np.int64(last)
                upto -= count
            before += cuda.shfl_sync(ALL_LANES, upto, last)
            start += 32
        if lane == 0 and found >= 0:
            prefixes[item] = (prefixes[item] << bits) | found
            ranks[item] = rank - before
        item += np.int64(cuda.gridsize(1)) >> 5
