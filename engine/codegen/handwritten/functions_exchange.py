"""CUDA kernels, written by hand, that bring the rows of a table to the slots that they belong to; `exchange_kernels` lists their parameters.

A slot is what one worker gets.  Rows are dealt out to `warps` ranges of `share` rows each, whatever the grid, so that rows of one slot
keep their order: the first kernel counts those of each slot in each range, and the second one knows from the running sums of these
counts where a range's rows begin.  Columns lie anywhere in memory, and slots too: `memory8` and its like are the memory from address 0 on.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

ALL_LANES = 0xFFFFFFFF
JOB_WORDS = 4
NO_SLOT = np.int64(255)


@cuda.jit(device=True, inline="always")
def is_there(row, bits, first, memory8):  # type: ignore[no-untyped-def]
    """Whether a row of a column has a value; one without a bitmap has."""
    there = True
    if bits != 0:
        place = first + row
        there = (np.int64(memory8[bits + (place >> 3)]) >> (place & 7)) & 1 != 0
    return there


@cuda.jit(device=True, inline="always")
def slot_of(row, end, number, owners, nullable, bitmaps, memory8, to):  # type: ignore[no-untyped-def]
    """The slot of a row by the number of its keys, which is 0 where one of these is NULL, and note it; none beyond the end."""
    slot = NO_SLOT
    if row < end:
        key = np.int64(0)
        while key < nullable:
            if not is_there(row, bitmaps[2 * key], bitmaps[2 * key + 1], memory8):
                number = np.int64(0)
            key += 1
        slot = np.int64(owners[number])
        to[row] = np.uint8(slot)
    return slot


@cuda.jit(device=True, inline="always")
def counted(slot, slots, lane, count):  # type: ignore[no-untyped-def]
    """The count of a lane's own slot, with the rows of a warp."""
    other = np.int64(0)
    while other < slots:
        votes = cuda.ballot_sync(ALL_LANES, slot == other)
        if lane == other:
            count += np.int64(cuda.popc(votes))
        other += 1
    return count


def exchange_count(  # type: ignore[no-untyped-def]
    rows, warps, share, slots, to, numbers, mask, owners, nullable, bitmaps, memory8, counts
):  # fmt: skip
    """Note the slot of each row in `to`, and count the rows of each slot in each range, all ranges of a slot one after the other.

    The slot is that of `owners` at a number's bits of a `mask`.  Four loads are under way.
    """
    thread = np.int64(cuda.grid(1))
    step = np.int64(cuda.gridsize(1)) >> 5
    lane = thread & 31
    warp = thread >> 5
    while warp < warps:
        first = warp * share
        end = min(first + share, rows)
        count = np.int64(0)
        while first < end:
            row0 = first + lane
            row1, row2, row3 = row0 + 32, row0 + 64, row0 + 96
            number0 = np.int64(numbers[min(row0, end - 1)]) & mask
            number1 = np.int64(numbers[min(row1, end - 1)]) & mask
            number2 = np.int64(numbers[min(row2, end - 1)]) & mask
            number3 = np.int64(numbers[min(row3, end - 1)]) & mask
            slot0 = slot_of(row0, end, number0, owners, nullable, bitmaps, memory8, to)
            slot1 = slot_of(row1, end, number1, owners, nullable, bitmaps, memory8, to)
            slot2 = slot_of(row2, end, number2, owners, nullable, bitmaps, memory8, to)
            slot3 = slot_of(row3, end, number3, owners, nullable, bitmaps, memory8, to)
            count = counted(slot0, slots, lane, count)
            count = counted(slot1, slots, lane, count)
            count = counted(slot2, slots, lane, count)
            count = counted(slot3, slots, lane, count)
            first += 128
        if lane < slots:
            counts[lane * warps + warp] = count
        warp += step


@cuda.jit(device=True, inline="always")
def before(ends, at):  # type: ignore[no-untyped-def]
    """The sum of all counts before one of them."""
    sum_ = np.int64(0)
    if at > 0:
        sum_ = ends[at - 1]
    return sum_


@cuda.jit(device=True, inline="always")
def placed(slot, slots, lane, next_):  # type: ignore[no-untyped-def]
    """The place of a row in its slot, and the next place in the slot of each lane."""
    place = np.int64(0)
    other = np.int64(0)
    while other < slots:
        votes = cuda.ballot_sync(ALL_LANES, slot == other)
        begin = cuda.shfl_sync(ALL_LANES, next_, np.int32(other))
        if slot == other:
            place = begin + np.int64(cuda.popc(votes & cuda.lanemask_lt()))
        if lane == other:
            next_ += np.int64(cuda.popc(votes))
        other += 1
    return place, next_


@cuda.jit(device=True, inline="always")
def base_of(bases, column, slots, slot):  # type: ignore[no-untyped-def]
    """Where a column's values in a slot begin; anywhere for no slot."""
    base = np.int64(0)
    if slot < slots:
        base = bases[column * slots + slot]
    return base


@cuda.jit(device=True, inline="always")
def move_four(four, last, to, slots, bases, places, shift, data, memory):  # type: ignore[no-untyped-def]
    """Copy a value of 1 << shift bytes of each of four rows; their loads come before all stores."""
    from_ = data >> shift
    value0 = memory[from_ + min(four[0], last)]
    value1 = memory[from_ + min(four[1], last)]
    value2 = memory[from_ + min(four[2], last)]
    value3 = memory[from_ + min(four[3], last)]
    if to[0] < slots:
        memory[(bases[0] >> shift) + places[0]] = value0
    if to[1] < slots:
        memory[(bases[1] >> shift) + places[1]] = value1
    if to[2] < slots:
        memory[(bases[2] >> shift) + places[2]] = value2
    if to[3] < slots:
        memory[(bases[3] >> shift) + places[3]] = value3


@cuda.jit(device=True, inline="always")
def move_wide(row, last, slot, slots, base, place, data, memory64):  # type: ignore[no-untyped-def]
    """Copy a value of two words."""
    from_ = (data >> 3) + 2 * min(row, last)
    low = memory64[from_]
    high = memory64[from_ + 1]
    if slot < slots:
        into = (base >> 3) + 2 * place
        memory64[into] = low
        memory64[into + 1] = high


@cuda.jit(device=True, inline="always")
def mark(row, last, slot, slots, into, bits, first, memory8):  # type: ignore[no-untyped-def]
    """Write 1 where there is a value, else 0."""
    there = is_there(min(row, last), bits, first, memory8)
    if slot < slots:
        memory8[into] = np.uint8(1) if there else np.uint8(0)


@cuda.jit(device=True, inline="always")
def move_column(  # type: ignore[no-untyped-def]
    four, last, to, slots, bases, places, job, jobs, memory8, memory16, memory32, memory64
):  # fmt: skip
    """Copy the values of a column in four rows, or whether these are there."""
    width, data, bits, bit = jobs[job], jobs[job + 1], jobs[job + 2], jobs[job + 3]
    if width == 8:
        move_four(four, last, to, slots, bases, places, 3, data, memory64)
    elif width == 4:
        move_four(four, last, to, slots, bases, places, 2, data, memory32)
    elif width == 2:
        move_four(four, last, to, slots, bases, places, 1, data, memory16)
    elif width == 1:
        move_four(four, last, to, slots, bases, places, 0, data, memory8)
    elif width == 16:
        move_wide(four[0], last, to[0], slots, bases[0], places[0], data, memory64)
        move_wide(four[1], last, to[1], slots, bases[1], places[1], data, memory64)
        move_wide(four[2], last, to[2], slots, bases[2], places[2], data, memory64)
        move_wide(four[3], last, to[3], slots, bases[3], places[3], data, memory64)
    else:
        mark(four[0], last, to[0], slots, bases[0] + places[0], bits, bit, memory8)
        mark(four[1], last, to[1], slots, bases[1] + places[1], bits, bit, memory8)
        mark(four[2], last, to[2], slots, bases[2] + places[2], bits, bit, memory8)
        mark(four[3], last, to[3], slots, bases[3] + places[3], bits, bit, memory8)


def exchange_scatter(  # type: ignore[no-untyped-def]
    rows, warps, share, slots, to, ends, columns, jobs, bases, memory8, memory16, memory32, memory64
):  # fmt: skip
    """Copy the values of all columns to where those of their rows' slots begin in `bases`; `ends` are the running sums of counts.

    A warp takes four times 32 rows at a time, finds their places once, and goes through the columns.
    """
    thread = np.int64(cuda.grid(1))
    step = np.int64(cuda.gridsize(1)) >> 5
    lane = thread & 31
    warp = thread >> 5
    while warp < warps:
        first = warp * share
        end = min(first + share, rows)
        last = end - 1
        next_ = np.int64(0)
        if lane < slots:
            next_ = before(ends, lane * warps + warp) - before(ends, lane * warps)
        while first < end:
            row0 = first + lane
            row1, row2, row3 = row0 + 32, row0 + 64, row0 + 96
            slot0 = np.int64(to[min(row0, last)]) if row0 < end else NO_SLOT
            slot1 = np.int64(to[min(row1, last)]) if row1 < end else NO_SLOT
            slot2 = np.int64(to[min(row2, last)]) if row2 < end else NO_SLOT
            slot3 = np.int64(to[min(row3, last)]) if row3 < end else NO_SLOT
            place0, next_ = placed(slot0, slots, lane, next_)
            place1, next_ = placed(slot1, slots, lane, next_)
            place2, next_ = placed(slot2, slots, lane, next_)
            place3, next_ = placed(slot3, slots, lane, next_)
            column = np.int64(0)
            while column < columns:
                base0 = base_of(bases, column, slots, slot0)
                base1 = base_of(bases, column, slots, slot1)
                base2 = base_of(bases, column, slots, slot2)
                base3 = base_of(bases, column, slots, slot3)
                move_column(
                    (row0, row1, row2, row3), last, (slot0, slot1, slot2, slot3), slots,
                    (base0, base1, base2, base3), (place0, place1, place2, place3),
                    column * JOB_WORDS, jobs, memory8, memory16, memory32, memory64,
                )  # fmt: skip
                column += 1
            first += 128
        warp += step
