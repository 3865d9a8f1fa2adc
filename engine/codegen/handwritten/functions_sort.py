"""CUDA kernels, written by hand, that make sort keys numbers: several keys one, and texts by their first bytes; `sort_kernels` lists their parameters."""

from __future__ import annotations

import numpy as np
from numba import cuda


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
