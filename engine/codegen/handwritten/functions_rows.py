"""CUDA kernels, written by hand, that put some rows of several columns together, for one copy to the host, and find the first of an order, of equal ones, and by a text; `row_kernels` lists their parameters.

Columns lie anywhere in memory, and jobs say where: `memory8` and its like are the memory from address 0 on.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

ALL_LANES = 0xFFFFFFFF
I64_MAX = np.int64(2**63 - 1)
JOB_WORDS = 10
SLOTS = 2048


@cuda.jit(device=True, inline="always")
def is_there(row, bits, first, memory8):  # type: ignore[no-untyped-def]
    """Whether a row of a column has a value; a negative one is none."""
    there = row >= 0
    if there and bits != 0:
        place = first + row
        there = (np.int64(memory8[bits + (place >> 3)]) >> (place & 7)) & 1 != 0
    return there


@cuda.jit(device=True, inline="always")
def write_number(  # type: ignore[no-untyped-def]
    there, row, number, width, data, out, memory8, memory16, memory32, memory64,
    result8, result16, result32, result64,
):  # fmt: skip
    """Write a value of 1, 2, 4, 8 or 16 bytes, or 0."""
    if width == 1:
        result8[out + number] = memory8[data + row] if there else np.uint8(0)
    elif width == 2:
        half = memory16[(data >> 1) + row] if there else np.int16(0)
        result16[(out >> 1) + number] = half
    elif width == 4:
        word = memory32[(data >> 2) + row] if there else np.int32(0)
        result32[(out >> 2) + number] = word
    elif width == 8:
        long = memory64[(data >> 3) + row] if there else np.int64(0)
        result64[(out >> 3) + number] = long
    else:
        low = (data >> 3) + (row << 1)
        into = (out >> 3) + (number << 1)
        result64[into] = memory64[low] if there else np.int64(0)
        result64[into + 1] = memory64[low + 1] if there else np.int64(0)


def row_fetch(  # type: ignore[no-untyped-def]
    rows, columns, jobs, picking, picked, memory8, memory16, memory32, memory64,
    result8, result16, result32, result64, cursors,
):  # fmt: skip
    """Write the values of each column, 0 for NULL, and whether they are there.

    Of a text it is the place among its column's characters in the low half of a word, and the length in the high one; `cursors`
    say how many characters there are, of which those are written that fit into the room.  A warp takes 32 values, or one text.
    """
    thread = np.int64(cuda.grid(1))
    warps = np.int64(cuda.gridsize(1)) >> 5
    lane = thread & 31
    item = thread >> 5
    column = np.int64(0)
    while column < columns:
        job = column * JOB_WORDS
        text, width, data, characters = jobs[job], jobs[job + 1], jobs[job + 2], jobs[job + 3]
        bits, first, places = jobs[job + 4], jobs[job + 5], jobs[job + 6]
        out, valid, room = jobs[job + 7], jobs[job + 8], jobs[job + 9]
        items = rows if text != 0 else (rows + 31) >> 5
        while item < items:
            number = item if text != 0 else (item << 5) + lane
            row = np.int64(-1)
            if number < rows:
                row = np.int64(picked[number]) if picking != 0 else number
                if places != 0 and row >= 0:
                    row = np.int64(memory32[(places >> 2) + row])
            there = is_there(row, bits, first, memory8)
            if valid >= 0 and number < rows and (text == 0 or lane == 0):
                result8[valid + number] = np.uint8(1) if there else np.uint8(0)
            if text != 0:
                start = np.int64(0)
                length = np.int64(0)
                if there and width == 8:
                    start = memory64[(data >> 3) + row]
                    length = memory64[(data >> 3) + row + 1] - start
                elif there:
                    start = np.int64(memory32[(data >> 2) + row])
                    length = np.int64(memory32[(data >> 2) + row + 1]) - start
                target = np.int64(0)
                if lane == 0 and length > 0:
                    target = cuda.atomic.add(cursors, column, length)
                target = cuda.shfl_sync(ALL_LANES, target, 0)
                if target + length <= room:
                    if lane == 0:
                        result64[(out >> 3) + number] = target | (length << 32)
                    into = out + (rows << 3) + target
                    at = lane
                    while at < length:
                        result8[into + at] = memory8[characters + start + at]
                        at += 32
            elif number < rows:
                write_number(
                    there, row, number, width, data, out, memory8, memory16, memory32, memory64,
                    result8, result16, result32, result64,
                )  # fmt: skip
            item += warps
        item -= items
        column += 1


@cuda.jit(device=True, inline="always")
def key_at(row, rows, width, keys32, keys64, turned):  # type: ignore[no-untyped-def]
    """The key of a row, its bits turned round by `turned` = -1; the largest there is beyond the last row."""
    key = I64_MAX
    if row < rows:
        key = (keys64[row] if width == 8 else np.int64(keys32[row])) ^ turned
    return key


def top_least(rows, width, keys32, keys64, turned, least):  # type: ignore[no-untyped-def]
    """Deal rows out to slots, neighbours to different ones, and find the least key of each; four loads are under way."""
    thread = np.int64(cuda.grid(1))
    step = np.int64(cuda.gridsize(1))
    best = I64_MAX
    row = thread
    while row < rows:
        one = key_at(row, rows, width, keys32, keys64, turned)
        two = key_at(row + step, rows, width, keys32, keys64, turned)
        three = key_at(row + 2 * step, rows, width, keys32, keys64, turned)
        four = key_at(row + 3 * step, rows, width, keys32, keys64, turned)
        best = min(best, one)
        best = min(best, two)
        best = min(best, three)
        best = min(best, four)
        row += 4 * step
    slot = thread & (SLOTS - 1)
    if best < least[slot]:
        cuda.atomic.min(least, slot, best)


def top_bound(wanted, least, state):  # type: ignore[no-untyped-def]
    """Write to state[0] which is the `wanted`-th of the slots' least keys: at least so many rows have a key that is not above it.

    A warp counts those that come before one of them.
    """
    thread = np.int64(cuda.grid(1))
    lane = thread & 31
    slot = thread >> 5
    while slot < SLOTS:
        own = least[slot]
        before = np.int64(0)
        other = lane
        while other < SLOTS:
            key = least[other]
            if key < own or (key == own and other < slot):
                before += 1
            other += 32
        for distance in (16, 8, 4, 2, 1):
            before += cuda.shfl_down_sync(ALL_LANES, before, distance)
        if lane == 0 and before == wanted - 1:
            state[0] = own
        slot += np.int64(cuda.gridsize(1)) >> 5


@cuda.jit(device=True, inline="always")
def list_rows(there, row, lane, state, counter, room, chosen):  # type: ignore[no-untyped-def]
    """Have a warp list those of its rows that are `there`, as far as there is room; state[counter] counts them all."""
    votes = np.int32(cuda.ballot_sync(ALL_LANES, there))
    if votes != 0:
        place = np.int64(0)
        if lane == 0:
            place = cuda.atomic.add(state, counter, np.int64(cuda.popc(votes)))
        place = cuda.shfl_sync(ALL_LANES, place, 0)
        place += np.int64(cuda.popc(votes & cuda.lanemask_lt()))
        if there and place < room:
            chosen[place] = np.int32(row)


def top_rows(rows, width, keys32, keys64, turned, room, state, chosen):  # type: ignore[no-untyped-def]
    """List the rows whose key is not above state[0], in any order, as far as there is room; state[1] counts them all."""
    thread = np.int64(cuda.grid(1))
    step = np.int64(cuda.gridsize(1))
    lane = thread & 31
    bound = state[0]
    row = thread
    while row - lane < rows:
        there = row < rows and key_at(row, rows, width, keys32, keys64, turned) <= bound
        list_rows(there, row, lane, state, 1, room, chosen)
        row += step


def first_of_slots(rows, width, keys32, keys64, first):  # type: ignore[no-untyped-def]
    """Write to `first` the lowest of the rows of each slot; a row's key is its slot, and most rows find a lower one there."""
    row = np.int64(cuda.grid(1))
    while row < rows:
        slot = keys64[row] if width == 8 else np.int64(keys32[row])
        if row < np.int64(first[slot]):
            cuda.atomic.min(first, slot, np.int32(row))
        row += np.int64(cuda.gridsize(1))


def first_rows(rows, width, keys32, keys64, first, room, state, chosen):  # type: ignore[no-untyped-def]
    """List the rows that are the first of their slots, in any order; state[0] counts them."""
    thread = np.int64(cuda.grid(1))
    lane = thread & 31
    row = thread
    while row - lane < rows:
        there = False
        if row < rows:
            slot = keys64[row] if width == 8 else np.int64(keys32[row])
            there = np.int64(first[slot]) == row
        list_rows(there, row, lane, state, 0, room, chosen)
        row += np.int64(cuda.gridsize(1))


@cuda.jit(device=True, inline="always")
def is_before(row, other, width, data, characters, memory8, memory32, memory64):  # type: ignore[no-untyped-def]
    """Whether the text of a row comes before that of another one."""
    if width == 8:
        at, end = memory64[(data >> 3) + row], memory64[(data >> 3) + row + 1]
        beside, last = memory64[(data >> 3) + other], memory64[(data >> 3) + other + 1]
    else:
        at, end = np.int64(memory32[(data >> 2) + row]), np.int64(memory32[(data >> 2) + row + 1])
        beside = np.int64(memory32[(data >> 2) + other])
        last = np.int64(memory32[(data >> 2) + other + 1])
    while at < end and beside < last and memory8[characters + at] == memory8[characters + beside]:
        at += 1
        beside += 1
    before = beside < last
    if before and at < end:
        before = memory8[characters + at] < memory8[characters + beside]
    return before


def text_extremes(  # type: ignore[no-untyped-def]
    rows, step, grouped, keys, turned, width, data, characters, bits, first, memory8, memory32,
    memory64, best,
):  # fmt: skip
    """Write to `best` the row of the least text of each slot, or of the greatest where `turned`, looking at one row of `step`.

    A negative row is none, and NULL is no text.  Of most texts the first byte tells that the slot has a better one.
    """
    row = np.int64(cuda.grid(1)) * step
    while row < rows:
        if is_there(row, bits, first, memory8):
            slot = np.int64(0)
            if grouped != 0:
                slot = np.int64(keys[row])
            known = np.int64(best[slot])
            better = True
            while better:
                if known >= 0:
                    one = known if turned != 0 else row
                    other = row if turned != 0 else known
                    better = is_before(
                        one, other, width, data, characters, memory8, memory32, memory64
                    )
                if better:  # unless another thread has put a row there
                    found = np.int64(cuda.atomic.cas(best, slot, np.int32(known), np.int32(row)))
                    better = found != known
                    known = found
        row += np.int64(cuda.gridsize(1)) * step


def mark_values(rows, grouped, keys, values, least, words, marks):  # type: ignore[no-untyped-def]
    """Set the bit of each row's value, from `least` on, in the `words` of its slot; most rows find it set."""
    row = np.int64(cuda.grid(1))
    while row < rows:
        value = np.int64(values[row])
        if value >= least:
            word = value >> 5
            if grouped != 0:
                word += np.int64(keys[row]) * words
            bit = np.uint32(1) << np.uint32(value & 31)
            if marks[word] & bit == 0:
                cuda.atomic.or_(marks, word, bit)
        row += np.int64(cuda.gridsize(1))


def test_marks(rows, values, marks, found):  # type: ignore[no-untyped-def]
    """Say of each row whether the bit of its value is set."""
    row = np.int64(cuda.grid(1))
    while row < rows:
        value = np.int64(values[row])
        found[row] = np.uint8((marks[value >> 5] >> np.uint32(value & 31)) & np.uint32(1))
        row += np.int64(cuda.gridsize(1))


def count_marks(slots, words, marks, counts):  # type: ignore[no-untyped-def]
    """Count the bits that are set for each slot, which has a multiple of 32 words: a warp counts 32 of them at a time."""
    thread = np.int64(cuda.grid(1))
    lane = thread & 31
    word = thread
    while word - lane < slots * words:
        found = np.int64(cuda.popc(marks[word]))
        for distance in (16, 8, 4, 2, 1):
            found += cuda.shfl_down_sync(ALL_LANES, found, distance)
        if lane == 0 and found != 0:
            cuda.atomic.add(counts, word // words, found)
        word += np.int64(cuda.gridsize(1))
