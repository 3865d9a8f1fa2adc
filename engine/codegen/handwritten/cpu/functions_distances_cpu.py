"""The loops of `operators.cpu.functions.values.text_kernels` over pairs of texts, each a function that `compile_host` compiles from this text.

Texts are the code points of their characters, and row `r` has those from `ends[r]` to `ends[r + 1]` of both.  `scratch` has room for what
two texts need, which is zero before the first pair and is left so where a function relies on it.  Whoever imports this imports Numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit

WORDS = 0x110000 // 64 + 1  # of a set of characters
PREFIX = 4  # of Winkler's
PREFIX_WEIGHT = 0.1
SIMILAR = 0.7  # beyond which a common prefix counts
NO_VALUE = -1.0


@njit(error_model="numpy")
def levenshtein(left, left_ends, right, right_ends, start, stop, scratch, out):  # type: ignore[no-untyped-def]
    """Set the distances, a row of the matrix at a time in `scratch`."""
    for row in range(start, stop):
        here = np.uint64(row)
        first, last = left_ends[here], left_ends[here + np.uint64(1)]
        begin, size = right_ends[here], right_ends[here + np.uint64(1)] - right_ends[here]
        for j in range(size):
            scratch[np.uint64(j)] = j + 1
        found = size
        for i in range(last - first):
            letter, before, found = left[np.uint64(first + i)], np.int64(i), np.int64(i + 1)
            for j in range(size):
                above = scratch[np.uint64(j)]
                changed = before + (letter != right[np.uint64(begin + j)])
                found = min(found + 1, above + 1, changed)
                before = above
                scratch[np.uint64(j)] = found
        out[here] = found


@njit(error_model="numpy")
def damerau_levenshtein(left, left_ends, right, right_ends, start, stop, scratch, out):  # type: ignore[no-untyped-def]
    """Set the distances; `scratch` has for each character on the right the last row where it was on the left, and then the matrix."""
    for row in range(start, stop):
        here = np.uint64(row)
        first, rows = left_ends[here], left_ends[here + np.uint64(1)] - left_ends[here]
        begin, size = right_ends[here], right_ends[here + np.uint64(1)] - right_ends[here]
        most, width = rows + size, size + 2
        for j in range(size):
            scratch[np.uint64(j)] = 0
        for i in range(rows + 2):
            scratch[np.uint64(size + i * width)] = most
            scratch[np.uint64(size + i * width + 1)] = i - 1
        for j in range(size + 2):
            scratch[np.uint64(size + j)] = most
            scratch[np.uint64(size + width + j)] = j - 1 if j else most
        for i in range(1, rows + 1):
            letter, matched = left[np.uint64(first + i - 1)], np.int64(0)
            above, at = size + i * width, size + (i + 1) * width
            for j in range(1, size + 1):
                known, last = scratch[np.uint64(j - 1)], matched
                same = letter == right[np.uint64(begin + j - 1)]
                if same:
                    matched, scratch[np.uint64(j - 1)] = np.int64(j), i
                swapped = (
                    scratch[np.uint64(size + known * width + last)] + (i - known) + (j - last) - 1
                )
                changed = scratch[np.uint64(above + j)] + (not same)
                added = min(scratch[np.uint64(at + j)], scratch[np.uint64(above + j + 1)]) + 1
                scratch[np.uint64(at + j + 1)] = min(changed, added, swapped)
        out[here] = scratch[np.uint64(size + (rows + 1) * width + size + 1)]


@njit(error_model="numpy")
def hamming(left, left_ends, right, right_ends, start, stop, scratch, out):  # type: ignore[no-untyped-def]
    """Set how many characters differ; there is no value for texts of other lengths, nor for empty ones."""
    for row in range(start, stop):
        here = np.uint64(row)
        first, size = left_ends[here], left_ends[here + np.uint64(1)] - left_ends[here]
        begin, found = right_ends[here], np.int64(0)
        for k in range(size):
            found += left[np.uint64(first + k)] != right[np.uint64(begin + k)]
        differ = size != right_ends[here + np.uint64(1)] - begin
        out[here] = NO_VALUE if differ or size == 0 else found


@njit(error_model="numpy", inline="always")
def is_new(letter, held, place):  # type: ignore[no-untyped-def]
    """Put a character into the set whose words begin at a place; whether it was not there."""
    word, bit = np.uint64(place + (letter >> 6)), np.int64(1) << np.int64(letter & 63)
    known = held[word] & bit
    held[word] |= bit
    return known == 0


@njit(error_model="numpy")
def jaccard(left, left_ends, right, right_ends, start, stop, scratch, out):  # type: ignore[no-untyped-def]
    """Set which part of the characters of both texts is in each of them; there is no value for empty ones.

    `scratch` has a set of characters for either text, empty before and after each row.
    """
    for row in range(start, stop):
        here, both, of_all = np.uint64(row), np.int64(0), np.int64(0)
        first, last = left_ends[here], left_ends[here + np.uint64(1)]
        begin, end = right_ends[here], right_ends[here + np.uint64(1)]
        for k in range(first, last):
            of_all += is_new(np.int64(left[np.uint64(k)]), scratch, 0)
        for k in range(begin, end):
            letter = np.int64(right[np.uint64(k)])
            if is_new(letter, scratch, WORDS):
                of_left = not is_new(letter, scratch, 0)
                both, of_all = both + of_left, of_all + (not of_left)
        for k in range(first, last):
            scratch[np.uint64(left[np.uint64(k)] >> np.uint32(6))] = 0
        for k in range(begin, end):
            word = np.uint64(right[np.uint64(k)] >> np.uint32(6))
            scratch[word] = scratch[word + np.uint64(WORDS)] = 0
        out[here] = NO_VALUE if first == last or begin == end else both / of_all


@njit(error_model="numpy")
def jaro(left, first, size, right, begin, count, scratch):  # type: ignore[no-untyped-def]
    """The similarity of two texts; `scratch` has which characters on the left match, and the matching ones on the right in order."""
    reach, found = max(max(size, count) // 2 - 1, 0), np.int64(0)
    for i in range(size):
        scratch[np.uint64(i)] = 0
    for j in range(count):
        letter = right[np.uint64(begin + j)]
        for i in range(max(j - reach, 0), min(j + reach + 1, size)):
            if scratch[np.uint64(i)] == 0 and left[np.uint64(first + i)] == letter:
                scratch[np.uint64(i)] = 1
                scratch[np.uint64(size + found)] = letter
                found += 1
                break
    if found == 0:
        return 0.0
    place, moved = np.int64(0), np.int64(0)
    for i in range(size):
        if scratch[np.uint64(i)] == 1:
            moved += left[np.uint64(first + i)] != scratch[np.uint64(size + place)]
            place += 1
    return (found / size + found / count + (found - moved // 2) / found) / 3


@njit(error_model="numpy")
def jaro_similarity(left, left_ends, right, right_ends, start, stop, scratch, out):  # type: ignore[no-untyped-def]
    """Set the similarities of Jaro."""
    for row in range(start, stop):
        here = np.uint64(row)
        first, begin = left_ends[here], right_ends[here]
        size, count = (
            left_ends[here + np.uint64(1)] - first,
            right_ends[here + np.uint64(1)] - begin,
        )
        out[here] = jaro(left, first, size, right, begin, count, scratch)


@njit(error_model="numpy")
def jaro_winkler_similarity(left, left_ends, right, right_ends, start, stop, scratch, out):  # type: ignore[no-untyped-def]
    """Set the similarities of Jaro, which are larger for texts that begin alike."""
    for row in range(start, stop):
        here = np.uint64(row)
        first, begin = left_ends[here], right_ends[here]
        size, count = (
            left_ends[here + np.uint64(1)] - first,
            right_ends[here + np.uint64(1)] - begin,
        )
        similar = jaro(left, first, size, right, begin, count, scratch)
        if similar > SIMILAR:
            same = np.int64(0)
            while same < min(size, count, PREFIX):
                if left[np.uint64(first + same)] != right[np.uint64(begin + same)]:
                    break
                same += 1
            similar += same * PREFIX_WEIGHT * (1 - similar)
        out[here] = similar
