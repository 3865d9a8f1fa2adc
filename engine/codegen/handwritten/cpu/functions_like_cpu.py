"""The search behind `operators.cpu.functions.kernels_like`: one function, `search`, which `compile_host` compiles from this text.

Whoever imports this imports Numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit

BLOCK = 32  # bytes that are looked at together, by vector instructions
SEEN = 4  # bytes by which a part is noticed


@njit(error_model="numpy")
def search(text, offsets, out, pattern, keep, bounds, size, suffix, wanted, seen, mask):  # type: ignore[no-untyped-def]
    """Set `out` to 1 for strings that match a pattern; the others are left alone.

    `bounds` say where in `pattern` the floating parts begin and the last one ends; before them is what strings of at least `size`
    bytes begin with, after them the `suffix` bytes that they end with; `keep` has the bits of each byte that count.  Only strings that have the part `wanted` are looked at, or
    all if it is negative; `seen` and `mask` hold its first bytes and which of them it has.
    """
    rows, row = len(out), -1
    at, stop = np.int64(offsets[0]), np.int64(offsets[rows])
    first, count = bounds[max(wanted, 0)], bounds[wanted + 1] - bounds[max(wanted, 0)]
    while True:
        row += 1
        place = at
        if wanted >= 0:
            place = next_place(text, at, stop, pattern, keep, first, count, seen, mask)
            if place < 0:
                return
            while offsets[row + 1] <= place:
                row += 1
        elif row == rows:
            return
        begin, at = np.int64(offsets[row]), np.int64(offsets[row + 1])
        if at - begin >= size:
            start = place if wanted == 0 else begin
            out[row] = matches(text, begin, start, at, pattern, keep, bounds, suffix)


@njit(error_model="numpy", inline="always")
def next_place(text, at, stop, pattern, keep, first, count, seen, mask):  # type: ignore[no-untyped-def]
    """Where a part begins next, -1 if nowhere: by blocks to one that has its first bytes, then byte by byte."""
    n0, n1, n2, n3 = seen[0], seen[1], seen[2], seen[3]
    m0, m1, m2, m3 = mask[0], mask[1], mask[2], mask[3]
    while at + count <= stop:
        while at + BLOCK + SEEN <= stop:
            least = np.uint8(255)
            for i in range(BLOCK):
                j = np.uint64(at + i)  # unsigned: a negative one would count from the end
                differ = (text[j] ^ n0) & m0
                differ |= (text[j + np.uint64(1)] ^ n1) & m1
                differ |= (text[j + np.uint64(2)] ^ n2) & m2
                differ |= (text[j + np.uint64(3)] ^ n3) & m3
                least = min(least, np.uint8(differ))
            if least == 0:
                break
            at += BLOCK
        last = min(at + BLOCK - 1, stop - count)
        while at <= last:
            if (text[np.uint64(at)] ^ n0) & m0 == 0 and is_at(
                text, at, pattern, keep, first, count
            ):
                return at
            at += 1
    return np.int64(-1)


@njit(error_model="numpy", inline="always")
def matches(text, begin, start, end, pattern, keep, bounds, suffix):  # type: ignore[no-untyped-def]
    """Whether the string from `begin` to `end`, long enough, matches; the first floating part is not before `start`."""
    parts = len(bounds) - 1
    if not is_at(text, begin, pattern, keep, 0, bounds[0]):
        return False
    if not is_at(text, end - suffix, pattern, keep, bounds[parts], suffix):
        return False
    at = max(begin + bounds[0], start)
    for part in range(parts):
        first, count = bounds[part], bounds[part + 1] - bounds[part]
        last, letter, kept = end - suffix - count, pattern[first], keep[first]
        while True:
            while at <= last and (text[np.uint64(at)] ^ letter) & kept != 0:
                at += 1
            if at > last:
                return False
            if is_at(text, at, pattern, keep, first, count):
                break
            at += 1
        at += count
    return True


@njit(error_model="numpy", inline="always")
def is_at(text, at, pattern, keep, first, count):  # type: ignore[no-untyped-def]
    """Whether a text goes on with `count` bytes of a pattern."""
    k = 0
    while k < count:
        place = np.uint64(first + k)
        if (text[np.uint64(at + k)] ^ pattern[place]) & keep[place] != 0:
            break
        k += 1
    return k == count
