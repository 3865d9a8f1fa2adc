"""The steps of `operators.cpu.sort.number_rows`, each a function that `compile_host` compiles from this text.

Rows are words of 64 bits, `width` for each row.  Whoever imports this imports Numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FIRST_SLOTS = 1024


@njit(error_model="numpy", inline="always")
def hashed(words, at, width):  # type: ignore[no-untyped-def]
    """The hash of the row whose first word lies at a place: MurmurHash3's last steps after each word."""
    found = np.uint64(0)
    for k in range(width):
        found ^= np.uint64(words[np.uint64(at + k)])
        found ^= found >> np.uint64(33)
        found *= np.uint64(0xFF51AFD7ED558CCD)
        found ^= found >> np.uint64(33)
        found *= np.uint64(0xC4CEB9FE1A85EC53)
        found ^= found >> np.uint64(33)
    return found


@njit(error_model="numpy")
def count_parts(words, width, start, stop, bits, parts, counts):  # type: ignore[no-untyped-def]
    """Set the part of each row from `start` to `stop`, the leading bits of its hash, and count the rows of each."""
    shift = np.uint64(64 - bits)
    for row in range(start, stop):
        part = hashed(words, row * width, width) >> shift
        parts[np.uint64(row)] = part
        counts[part] += 1


@njit(error_model="numpy")
def place_rows(words, width, start, stop, parts, places, out):  # type: ignore[no-untyped-def]
    """Copy rows to where their parts lie; `paths` say where the next row of each goes."""
    for row in range(start, stop):
        part = np.uint64(parts[np.uint64(row)])
        place = places[part]
        places[part] = place + 1
        for k in range(width):
            out[np.uint64(place * width + k)] = words[np.uint64(row * width + k)]


@njit(error_model="numpy")
def number_rows(words, width, start, stop, known, slots, keys, numbers):  # type: ignore[no-untyped-def]
    """Number the rows of a part by first occurrence, in a hash table with linear probing; return how many differ.

    The first row of a value has the number -2 - n instead of n.  Rows from `known` on add no value: -1 is the number of those that no
    row before has.  `slots` is a power of two, of which as much is used as there are values; `keys` has room for all rows.
    """
    used, count = min(FIRST_SLOTS, len(slots)), np.int64(0)
    mask = np.uint64(used - 1)
    for i in range(used):
        slots[i] = -1
    for row in range(start, stop):
        at = np.uint64(row * width)
        first = words[at]
        slot = hashed(words, row * width, width) & mask
        number = np.int64(-1)
        while True:
            found = np.int64(slots[slot])
            if found < 0:
                break
            same = keys[np.uint64(found * width)] == first
            for k in range(1, width):
                same &= keys[np.uint64(found * width + k)] == words[np.uint64(row * width + k)]
            if same:
                number = found
                break
            slot = (slot + np.uint64(1)) & mask
        if number < 0 and row < known:
            number = -2 - count
            slots[slot] = count
            for k in range(width):
                keys[np.uint64(count * width + k)] = words[np.uint64(row * width + k)]
            count += 1
            if count * 2 > used and used < len(slots):
                used = min(used * 4, len(slots))
                mask = np.uint64(used - 1)
                enter_again(keys, width, count, slots, used, mask)
        numbers[np.uint64(row)] = number
    return count


@njit(error_model="numpy")
def enter_again(keys, width, count, slots, used, mask):  # type: ignore[no-untyped-def]
    """Enter what is known into a longer table."""
    for i in range(used):
        slots[i] = -1
    for n in range(count):
        slot = hashed(keys, n * width, width) & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = n


@njit(error_model="numpy")
def fetch_numbers(parts, start, stop, places, starts, found, numbers, firsts):  # type: ignore[no-untyped-def]
    """Set the number of each row, from those in its part and how many values the parts before it have, and each value's first row."""
    for row in range(start, stop):
        part = np.uint64(parts[np.uint64(row)])
        place = places[part]
        places[part] = place + 1
        number = found[np.uint64(place)]
        if number < -1:
            number = starts[part] - 2 - number
            firsts[np.uint64(number)] = row
        elif number >= 0:
            number += starts[part]
        numbers[np.uint64(row)] = number
