"""Row numbers by rank on CUDA, where a column's codes ascend strictly: how `functions_cuda` fills and reads the array of ranks.

An element stands for 32 numbers: its low half says which of them rows have, its high half is the row of the least of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import cuda, types
from numba.cuda.extending import intrinsic

CODES = 8  # that a thread takes at a time
VECTOR_BYTES = 16  # the most that one access loads


@intrinsic
def load_codes(context, codes, group):  # type: ignore[no-untyped-def]
    """Eight codes that lie side by side, in as few accesses as can be; the array begins at a multiple of 16 bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, number = arguments
        vector = ir.VectorType(context.get_data_type(codes.dtype), CODES)
        address = builder.gep(builder.bitcast(array, vector.as_pointer()), [number])
        loaded = builder.load(address)
        loaded.align = min(VECTOR_BYTES, CODES * codes.dtype.bitwidth // 8)
        parts = [builder.extract_element(loaded, ir.Constant(ir.IntType(32), i)) for i in range(8)]
        return context.make_tuple(builder, signature.return_type, parts)

    return types.UniTuple(codes.dtype, CODES)(codes, group), generate


@intrinsic
def unite(context, words, place, value):  # type: ignore[no-untyped-def]
    """Set the bits of a value in an array of 64-bit words; no thread waits for what was there, as it would with `atomic.or_`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, number, changed = arguments
        held = context.make_array(signature.args[0])(context, builder, array)
        address = builder.ptrtoint(builder.gep(held.data, [number]), ir.IntType(64))
        function = ir.FunctionType(ir.VoidType(), [ir.IntType(64), ir.IntType(64)])
        text = "red.global.or.b64 [$0], $1;"
        builder.asm(function, text, "l,l", [address, changed], side_effect=True)
        return context.get_dummy_value()

    return types.void(words, place, value), generate


@cuda.jit(device=True, inline="always")
def word_before(codes, row, step):  # type: ignore[no-untyped-def]
    """Which 32 numbers the row before this one has its number among; -1 before the first row."""
    at = np.int32(-1)
    if row > 0:
        at = np.int32(np.int32(np.int32(codes[row - np.uint64(1)]) * step) >> np.int32(5))
    return at


@cuda.jit(device=True, inline="always")
def put_rank(ranks, at, gathered):  # type: ignore[no-untyped-def]
    """Bring what was gathered to memory, where other threads may have rows among the same 32 numbers."""
    if gathered != 0:
        unite(ranks, np.uint64(at), gathered)


@cuda.jit(device=True, inline="always")
def rank_row(ranks, at, gathered, code, step, row):  # type: ignore[no-untyped-def]
    """Gather a row, the next one: among the 32 numbers of the row before, or as the first of others."""
    number = np.int32(np.int32(code) * step)
    word = np.int32(number >> np.int32(5))
    if word != at:
        put_rank(ranks, at, gathered)
        at = word
        gathered = np.uint64(row << np.uint64(32))
    bit = np.uint64(np.uint64(1) << np.uint64(number & np.int32(31)))
    return at, np.uint64(gathered | bit)


@cuda.jit(device=True, inline="always")
def rank_rows(codes, ranks, rows, step, thread, threads):  # type: ignore[no-untyped-def]
    """Rank all rows of a table, whose number in order is step * code; at least 8 threads take eight rows at a time."""
    groups = np.uint64(rows) >> np.uint64(3)
    group = thread
    while group < groups:
        row = np.uint64(group << np.uint64(3))
        taken = load_codes(codes, group)
        at = word_before(codes, row, step)
        gathered = np.uint64(0)
        at, gathered = rank_row(ranks, at, gathered, taken[0], step, row)
        at, gathered = rank_row(ranks, at, gathered, taken[1], step, row + np.uint64(1))
        at, gathered = rank_row(ranks, at, gathered, taken[2], step, row + np.uint64(2))
        at, gathered = rank_row(ranks, at, gathered, taken[3], step, row + np.uint64(3))
        at, gathered = rank_row(ranks, at, gathered, taken[4], step, row + np.uint64(4))
        at, gathered = rank_row(ranks, at, gathered, taken[5], step, row + np.uint64(5))
        at, gathered = rank_row(ranks, at, gathered, taken[6], step, row + np.uint64(6))
        at, gathered = rank_row(ranks, at, gathered, taken[7], step, row + np.uint64(7))
        put_rank(ranks, at, gathered)
        group += threads
    row = np.uint64(groups << np.uint64(3)) + thread
    if row < np.uint64(rows):
        at = word_before(codes, row, step)
        at, gathered = rank_row(ranks, at, np.uint64(0), codes[row], step, row)
        put_rank(ranks, at, gathered)


@cuda.jit(device=True, inline="always")
def find_rank(ranks, number):  # type: ignore[no-untyped-def]
    """The row of a number, or -1; without a branch, as `has_bit`."""
    place = np.uint64(max(number, 0))
    entry = ranks[place >> np.uint64(5)]
    bit = np.uint32(np.uint32(1) << np.uint32(place & np.uint64(31)))
    there = np.uint32(entry & np.uint64(0xFFFFFFFF))
    before = np.int32(cuda.popc(np.uint32(there & np.uint32(bit - np.uint32(1)))))
    row = np.int32(np.int32(entry >> np.uint64(32)) + before)
    return cuda.selp((there & bit != 0) & (number >= 0), row, np.int32(-1))


__all__ = ["find_rank", "load_codes", "put_rank", "rank_row", "rank_rows", "word_before"]
