"""What generated CPU kernels call, under the names that every target provides.

Kernels that fill an index run on several threads, so what they write is exchanged in one operation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.cgutils import alloca_once
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from .functions_atomic_cpu import exchange, unite
from .functions_ranks_cpu import find_rank, rank_rows


@intrinsic(prefer_literal=True)
def on_stack(context, size, dtype):  # type: ignore[no-untyped-def]
    """An array of a constant size, whose elements hold anything; it ends with the function that calls this."""
    if not isinstance(size, types.IntegerLiteral) or not isinstance(dtype, types.NumberClass):
        return None
    kind, length = types.Array(dtype.instance_type, 1, "C"), size.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        item = context.get_data_type(kind.dtype)
        bytes_each = context.get_constant(types.intp, context.get_abi_sizeof(item))
        array = make_array(kind)(context, builder)
        populate_array(
            array,
            data=alloca_once(builder, item, size=length),
            shape=[context.get_constant(types.intp, length)],
            strides=[bytes_each],
            itemsize=bytes_each,
            meminfo=None,
        )
        return array._getvalue()

    return kind(size, dtype), generate


@njit
def first_alike(codes, row):  # type: ignore[no-untyped-def]
    """The first of the rows that have the code of a row."""
    first = np.uint64(row)
    code = codes[first]
    while first > 0 and codes[first - np.uint64(1)] == code:
        first -= np.uint64(1)
    return np.int32(first)


@njit
def next_alike(codes, row, rows):  # type: ignore[no-untyped-def]
    """The next row, if there is one and it has the same code, or -1."""
    place = np.uint64(row)
    if row + 1 < rows and codes[place + np.uint64(1)] == codes[place]:
        return np.int32(row + 1)
    return np.int32(-1)


I64_MAX = np.int64(2**63 - 1)
ALL_KEPT = np.uint64(0x0101010101010101)  # eight truth values
MIX = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: the high bits are well mixed
MIX_32 = np.uint32(0x9E3779B1)  # likewise


@njit(inline="always")
def absolute(x):  # type: ignore[no-untyped-def]
    """The absolute value of a double."""
    return -x if x < 0.0 else x


@njit
def order_of_double(x):  # type: ignore[no-untyped-def]
    """An int64 that orders as SQL orders doubles: -0.0 is 0.0, NaN above infinity."""
    if x != x:  # noqa: PLR0124 - NaN alone
        return I64_MAX
    bits = np.float64(x + 0.0).view(np.int64)
    return bits ^ I64_MAX if bits < 0 else bits


@njit
def hashed_to(number, slots):  # type: ignore[no-untyped-def]
    """The slot below a power of two that a number begins at."""
    mixed = np.uint64(number) * MIX
    return (mixed ^ (mixed >> np.uint64(32))) & np.uint64(slots - 1)


@njit
def group_part(number, shift):  # type: ignore[no-untyped-def]
    """The part that a group number falls to: by its high bits, with a negative shift by those of a hash, which its slot is not found by."""
    if shift >= 0:
        return np.uint64(number) >> np.uint64(shift)
    return (np.uint64(number) * MIX) >> np.uint64(-shift)


@njit
def group_slot(keys, state, key):  # type: ignore[no-untyped-def]
    """The slot of a group number among keys, made if there is none; -1 when there is no room.

    `state[2]`: 0 is an open-addressing table, of which one half may be full; 1 a table for the numbers of one part (`group_part` by
    `state[3]`), each of which has its own slot; 2 a list in parts with room for `state[4]` numbers, where each has the next slot of its part,
    `state[5 + part]`.
    """
    if state[2] == 0:
        mask = np.uint64(keys.size - 1)
        slot = hashed_to(key, keys.size)
        while True:
            held = keys[slot]
            if held == key:
                return np.int64(slot)
            if held == -1:
                if state[0] * 2 >= keys.size:
                    return np.int64(-1)
                keys[slot] = key
                state[0] += 1
                return np.int64(slot)
            slot = (slot + np.uint64(1)) & mask
    if state[2] == 1:
        slot = np.uint64(key) & np.uint64(keys.size - 1)
        state[0] += keys[slot] < 0
        keys[slot] = key
        return np.int64(slot)
    part = group_part(key, state[3])
    slot = np.uint64(state[np.uint64(5) + part])
    if slot == (part + np.uint64(1)) * np.uint64(state[4]):
        return np.int64(-1)
    keys[slot] = key
    state[np.uint64(5) + part] = slot + np.uint64(1)
    return np.int64(slot)


@njit
def fold_integers(fold, old, new):  # type: ignore[no-untyped-def]
    """Fold two values as the accumulator does that has this place in `groups.accumulate.FOLDS`."""
    if fold == 0:
        return old + new
    if fold == 1:
        return min(old, new)
    if fold == 2:
        return max(old, new)
    if fold == 3:
        return old | new
    if fold == 4:
        return old & new
    if fold == 5:
        return old ^ new
    return max(old, new)


@njit
def choose(kept, start, stop, chosen):  # type: ignore[no-untyped-def]
    """Write the numbers of those rows from start to stop that are kept; return how many there are.

    Eight at a time are looked at first, since where few or most rows are kept, none or all of these often are.
    """
    count = np.uint64(0)
    words = kept.view(np.uint64)
    size = stop - start
    for word in range(size >> np.uint64(3)):
        eight = words[word]
        first = word << np.uint64(3)
        if eight == ALL_KEPT:
            for place in range(np.uint64(8)):
                chosen[count + place] = start + first + place
            count += np.uint64(8)
        elif eight != 0:
            for place in range(first, first + np.uint64(8)):
                chosen[count] = start + place
                count += np.uint64(kept[place])
    for place in range(size & ~np.uint64(7), size):
        chosen[count] = start + place
        count += np.uint64(kept[place])
    return count


# Filling an index


@njit
def set_bit(bits, number):  # type: ignore[no-untyped-def]
    """Set a bit."""
    if number >= 0:
        word = np.uint64(number) >> np.uint64(5)
        bit = np.uint32(np.uint32(1) << np.uint32(number & 31))
        if bits[word] & bit == 0:
            unite(bits, word, bit)
    return np.int64(0)


@njit
def insert_bit(bits, number):  # type: ignore[no-untyped-def]
    """Set a bit; return 1 if it was set."""
    if number < 0:
        return np.int64(0)
    bit = np.uint32(np.uint32(1) << np.uint32(number & 31))
    return np.int64(unite(bits, np.uint64(number) >> np.uint64(5), bit) & bit != 0)


@njit
def insert_unique(heads, number, row):  # type: ignore[no-untyped-def]
    """Note the row of a key; return 1 if the key had one."""
    if number < 0:
        return np.int64(0)
    return np.int64(exchange(heads, np.uint64(number), np.int32(row)) >= 0)


@njit
def insert_guarded(members, heads, number, row):  # type: ignore[no-untyped-def]
    """Note the row of a key, whose bit says that there is one; return 1 if it was set."""
    if number < 0:
        return np.int64(0)
    taken = insert_bit(members, number)
    if taken == 0:
        heads[np.uint64(number)] = row
    return taken


@njit
def insert_linked(heads, links, number, row):  # type: ignore[no-untyped-def]
    """Put a row before the others of its key; return 1 if there are any."""
    if number < 0:
        return np.int64(0)
    before = exchange(heads, np.uint64(number), np.int32(row))
    links[np.uint64(row)] = before
    return np.int64(before >= 0)


@njit
def insert_hashed_raw(heads, links, numbers, number, valid, row):  # type: ignore[no-untyped-def]
    """Put a row before the others of its bucket, unless its key is NULL."""
    if valid:
        numbers[np.uint64(row)] = number
        links[np.uint64(row)] = exchange(heads, hashed_to(number, heads.size), np.int32(row))
    return np.int64(0)


@njit
def insert_hashed(heads, links, numbers, number, row):  # type: ignore[no-untyped-def]
    """Put a row before the others of its bucket, unless its key's number is negative."""
    return insert_hashed_raw(heads, links, numbers, number, number >= 0, row)


@njit
def sieve_place(shift, number):  # type: ignore[no-untyped-def]
    """The word of a number in a sieve, and its two bits there."""
    mixed = np.uint32(np.uint32(number) * MIX_32)
    first = np.uint32(np.uint32(1) << np.uint32((mixed >> np.uint32(shift - 5)) & np.uint32(31)))
    second = np.uint32(np.uint32(1) << np.uint32((mixed >> np.uint32(shift - 10)) & np.uint32(31)))
    return np.uint64(mixed >> np.uint32(shift)), np.uint32(first | second)


@njit
def mark_sieve(sieve, shift, number):  # type: ignore[no-untyped-def]
    """Let a number, which is returned, through a sieve."""
    if number >= 0:
        word, bits = sieve_place(shift, number)
        if sieve[word] & bits != bits:
            unite(sieve, word, bits)
    return np.int64(number)


# Looking into an index


@njit
def in_sieve(sieve, shift, number):  # type: ignore[no-untyped-def]
    """Whether a sieve lets a number through."""
    word, bits = sieve_place(shift, number)
    return number >= 0 and sieve[word] & bits == bits


@njit
def pass_sieve(sieve, shift, number):  # type: ignore[no-untyped-def]
    """The number, or -1 if a sieve shows that it is not in."""
    return np.int64(number) if in_sieve(sieve, shift, number) else np.int64(-1)


@njit
def has_bit(bits, number):  # type: ignore[no-untyped-def]
    """Whether a bit is set; that of a negative number is not."""
    if number < 0:
        return False
    return (bits[np.uint64(number) >> np.uint64(5)] >> np.uint32(number & 31)) & np.uint32(1) != 0


@njit
def pass_bits(bits, number):  # type: ignore[no-untyped-def]
    """The number, or -1 if its bit is not set."""
    return np.int32(number) if has_bit(bits, number) else np.int32(-1)


@njit
def bit_at(bits, row):  # type: ignore[no-untyped-def]
    """Whether a row's bit in a validity bitmap is set."""
    return (bits[np.uint64(row) >> np.uint64(3)] >> np.uint8(row & 7)) & np.uint8(1) != 0


@njit
def find_direct(heads, number):  # type: ignore[no-untyped-def]
    """The row of a key, or -1."""
    return heads[np.uint64(number)] if number >= 0 else np.int32(-1)


@njit
def find_guarded(members, heads, number):  # type: ignore[no-untyped-def]
    """The row of a key, or -1; nothing was ever put where its bit is not set."""
    return heads[np.uint64(number)] if has_bit(members, number) else np.int32(-1)


@njit
def next_linked(links, row):  # type: ignore[no-untyped-def]
    """The next row of the same key, or -1."""
    return links[np.uint64(row)]


@njit
def find_hashed_raw(heads, links, numbers, number, valid):  # type: ignore[no-untyped-def]
    """The first row of a key, or -1."""
    row = heads[hashed_to(number, heads.size)] if valid else np.int32(-1)
    while row >= 0 and numbers[np.uint64(row)] != number:
        row = links[np.uint64(row)]
    return row


@njit
def find_hashed(heads, links, numbers, number):  # type: ignore[no-untyped-def]
    """The first row of a key's number, or -1."""
    return find_hashed_raw(heads, links, numbers, number, number >= 0)


@njit
def next_hashed(links, numbers, number, row):  # type: ignore[no-untyped-def]
    """The next row of the same key, or -1."""
    row = links[np.uint64(row)]
    while row >= 0 and numbers[np.uint64(row)] != number:
        row = links[np.uint64(row)]
    return row


__all__ = [
    "absolute",
    "bit_at",
    "choose",
    "find_direct",
    "find_guarded",
    "find_hashed",
    "find_hashed_raw",
    "find_rank",
    "first_alike",
    "fold_integers",
    "group_part",
    "group_slot",
    "has_bit",
    "in_sieve",
    "insert_bit",
    "insert_guarded",
    "insert_hashed",
    "insert_hashed_raw",
    "insert_linked",
    "insert_unique",
    "mark_sieve",
    "math",
    "next_alike",
    "next_hashed",
    "next_linked",
    "on_stack",
    "order_of_double",
    "pass_bits",
    "pass_sieve",
    "rank_rows",
    "set_bit",
]
