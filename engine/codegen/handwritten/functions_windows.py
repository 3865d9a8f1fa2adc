"""CUDA kernels, written by hand, over rows in the order of a window; `window_kernels` lists their parameters.

Places are dealt out to `warps` ranges of `share` places each, whatever the grid.  One kernel says what each range has, `state`, or of
a scan `sums`; the next one starts each range from what the ranges before it have, 32 of which a warp looks at at a time, and goes
through its places 32 at a time: reduce, then scan, without a block that waits for another one.  `heads` are bytes that are not 0
where a partition begins, `peers` where rows begin with another key than those before; at place 0 both do.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

ALL_LANES = 0xFFFFFFFF


@cuda.jit(device=True, inline="always")
def marked(flags, at, lane, end):  # type: ignore[no-untyped-def]
    """The places, among 32 from `at` on, that flags mark, as bits."""
    flag = np.uint8(0)
    if at + lane < end:
        flag = flags[at + lane]
    return np.uint32(cuda.ballot_sync(ALL_LANES, flag != np.uint8(0)))


@cuda.jit(device=True, inline="always")
def highest(bits):  # type: ignore[no-untyped-def]
    """The number of the highest bit; there is one."""
    return np.int64(31) - np.int64(cuda.clz(np.int32(bits)))


@cuda.jit(device=True, inline="always")
def lowest(bits):  # type: ignore[no-untyped-def]
    return np.int64(cuda.ffs(np.int32(bits))) - np.int64(1)


@cuda.jit(device=True, inline="always")
def up_to(bits, lane):  # type: ignore[no-untyped-def]
    """The bits of no higher number than a lane's."""
    return np.uint32(bits & (np.uint32(0xFFFFFFFF) >> np.uint32(31 - lane)))


@cuda.jit(device=True, inline="always")
def count_from(bits, first):  # type: ignore[no-untyped-def]
    """How many bits there are from a number on."""
    return np.int64(cuda.popc(np.int32(np.uint32(bits >> np.uint32(first)))))


@cuda.jit(device=True, inline="always")
def combined(how, left, right):  # type: ignore[no-untyped-def]
    """A sum, or the less or the greater of two numbers."""
    found = left + right
    if how == 1:
        found = min(left, right)
    elif how == 2:
        found = max(left, right)
    return found


def window_changes(rows, narrow, below, keys32, keys64, heads, peers):  # type: ignore[no-untyped-def]
    """Mark where keys change, and where partitions do: of each `below` keys, of each key (1), or only at the first place (0)."""
    row = np.int64(cuda.grid(1))
    while row < rows:
        new = row == 0
        head = row == 0
        if row > 0:
            if narrow != 0:
                here = np.int64(keys32[row])
                last = np.int64(keys32[row - np.int64(1)])
            else:
                here = np.int64(keys64[row])
                last = np.int64(keys64[row - np.int64(1)])
            new = here != last
            head = new and below == 1
            if new and below > 1:
                head = np.uint64(here) // np.uint64(below) != np.uint64(last) // np.uint64(below)
        peers[row] = np.uint8(1) if new else np.uint8(0)
        heads[row] = np.uint8(1) if head else np.uint8(0)
        row += np.int64(cuda.gridsize(1))


def window_heads(rows, warps, share, heads, peers, state):  # type: ignore[no-untyped-def]
    """Find in each range the last head and the last peers' place, or -1, how many peers begin since, and the first of both, or `rows`."""
    thread = np.int64(cuda.grid(1))
    lane = thread & np.int64(31)
    warp = thread >> np.int64(5)
    while warp < warps:
        at = warp * share
        end = min(at + share, rows)
        last_head = last_peer = np.int64(-1)
        first_head = first_peer = np.int64(rows)
        count = np.int64(0)
        while at < end:
            head_bits = marked(heads, at, lane, end)
            peer_bits = marked(peers, at, lane, end)
            if head_bits != 0:
                if last_head < 0:
                    first_head = at + lowest(head_bits)
                last_head = at + highest(head_bits)
                count = count_from(peer_bits, highest(head_bits))
            else:
                count += count_from(peer_bits, 0)
            if peer_bits != 0:
                if last_peer < 0:
                    first_peer = at + lowest(peer_bits)
                last_peer = at + highest(peer_bits)
            at += np.int64(32)
        if lane == 0:
            state[warp] = last_head
            state[warps + warp] = last_peer
            state[2 * warps + warp] = count
            state[3 * warps + warp] = first_head
            state[4 * warps + warp] = first_peer
        warp += np.int64(cuda.gridsize(1)) >> np.int64(5)


@cuda.jit(device=True, inline="always")
def carried(warp, warps, lane, state):  # type: ignore[no-untyped-def]
    """The last head and the last peers' place before a range, and how many peers begin since that head."""
    head = peer = np.int64(-1)
    count = np.int64(0)
    back = warp
    while back > 0 and head < 0:
        other = back - np.int64(1) - lane
        found = peer_found = np.int64(-1)
        own = np.int64(0)
        if other >= 0:
            found = state[other]
            peer_found = state[warps + other]
            own = state[2 * warps + other]
        votes = np.uint32(cuda.ballot_sync(ALL_LANES, found >= 0))
        peer_votes = np.uint32(cuda.ballot_sync(ALL_LANES, peer_found >= 0))
        nearest = np.int64(31)
        if votes != 0:
            nearest = lowest(votes)
            head = np.int64(cuda.shfl_sync(ALL_LANES, found, np.int32(nearest)))
        if peer_votes != 0 and peer < 0:
            peer = np.int64(cuda.shfl_sync(ALL_LANES, peer_found, np.int32(lowest(peer_votes))))
        if lane > nearest:
            own = np.int64(0)
        for distance in (16, 8, 4, 2, 1):
            own += np.int64(cuda.shfl_down_sync(ALL_LANES, own, distance))
        count += np.int64(cuda.shfl_sync(ALL_LANES, own, 0))
        back -= np.int64(32)
    return head, peer, count


def window_starts(rows, warps, share, heads, peers, state, what, out):  # type: ignore[no-untyped-def]
    """Write of each place the first one of its partition (`what` 0) or of its peers (1).

    Or its number among the places of its partition (2), that of its first peer (3), or of its peers among all of those (4), from
    1 on.
    """
    thread = np.int64(cuda.grid(1))
    lane = thread & np.int64(31)
    warp = thread >> np.int64(5)
    while warp < warps:
        head, peer, count = carried(warp, warps, lane, state)
        at = warp * share
        end = min(at + share, rows)
        while at < end:
            head_bits = marked(heads, at, lane, end)
            peer_bits = marked(peers, at, lane, end)
            own_heads = up_to(head_bits, lane)
            own_peers = up_to(peer_bits, lane)
            start = head
            ordinal = count + count_from(own_peers, 0)
            if own_heads != 0:
                start = at + highest(own_heads)
                ordinal = count_from(own_peers, highest(own_heads))
            first = peer
            if own_peers != 0:
                first = at + highest(own_peers)
            row = at + lane
            if row < end:
                value = start
                if what == 1:
                    value = first
                elif what == 2:
                    value = row - start + np.int64(1)
                elif what == 3:
                    value = first - start + np.int64(1)
                elif what == 4:
                    value = ordinal
                out[row] = value
            if head_bits != 0:
                head = at + highest(head_bits)
                count = count_from(peer_bits, highest(head_bits))
            else:
                count += count_from(peer_bits, 0)
            if peer_bits != 0:
                peer = at + highest(peer_bits)
            at += np.int64(32)
        warp += np.int64(cuda.gridsize(1)) >> np.int64(5)


def window_stops(rows, warps, share, flags, firsts, out):  # type: ignore[no-untyped-def]
    """Write of each place the next one that flags mark, `rows` behind the last; `firsts` are those of the ranges."""
    thread = np.int64(cuda.grid(1))
    lane = thread & np.int64(31)
    warp = thread >> np.int64(5)
    while warp < warps:
        following = np.int64(rows)
        ahead = warp + np.int64(1)
        while ahead < warps and following == rows:
            other = ahead + lane
            found = np.int64(rows)
            if other < warps:
                found = firsts[other]
            votes = np.uint32(cuda.ballot_sync(ALL_LANES, found < rows))
            if votes != 0:
                following = np.int64(cuda.shfl_sync(ALL_LANES, found, np.int32(lowest(votes))))
            ahead += np.int64(32)
        begin = warp * share
        end = min(begin + share, rows)
        at = begin + ((end - begin - np.int64(1)) & np.int64(-32))
        while at >= begin and begin < end:
            bits = marked(flags, at, lane, end)
            later = np.uint32(bits & ~up_to(bits, lane))
            if at + lane < end:
                value = following
                if later != 0:
                    value = at + lowest(later)
                out[at + lane] = value
            if bits != 0:
                following = at + lowest(bits)
            at -= np.int64(32)
        warp += np.int64(cuda.gridsize(1)) >> np.int64(5)


def window_sums(rows, warps, share, heads, state, how, none, values, sums):  # type: ignore[no-untyped-def]
    """Combine the values of each range since its last head; `none` changes nothing."""
    thread = np.int64(cuda.grid(1))
    lane = thread & np.int64(31)
    warp = thread >> np.int64(5)
    while warp < warps:
        begin = warp * share
        end = min(begin + share, rows)
        total = none
        row = max(state[warp], begin) + lane
        while row < end:
            total = combined(how, total, values[row])
            row += np.int64(32)
        for distance in (16, 8, 4, 2, 1):
            total = combined(how, total, cuda.shfl_down_sync(ALL_LANES, total, distance))
        if lane == 0:
            sums[warp] = total
        warp += np.int64(cuda.gridsize(1)) >> np.int64(5)


def window_running(  # type: ignore[no-untyped-def]
    rows, warps, share, heads, state, how, none, values, sums, out
):
    """Write of each place what the values of its partition up to it make."""
    thread = np.int64(cuda.grid(1))
    lane = thread & np.int64(31)
    warp = thread >> np.int64(5)
    while warp < warps:
        total = none
        searched = False
        back = warp
        while back > 0 and not searched:
            other = back - np.int64(1) - lane
            found = np.int64(-1)
            own = none
            if other >= 0:
                found = state[other]
                own = sums[other]
            votes = np.uint32(cuda.ballot_sync(ALL_LANES, found >= 0))
            if votes != 0:
                searched = True
                if lane > lowest(votes):
                    own = none
            for distance in (16, 8, 4, 2, 1):
                own = combined(how, own, cuda.shfl_down_sync(ALL_LANES, own, distance))
            total = combined(how, total, cuda.shfl_sync(ALL_LANES, own, 0))
            back -= np.int64(32)
        at = warp * share
        end = min(at + share, rows)
        while at < end:
            bits = marked(heads, at, lane, end)
            own_heads = up_to(bits, lane)
            value = none
            if at + lane < end:
                value = values[at + lane]
            first = np.int64(0)
            if own_heads != 0:
                first = highest(own_heads)
            for distance in (1, 2, 4, 8, 16):
                before = cuda.shfl_up_sync(ALL_LANES, value, distance)
                if lane >= first + distance:
                    value = combined(how, before, value)
            if own_heads == 0:
                value = combined(how, total, value)
            if at + lane < end:
                out[at + lane] = value
            total = cuda.shfl_sync(ALL_LANES, value, 31)
            at += np.int64(32)
        warp += np.int64(cuda.gridsize(1)) >> np.int64(5)


def window_scatter(rows, words, order, values, out):  # type: ignore[no-untyped-def]
    """Put values of `words` words each where their rows are."""
    row = np.int64(cuda.grid(1))
    while row < rows:
        to = np.int64(order[row])
        if words == 1:
            out[to] = values[row]
        else:
            out[2 * to] = values[2 * row]
            out[2 * to + 1] = values[2 * row + 1]
        row += np.int64(cuda.gridsize(1))


def window_moved(rows, away, bounds, out):  # type: ignore[no-untyped-def]
    """Write the place so many after each one, or before it, -1 beyond its partition, whose ends are `bounds` on that side."""
    row = np.int64(cuda.grid(1))
    while row < rows:
        to = row + away
        bound = bounds[row]
        inside = to >= bound if away < 0 else to < bound
        out[row] = to if inside else np.int64(-1)
        row += np.int64(cuda.gridsize(1))


def window_taken(rows, nowhere, order, stays, places, out):  # type: ignore[no-untyped-def]
    """Write for each place, or for its row, the number of the row at the place that it has, `nowhere` for -1."""
    row = np.int64(cuda.grid(1))
    while row < rows:
        place = places[row]
        found = np.int32(nowhere)
        if place >= 0:
            found = order[place]
        to = row
        if stays == 0:
            to = np.int64(order[row])
        out[to] = found
        row += np.int64(cuda.gridsize(1))


def window_ends(rows, stops, words, out):  # type: ignore[no-untyped-def]
    """Write of each place the word before the place where something of its own stops."""
    row = np.int64(cuda.grid(1))
    while row < rows:
        out[row] = words[stops[row] - np.int64(1)]
        row += np.int64(cuda.gridsize(1))
