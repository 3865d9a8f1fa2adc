"""CUDA kernels, written by hand, that pick the groups that exist out of the slots of an aggregate; `group_kernels` lists their parameters.

A slot holds a group where `flags` has at least `least`: rows that fell into it, or its key in a hash table.  Slots are dealt out to
`warps` ranges of `share` slots each, whatever the grid: groups come out in the order of their slots.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

I64_MAX = np.int64(2**63 - 1)
I64_MIN = np.int64(-(2**63))
ALL_LANES = 0xFFFFFFFF


@cuda.jit(device=True, inline="always")
def widen(state, at, low, high):  # type: ignore[no-untyped-def]
    """Make an interval in `state` hold those of a warp; most warps find that it does."""
    for distance in (16, 8, 4, 2, 1):
        low = min(low, cuda.shfl_down_sync(ALL_LANES, low, distance))
        high = max(high, cuda.shfl_down_sync(ALL_LANES, high, distance))
    if cuda.laneid == 0:
        if low < state[at]:
            cuda.atomic.min(state, at, low)
        if high > state[at + np.uint64(1)]:
            cuda.atomic.max(state, at + np.uint64(1), high)


def group_count(  # type: ignore[no-untyped-def]
    slots, warps, share, flags, least, measured, values0, values1, values2, values3, counts, state
):
    """Count the groups of each range, and find the extremes of the first `measured` arrays, one to four, from state[1] on."""
    thread = np.uint64(cuda.grid(1))
    warp = thread >> np.uint64(5)
    low0 = low1 = low2 = low3 = I64_MAX
    high0 = high1 = high2 = high3 = I64_MIN
    while warp < np.uint64(warps):
        end = min((warp + np.uint64(1)) * np.uint64(share), np.uint64(slots))
        slot = warp * np.uint64(share) + (thread & np.uint64(31))
        count = np.int64(0)
        while slot < end:
            there = flags[slot] >= least
            value = values0[slot]
            low0 = min(low0, value) if there else low0
            high0 = max(high0, value) if there else high0
            if measured > 1:
                value = values1[slot]
                low1 = min(low1, value) if there else low1
                high1 = max(high1, value) if there else high1
            if measured > 2:
                value = values2[slot]
                low2 = min(low2, value) if there else low2
                high2 = max(high2, value) if there else high2
            if measured > 3:
                value = values3[slot]
                low3 = min(low3, value) if there else low3
                high3 = max(high3, value) if there else high3
            count += np.int64(1) if there else np.int64(0)
            slot += np.uint64(32)
        for distance in (16, 8, 4, 2, 1):
            count += cuda.shfl_down_sync(ALL_LANES, count, distance)
        if cuda.laneid == 0:
            counts[warp] = count
        warp += np.uint64(cuda.gridsize(1)) >> np.uint64(5)
    widen(state, np.uint64(1), low0, high0)
    if measured > 1:
        widen(state, np.uint64(3), low1, high1)
    if measured > 2:
        widen(state, np.uint64(5), low2, high2)
    if measured > 3:
        widen(state, np.uint64(7), low3, high3)


def group_places(warps, counts, state):  # type: ignore[no-untyped-def]
    """Make of the counts of ranges, in one block, the place of the first group of each, and in state[0] their sum."""
    thread = np.uint64(cuda.threadIdx.x)
    threads = np.uint64(cuda.blockDim.x)
    sums = cuda.shared.array(0, np.int64)
    share = (np.uint64(warps) + threads - np.uint64(1)) // threads
    first = thread * share
    end = min(first + share, np.uint64(warps))
    total = np.int64(0)
    at = first
    while at < end:
        total += counts[at]
        at += np.uint64(1)
    sums[thread] = total
    cuda.syncthreads()
    place = np.int64(0)
    other = np.uint64(0)
    while other < thread:
        place += sums[other]
        other += np.uint64(1)
    at = first
    while at < end:
        count = counts[at]
        counts[at] = place
        place += count
        at += np.uint64(1)
    if thread == threads - np.uint64(1):
        state[0] = place


def group_pick(  # type: ignore[no-untyped-def]
    slots, warps, share, flags, least, places, keyed, base, width, numbers32, numbers64,
    wide, from0, from1, from2, from3, to0, to1, to2, to3, narrow, from4, from5, to4, to5,
):  # fmt: skip
    """Write each group's number and the elements of some arrays side by side.

    A number is `base` more than the slot or, where `keyed` is not 0, than what `flags` has there; it takes `width` bytes, 0 for none.
    Of `wide` arrays elements keep their 64 bits, of `narrow` ones they become 32.
    """
    thread = np.uint64(cuda.grid(1))
    warp = thread >> np.uint64(5)
    while warp < np.uint64(warps):
        place = np.uint64(places[warp])
        first = warp * np.uint64(share)
        end = min(first + np.uint64(share), np.uint64(slots))
        while first < end:
            slot = first + (thread & np.uint64(31))
            flag = least - np.int64(1)
            if slot < end:
                flag = flags[slot]
            there = flag >= least
            votes = cuda.ballot_sync(ALL_LANES, there)
            if there:
                at = place + np.uint64(cuda.popc(votes & cuda.lanemask_lt()))
                number = base + (flag if keyed != 0 else np.int64(slot))
                if width == 8:
                    numbers64[at] = number
                elif width == 4:
                    numbers32[at] = np.int32(number)
                if wide > 0:
                    to0[at] = from0[slot]
                if wide > 1:
                    to1[at] = from1[slot]
                if wide > 2:
                    to2[at] = from2[slot]
                if wide > 3:
                    to3[at] = from3[slot]
                if narrow > 0:
                    to4[at] = np.int32(from4[slot])
                if narrow > 1:
                    to5[at] = np.int32(from5[slot])
            place += np.uint64(cuda.popc(votes))
            first += np.uint64(32)
        warp += np.uint64(cuda.gridsize(1)) >> np.uint64(5)


def group_key(rows, numbers, stride, size, low, values):  # type: ignore[no-untyped-def]
    """Write one of the keys that make groups' numbers together: component number // stride % size, `low` more."""
    row = np.uint64(cuda.grid(1))
    while row < np.uint64(rows):
        part = np.uint64(numbers[row]) // np.uint64(stride) % np.uint64(size)
        values[row] = np.int64(part) + low
        row += np.uint64(cuda.gridsize(1))
