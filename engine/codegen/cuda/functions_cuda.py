"""What generated CUDA kernels call, under the names that every target provides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import cuda, types
from numba.cuda.extending import intrinsic

from .functions_alike_cuda import first_alike, next_alike
from .functions_ranks_cuda import find_rank, load_codes, put_rank, rank_row, rank_rows, word_before

I64_MAX = np.int64(2**63 - 1)
MIX = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: the high bits are well mixed
PAIR_BYTES = 16
STEPS = 512  # through a hash table of groups, after which it counts as full
LOOK = 31  # steps after which a thread looks whether another has found the table full, less one
MIX_32 = np.uint32(0x9E3779B1)  # likewise


@cuda.jit(device=True, inline="always")
def absolute(x):  # type: ignore[no-untyped-def]
    """The absolute value of a double."""
    return -x if x < 0.0 else x


@cuda.jit(device=True, inline="always")
def order_of_double(x):  # type: ignore[no-untyped-def]
    """An int64 that orders as SQL orders doubles: -0.0 is 0.0, NaN above infinity."""
    bits = cuda.libdevice.double_as_longlong(x + 0.0)
    ordered = bits ^ I64_MAX if bits < 0 else bits
    return I64_MAX if x != x else ordered  # noqa: PLR0124 - NaN alone is


@cuda.jit(device=True, inline="always")
def double_of_bits(bits):  # type: ignore[no-untyped-def]
    """The double that these 64 bits are."""
    return cuda.libdevice.longlong_as_double(np.int64(bits))


@cuda.jit(device=True, inline="always")
def float_of_bits(bits):  # type: ignore[no-untyped-def]
    """The float that the low 32 bits are."""
    return cuda.libdevice.int_as_float(np.int32(bits))


@intrinsic
def load_pair(context, pointer, pair):  # type: ignore[no-untyped-def]
    """Elements 2 * pair and 2 * pair + 1 of an array of 64-bit words that begins at a multiple of 16 bytes, in one access.

    A thread that loads words one by one asks the first-level cache for the same sector several times.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words, number = arguments
        vector = ir.VectorType(ir.IntType(64), 2)
        address = builder.gep(builder.bitcast(words, vector.as_pointer()), [number])
        loaded = builder.load(address)
        loaded.align = PAIR_BYTES
        both = [builder.extract_element(loaded, ir.Constant(ir.IntType(32), i)) for i in (0, 1)]
        return context.make_tuple(builder, signature.return_type, both)

    return types.UniTuple(pointer.dtype, 2)(pointer, pair), generate


@intrinsic
def both_bits(context, word, first, second):  # type: ignore[no-untyped-def]
    """Whether two bits of a 32-bit word are set; of their numbers, uint32, only the low five bits count.

    The device rotates by these in one instruction; Numba would shift 64 bits by numbers that must be masked before.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held, *places = arguments
        kind = ir.IntType(32)
        rotate = builder.module.declare_intrinsic(
            "llvm.fshl", [kind], ir.FunctionType(kind, [kind, kind, kind])
        )
        bit = ir.Constant(kind, 1)
        one, other = (builder.call(rotate, [bit, bit, place]) for place in places)
        missing = builder.and_(builder.or_(one, other), builder.not_(held))
        return builder.icmp_unsigned("==", missing, ir.Constant(kind, 0))

    return types.boolean(word, first, second), generate


# Groups and rows that come out


@cuda.jit(device=True, inline="always")
def hashed_to(number, slots):  # type: ignore[no-untyped-def]
    """The slot below a power of two that a number begins at."""
    mixed = np.uint64(number) * MIX
    return (mixed ^ (mixed >> np.uint64(32))) & np.uint64(slots - 1)


@cuda.jit(device=True, inline="always")
def group_slot(keys, state, number):  # type: ignore[no-untyped-def]
    """The slot of a group number in an open-addressing table, made if there is none; -1, and state[0] is 1, when it is full."""
    slot = hashed_to(number, keys.size)
    found = np.int64(-1)
    steps = np.int32(0)
    while steps < STEPS:
        held = keys[slot]
        if held == -1:
            held = cuda.atomic.cas(keys, slot, np.int64(-1), np.int64(number))
        if (held == -1) | (held == number):
            found = np.int64(slot)
            break
        slot = (slot + np.uint64(1)) & np.uint64(keys.size - 1)
        if steps & LOOK == LOOK and state[np.uint64(0)] != 0:
            break
        steps += np.int32(1)
    if found < 0:
        state[np.uint64(0)] = 1
    return found


@cuda.jit(device=True, inline="always")
def append(counter):  # type: ignore[no-untyped-def]
    """The next place of a result; the threads of a warp that come by together take theirs in one atomic operation."""
    active = cuda.activemask()
    before = cuda.popc(active & cuda.lanemask_lt())
    place = np.int64(0)
    if before == 0:
        place = cuda.atomic.add(counter, np.uint64(0), np.int64(cuda.popc(active)))
    return cuda.shfl_sync(active, place, cuda.ffs(active) - 1) + np.int64(before)


@cuda.jit(device=True, inline="always")
def append_several(counter, count):  # type: ignore[no-untyped-def]
    """The first of `count` next places, at most 31, of a result; the warp takes those of all threads at once."""
    active = cuda.activemask()
    below = active & cuda.lanemask_lt()
    before = np.int32(0)
    total = np.int32(0)
    for bit in range(5):
        votes = cuda.ballot_sync(active, (count >> bit) & 1)
        before += np.int32(cuda.popc(votes & below) << bit)
        total += np.int32(cuda.popc(votes) << bit)
    place = np.int64(0)
    if (below == 0) & (total > 0):
        place = cuda.atomic.add(counter, np.uint64(0), np.int64(total))
    return cuda.shfl_sync(active, place, cuda.ffs(active) - 1) + np.int64(before)


# Filling an index


@cuda.jit(device=True, inline="always")
def set_bit(bits, number):  # type: ignore[no-untyped-def]
    """Set a bit; most atomic operations are saved by a look before."""
    if number >= 0:
        word = np.uint64(number) >> np.uint64(5)
        bit = np.uint32(np.uint32(1) << np.uint32(number & 31))
        if bits[word] & bit == 0:
            cuda.atomic.or_(bits, word, bit)
    return np.int64(0)


@cuda.jit(device=True, inline="always")
def or_bits(bits, word, gathered):  # type: ignore[no-untyped-def]
    """Set the bits of a word, unless its number is negative; most atomic operations are saved by a look before."""
    if word >= 0 and bits[np.uint64(word)] & gathered != gathered:
        cuda.atomic.or_(bits, np.uint64(word), gathered)


@cuda.jit(device=True, inline="always")
def or_new_bits(bits, word, gathered):  # type: ignore[no-untyped-def]
    """Set the bits of a word, unless its number is negative; return how many of them were set."""
    taken = np.int32(0)
    if word >= 0:
        held = cuda.atomic.or_(bits, np.uint64(word), gathered)
        taken = np.int32(cuda.popc(held & gathered))
    return taken


@cuda.jit(device=True, inline="always")
def insert_bit(bits, number):  # type: ignore[no-untyped-def]
    """Set a bit; return 1 if it was set."""
    taken = np.int64(0)
    if number >= 0:
        bit = np.uint32(np.uint32(1) << np.uint32(number & 31))
        held = cuda.atomic.or_(bits, np.uint64(number) >> np.uint64(5), bit)
        taken = np.int64(held & bit != 0)
    return taken


@cuda.jit(device=True, inline="always")
def insert_unique(heads, number, row):  # type: ignore[no-untyped-def]
    """Note the row of a key; return 1 if the key had one."""
    taken = np.int64(0)
    if number >= 0:
        taken = np.int64(cuda.atomic.exch(heads, np.uint64(number), np.int32(row)) >= 0)
    return taken


@cuda.jit(device=True, inline="always")
def insert_guarded(members, heads, number, row):  # type: ignore[no-untyped-def]
    """Note the row of a key, whose bit says that there is one; return 1 if it was set."""
    taken = np.int64(0)
    if number >= 0:
        taken = insert_bit(members, number)
        if taken == 0:
            heads[np.uint64(number)] = np.int32(row)
    return taken


@cuda.jit(device=True, inline="always")
def insert_linked(heads, links, number, row):  # type: ignore[no-untyped-def]
    """Put a row before the others of its key; return 1 if there are any."""
    taken = np.int64(0)
    if number >= 0:
        before = cuda.atomic.exch(heads, np.uint64(number), np.int32(row))
        links[np.uint64(row)] = before
        taken = np.int64(before >= 0)
    return taken


@cuda.jit(device=True, inline="always")
def insert_hashed_raw(heads, links, numbers, number, valid, row):  # type: ignore[no-untyped-def]
    """Put a row before the others of its bucket, unless its key is NULL."""
    if valid:
        numbers[np.uint64(row)] = number
        slot = hashed_to(number, heads.size)
        links[np.uint64(row)] = cuda.atomic.exch(heads, slot, np.int32(row))
    return np.int64(0)


@cuda.jit(device=True, inline="always")
def insert_hashed(heads, links, numbers, number, row):  # type: ignore[no-untyped-def]
    """Put a row before the others of its bucket, unless its key's number is negative."""
    return insert_hashed_raw(heads, links, numbers, number, number >= 0, row)


@cuda.jit(device=True, inline="always")
def sieve_place(shift, number):  # type: ignore[no-untyped-def]
    """The word of a number in a sieve, and its two bits there, by numbers of which the low five bits count."""
    mixed = np.uint32(np.uint32(number) * MIX_32)
    first = np.uint32(mixed >> np.uint32(shift - 5))
    second = np.uint32(mixed >> np.uint32(shift - 10))
    return np.uint32(mixed >> np.uint32(shift)), first, second


@cuda.jit(device=True, inline="always")
def mark_sieve(sieve, shift, number):  # type: ignore[no-untyped-def]
    """Let a number, which is returned, through a sieve; most atomic operations are saved by a look before."""
    if number >= 0:
        word, first, second = sieve_place(shift, number)
        if not both_bits(sieve[word], first, second):
            one = np.uint32(np.uint32(1) << (first & np.uint32(31)))
            other = np.uint32(np.uint32(1) << (second & np.uint32(31)))
            cuda.atomic.or_(sieve, word, np.uint32(one | other))
    return np.int64(number)


# Looking into an index


@cuda.jit(device=True, inline="always")
def in_sieve(sieve, shift, number):  # type: ignore[no-untyped-def]
    """Whether a sieve lets a number through; without a branch, as `has_bit`, since any number has a word."""
    word, first, second = sieve_place(shift, number)
    return both_bits(sieve[word], first, second) & (number >= 0)


@cuda.jit(device=True, inline="always")
def pass_sieve(sieve, shift, number):  # type: ignore[no-untyped-def]
    """The number, or -1 if a sieve shows that it is not in."""
    return cuda.selp(in_sieve(sieve, shift, number), np.int64(number), np.int64(-1))


@cuda.jit(device=True, inline="always")
def has_bit(bits, number):  # type: ignore[no-untyped-def]
    """Whether a bit is set; that of a negative number is not.

    It loads a word in any case: without a branch, several are under way together.
    """
    place = np.uint64(max(number, 0))
    word = bits[place >> np.uint64(5)]
    return ((word >> np.uint32(place & np.uint64(31))) & np.uint32(1) != 0) & (number >= 0)


@cuda.jit(device=True, inline="always")
def pass_bits(bits, number):  # type: ignore[no-untyped-def]
    """The number, or -1 if its bit is not set."""
    return cuda.selp(has_bit(bits, number), np.int32(number), np.int32(-1))


@cuda.jit(device=True, inline="always")
def bit_at(bits, row):  # type: ignore[no-untyped-def]
    """Whether a row's bit in a validity bitmap is set."""
    return (np.uint32(bits[np.uint64(row) >> np.uint64(3)]) >> np.uint32(row & 7)) & np.uint32(
        1
    ) != 0


@cuda.jit(device=True, inline="always")
def find_direct(heads, number):  # type: ignore[no-untyped-def]
    """The row of a key, or -1; without a branch, as `has_bit`."""
    row = heads[np.uint64(max(number, 0))]
    return cuda.selp(number >= 0, row, np.int32(-1))


@cuda.jit(device=True, inline="always")
def find_guarded(members, heads, number):  # type: ignore[no-untyped-def]
    """The row of a key, or -1; nothing was ever put where its bit is not set."""
    row = np.int32(-1)
    if has_bit(members, number):
        row = heads[np.uint64(number)]
    return row


@cuda.jit(device=True, inline="always")
def next_linked(links, row):  # type: ignore[no-untyped-def]
    """The next row of the same key, or -1."""
    return links[np.uint64(row)]


@cuda.jit(device=True, inline="always")
def find_hashed_raw(heads, links, numbers, number, valid):  # type: ignore[no-untyped-def]
    """The first row of a key, or -1."""
    row = np.int32(-1)
    if valid:
        row = heads[hashed_to(number, heads.size)]
    while row >= 0 and numbers[np.uint64(row)] != number:
        row = links[np.uint64(row)]
    return row


@cuda.jit(device=True, inline="always")
def find_hashed(heads, links, numbers, number):  # type: ignore[no-untyped-def]
    """The first row of a key's number, or -1."""
    return find_hashed_raw(heads, links, numbers, number, number >= 0)


@cuda.jit(device=True, inline="always")
def next_hashed(links, numbers, number, row):  # type: ignore[no-untyped-def]
    """The next row of the same key, or -1."""
    row = links[np.uint64(row)]
    while row >= 0 and numbers[np.uint64(row)] != number:
        row = links[np.uint64(row)]
    return row


__all__ = [
    "absolute",
    "append",
    "append_several",
    "bit_at",
    "both_bits",
    "double_of_bits",
    "find_direct",
    "find_guarded",
    "find_hashed",
    "find_hashed_raw",
    "find_rank",
    "first_alike",
    "float_of_bits",
    "group_slot",
    "has_bit",
    "in_sieve",
    "insert_bit",
    "insert_guarded",
    "insert_hashed",
    "insert_hashed_raw",
    "insert_linked",
    "insert_unique",
    "load_codes",
    "load_pair",
    "mark_sieve",
    "math",
    "next_alike",
    "next_hashed",
    "next_linked",
    "or_bits",
    "or_new_bits",
    "order_of_double",
    "pass_bits",
    "pass_sieve",
    "put_rank",
    "rank_row",
    "rank_rows",
    "set_bit",
    "word_before",
]
