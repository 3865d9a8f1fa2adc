"""The loops of `operators.cpu.functions.values.text_kernels`: texts are searched for others, row by row, each a function that `compile_host` compiles.

Row `r` has the bytes from `ends[r]` to `ends[r + 1]` of a text and of its needle or pattern.  Whoever imports this imports Numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ANY_RUN, ANY_ONE = 37, 95  # % and _
NOT_READ = 2  # a pattern that ends with what escapes


@njit(error_model="numpy", inline="always")
def is_letter(byte):  # type: ignore[no-untyped-def]
    """Whether a character begins with a byte."""
    return (byte & np.uint8(0xC0)) != np.uint8(0x80)


@njit(error_model="numpy", inline="always")
def are_at(text, at, needle, begin, size):  # type: ignore[no-untyped-def]
    """Whether a text goes on with a needle."""
    k = np.int64(0)
    while k < size and text[np.uint64(at + k)] == needle[np.uint64(begin + k)]:
        k += 1
    return k == size


@njit(error_model="numpy")
def find(text, ends, needles, needle_ends, start, stop, out):  # type: ignore[no-untyped-def]
    """Set in which character each text first has its needle, from 1; 0 where it has not."""
    for row in range(start, stop):
        here = np.uint64(row)
        at, end = ends[here], ends[here + np.uint64(1)]
        begin, size = needle_ends[here], needle_ends[here + np.uint64(1)] - needle_ends[here]
        found, last, place = np.int64(size == 0), end - size, at
        first = needles[np.uint64(begin)] if size else np.uint8(0)
        while found == 0 and place <= last:
            while place <= last and text[np.uint64(place)] != first:
                place += 1
            if place <= last and are_at(text, place, needles, begin, size):
                found = np.int64(1)
                for k in range(at, place):
                    found += is_letter(text[np.uint64(k)])
            place += 1
        out[here] = found


@njit(error_model="numpy")
def find_at_end(text, ends, needles, needle_ends, start, stop, last, out):  # type: ignore[no-untyped-def]
    """Set whether each text begins with its needle, or ends with it if `last`."""
    for row in range(start, stop):
        here = np.uint64(row)
        at, end = ends[here], ends[here + np.uint64(1)]
        begin, size = needle_ends[here], needle_ends[here + np.uint64(1)] - needle_ends[here]
        fits = at + size <= end
        out[here] = fits and are_at(text, end - size if last else at, needles, begin, size)


@njit(error_model="numpy")
def match(text, at, end, patterns, place, stop, escape):  # type: ignore[no-untyped-def]
    """Whether a text is what a pattern says: where it goes wrong the last run takes a character more."""
    run, taken = np.int64(-1), np.int64(0)
    while True:
        goes_on = False
        if place < stop:
            sign, width = np.int64(patterns[np.uint64(place)]), 1
            if sign == escape:
                if place + 1 == stop:
                    return NOT_READ
                sign, width = -np.int64(patterns[np.uint64(place + 1)]), 2
            if sign == ANY_RUN:
                place += 1
                run, taken = place, at
                continue
            if at < end and (sign == ANY_ONE or abs(sign) == np.int64(text[np.uint64(at)])):
                at, place, goes_on = at + 1, place + width, True
                while sign == ANY_ONE and at < end and not is_letter(text[np.uint64(at)]):
                    at += 1
        elif at == end:
            return 1
        if not goes_on:
            if run < 0 or taken == end:
                return 0
            taken += 1
            at, place = taken, run


@njit(error_model="numpy")
def like(text, ends, patterns, pattern_ends, start, stop, escape, out):  # type: ignore[no-untyped-def]
    """Set which texts match their patterns; `escape` is a byte, below 0 for none."""
    for row in range(start, stop):
        here = np.uint64(row)
        next_one = here + np.uint64(1)
        out[here] = match(
            text,
            ends[here],
            ends[next_one],
            patterns,
            pattern_ends[here],
            pattern_ends[next_one],
            escape,
        )
