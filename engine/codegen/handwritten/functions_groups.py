"""CUDA kernels, written by hand, that find the groups that exist among the slots of an aggregate; `group_kernels` lists their parameters.

A slot holds a group where `flags` has at least `least`: rows that fell into it, or its key in a hash table.  `bits` say it from
then on, 32 slots a word; where there is a condition on groups, a generated kernel has written them.  Slots are dealt out to
`warps` ranges of `share` slots each, whatever the grid: `cuda.emit_picks` writes groups in the order of their slots.
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


@cuda.jit(device=True, inline="always")
def exists(flags, slot, slots, least):  # type: ignore[no-untyped-def]
    """Whether a slot that may be one after the last holds a group."""
    flag = least - np.int64(1)
    if slot < slots:
        flag = np.int64(flags[slot])
    return flag >= least


@cuda.jit(device=True, inline="always")
def at(values, slot, there):  # type: ignore[no-untyped-def]
    """An element where there is a group; anything elsewhere."""
    value = np.int64(0)
    if there:
        value = np.int64(values[slot])
    return value


@cuda.jit(device=True, inline="always")
def lowest(low, value, there):  # type: ignore[no-untyped-def]
    return min(low, value) if there else low


@cuda.jit(device=True, inline="always")
def highest(high, value, there):  # type: ignore[no-untyped-def]
    return max(high, value) if there else high


@cuda.jit(device=True, inline="always")
def with_four(values, slot, there0, there1, there2, there3, low, high):  # type: ignore[no-untyped-def]
    """An interval that holds the elements of four slots too, whose loads come before all comparisons."""
    value0 = at(values, slot, there0)
    value1 = at(values, slot + np.uint64(32), there1)
    value2 = at(values, slot + np.uint64(64), there2)
    value3 = at(values, slot + np.uint64(96), there3)
    low = lowest(lowest(low, value0, there0), value1, there1)
    low = lowest(lowest(low, value2, there2), value3, there3)
    high = highest(highest(high, value0, there0), value1, there1)
    high = highest(highest(high, value2, there2), value3, there3)
    return low, high


def group_count(  # type: ignore[no-untyped-def]
    slots, warps, share, flags, least, bits, measured, values0, values1, values2, values3, counts, state
):  # fmt: skip
    """Mark the groups in `bits` and count those of each range; find extremes of the first `measured` arrays, from state[1] on.

    A warp takes four words of slots at a time, so that four loads are under way.
    """
    thread = np.uint64(cuda.grid(1))
    lane = thread & np.uint64(31)
    warp = thread >> np.uint64(5)
    low0 = low1 = low2 = low3 = I64_MAX
    high0 = high1 = high2 = high3 = I64_MIN
    while warp < np.uint64(warps):
        first = warp * np.uint64(share)
        end = min(first + np.uint64(share), np.uint64(slots))
        count = np.int64(0)
        while first < end:
            slot = first + lane
            there0 = exists(flags, slot, end, least)
            there1 = exists(flags, slot + np.uint64(32), end, least)
            there2 = exists(flags, slot + np.uint64(64), end, least)
            there3 = exists(flags, slot + np.uint64(96), end, least)
            votes0 = cuda.ballot_sync(ALL_LANES, there0)
            votes1 = cuda.ballot_sync(ALL_LANES, there1)
            votes2 = cuda.ballot_sync(ALL_LANES, there2)
            votes3 = cuda.ballot_sync(ALL_LANES, there3)
            if lane == np.uint64(0):
                word = first >> np.uint64(5)
                bits[word] = np.int32(votes0)
                bits[word + np.uint64(1)] = np.int32(votes1)
                bits[word + np.uint64(2)] = np.int32(votes2)
                bits[word + np.uint64(3)] = np.int32(votes3)
            if (votes0 | votes1 | votes2 | votes3) != 0:
                low0, high0 = with_four(values0, slot, there0, there1, there2, there3, low0, high0)
                if measured > 1:
                    low1, high1 = with_four(
                        values1, slot, there0, there1, there2, there3, low1, high1
                    )
                if measured > 2:
                    low2, high2 = with_four(
                        values2, slot, there0, there1, there2, there3, low2, high2
                    )
                if measured > 3:
                    low3, high3 = with_four(
                        values3, slot, there0, there1, there2, there3, low3, high3
                    )
            count += np.int64(cuda.popc(votes0)) + np.int64(cuda.popc(votes1))
            count += np.int64(cuda.popc(votes2)) + np.int64(cuda.popc(votes3))
            first += np.uint64(128)
        if lane == np.uint64(0):
            counts[warp] = count
        warp += np.uint64(cuda.gridsize(1)) >> np.uint64(5)
    widen(state, np.uint64(1), low0, high0)
    if measured > 1:
        widen(state, np.uint64(3), low1, high1)
    if measured > 2:
        widen(state, np.uint64(5), low2, high2)
    if measured > 3:
        widen(state, np.uint64(7), low3, high3)


def group_measure(  # type: ignore[no-untyped-def]
    slots, warps, share, bits, measured, values0, values1, values2, values3, counts, state
):
    """Count the groups of each range that `bits` mark, and find extremes as `group_count` does.

    Each lane looks at a word; the warp then goes through those that mark any.
    """
    thread = np.uint64(cuda.grid(1))
    lane = thread & np.uint64(31)
    warp = thread >> np.uint64(5)
    low0 = low1 = low2 = low3 = I64_MAX
    high0 = high1 = high2 = high3 = I64_MIN
    while warp < np.uint64(warps):
        word = warp * np.uint64(share) >> np.uint64(5)
        end = min((warp + np.uint64(1)) * np.uint64(share), np.uint64(slots))
        words = (end + np.uint64(31)) >> np.uint64(5)
        count = np.int64(0)
        while word < words:
            votes = np.int32(0)
            if word + lane < words:
                votes = bits[word + lane]
            left = np.uint32(cuda.ballot_sync(ALL_LANES, votes != 0))
            while left != np.uint32(0):
                turn = np.int32(cuda.ffs(left)) - np.int32(1)
                left = np.uint32(left & (left - np.uint32(1)))
                marked = np.int32(cuda.shfl_sync(ALL_LANES, votes, turn))
                slot = ((word + np.uint64(turn)) << np.uint64(5)) + lane
                there = ((marked >> np.int32(lane)) & np.int32(1)) != 0
                value = at(values0, slot, there)
                low0, high0 = lowest(low0, value, there), highest(high0, value, there)
                if measured > 1:
                    value = at(values1, slot, there)
                    low1, high1 = lowest(low1, value, there), highest(high1, value, there)
                if measured > 2:
                    value = at(values2, slot, there)
                    low2, high2 = lowest(low2, value, there), highest(high2, value, there)
                if measured > 3:
                    value = at(values3, slot, there)
                    low3, high3 = lowest(low3, value, there), highest(high3, value, there)
                count += np.int64(cuda.popc(marked))
            word += np.uint64(32)
        if lane == np.uint64(0):
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


@cuda.jit(device=True, inline="always")
def unpacked(packed, slot, width):  # type: ignore[no-untyped-def]
    """The count of a slot, `width` bits of a word that it shares."""
    bit = slot * np.uint64(width)
    word = np.uint32(packed[bit >> np.uint64(5)]) >> np.uint32(bit & np.uint64(31))
    return np.int32(word & ((np.uint32(1) << np.uint32(width)) - np.uint32(1)))


def group_unpack(slots, width, packed, counts, lost):  # type: ignore[no-untyped-def]
    """Give counts of `width` bits, 8 or 16, 32 bits each, and take their sum from `lost`, which then is 0 if none outgrew its bits.

    A warp takes four words of slots at a time, so that four loads are under way.
    """
    thread = np.uint64(cuda.grid(1))
    lane = thread & np.uint64(31)
    first = (thread >> np.uint64(5)) * np.uint64(128)
    last = np.uint64(slots) - np.uint64(1)
    total = np.int64(0)
    while first < np.uint64(slots):
        slot0 = first + lane
        slot1 = slot0 + np.uint64(32)
        slot2 = slot0 + np.uint64(64)
        slot3 = slot0 + np.uint64(96)
        count0 = unpacked(packed, min(slot0, last), width)
        count1 = unpacked(packed, min(slot1, last), width)
        count2 = unpacked(packed, min(slot2, last), width)
        count3 = unpacked(packed, min(slot3, last), width)
        if slot0 <= last:
            counts[slot0] = count0
            total += np.int64(count0)
        if slot1 <= last:
            counts[slot1] = count1
            total += np.int64(count1)
        if slot2 <= last:
            counts[slot2] = count2
            total += np.int64(count2)
        if slot3 <= last:
            counts[slot3] = count3
            total += np.int64(count3)
        first += np.uint64(cuda.gridsize(1)) * np.uint64(4)
    for distance in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(ALL_LANES, total, distance)
    if lane == np.uint64(0) and total != np.int64(0):
        cuda.atomic.add(lost, np.uint64(0), -total)
