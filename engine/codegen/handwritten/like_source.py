"""The text of LIKE kernels, by the shape of a pattern; `like` says how they work and what they take."""

from __future__ import annotations

from .like import BYTES, LOADS, MOST_ROWS, THREADS, TURN, WORD, LikeShape, signature


def source(shape: LikeShape) -> str:
    """Return a kernel's file."""
    parameters = ", ".join(name for name, _ in signature(shape))
    position = "np.int64" if shape.wide else "np.int32"
    body = _BLOCKS if shape.blocks else _ROWS
    if shape.blocks:
        body = body.replace("        LOAD_STARTS\n", _indented(_load_starts(), 2))
        body = body.replace("        LOAD_AND_NOTE\n", _indented(_load_and_note(shape), 2))
        body = body.replace("            FIND_NEAR\n", _indented(_find_near(shape), 3))
    head = _HEAD.replace("POSITION", position)
    return head + body.replace("NAME", shape.name).replace("PARAMETERS", parameters)


def _load_starts() -> list[str]:
    """Where rows begin; a thread has several loads in flight."""
    places = [f"np.int32(row + {j * THREADS})" for j in range(LOADS)]
    loads = [f"start{j} = offsets[first_row + min({p}, here)]" for j, p in enumerate(places)]
    stores = [
        line
        for j, place in enumerate(places)
        for line in (
            f"if {place} < here:",
            f"    starts[{place}] = Place(np.int64(start{j}) + shift - text)",
            f"    found[{place}] = np.uint8(0)",
        )
    ]
    return [*loads, *stores]


def _load_and_note(shape: LikeShape) -> list[str]:
    """Load this thread's vectors of a turn, then note those in which the part may begin."""
    lines = []
    for j in range(LOADS):
        lines += [
            f"v{j} = np.int32(turn + thread + {j * THREADS})",
            f"x{j}, y{j} = load_pair(vectors, first_vector + min(v{j}, np.int32(stop_vector - 1)))",
        ]
    for j in range(LOADS):
        test = _aligned_test(j) if shape.aligned else _pair_test(j)
        lines += [
            f"if (v{j} < stop_vector) & ({test}):",  # not "and": loads would wait for it
            f"    noted[cuda.atomic.add(count, 0, 1)] = v{j}",
        ]
    return lines


def _find_near(shape: LikeShape) -> list[str]:
    """Find the places where the part may begin for which a vector was noted, from the one `first` on."""
    load = "x, y = load_pair(vectors, first_vector + vector)"
    if shape.aligned:  # of an aligned word, it begins up to 3 bytes before
        return [
            load,
            "w = vectors[max(2 * (first_vector + vector) - 1, np.int64(0))]",
            "y, z = (x >> 40) | (y << 24), y >> 40",
            "x = (w >> 40) | (x << 24)",
            "first = Place((np.int64(vector) << 4) - 3)",
        ]
    return [
        load,
        "z = vectors[2 * (first_vector + min(np.int32(vector + 1), np.int32(stop_vector - 1)))]",
        "first = Place(np.int64(vector) << 4)",
    ]


def _indented(lines: list[str], depth: int) -> str:
    return "".join(f"{'    ' * depth}{line}\n" for line in lines)


def _aligned_test(j: int) -> str:
    """Whether one of a vector's four words is one of the four words that a part begins with, at whatever place."""
    found = [f"np.uint32({half}{j}{shift})" for half in "xy" for shift in ("", " >> 32")]
    return " | ".join(f"({word} == word{i})" for word in found for i in range(4))


def _pair_test(j: int) -> str:
    """Whether a part's first byte is somewhere in a vector with its second one behind it, which counts as there behind the last byte."""
    return f"near_places(x{j}, y{j}, byte1, byte0, byte1, mask1) != np.uint64(0)"


_HEAD = f'''"""LIKE over strings as Arrow lays them out."""

import numpy as np
from numba import cuda

from fuseline.codegen.cuda.functions_cuda import *

Place = POSITION  # a place among the bytes of a row or a block
ROWS = {MOST_ROWS}
STARTS = {MOST_ROWS + 1}
NOTED = {2 * TURN}


# The 8 bytes from a place on; those behind word `last` are any
@cuda.jit(device=True, inline="always")
def bytes_at(words, place, last):
    number, bits = np.int64(place) >> 3, np.uint64((place & 7) << 3)
    low, high = words[number], words[min(number + 1, last)]
    return (low >> bits) | ((high << np.uint64(1)) << (np.uint64(63) - bits))


# Bits for the bytes of `x` and `y` that are the first of a part with the second behind them; `z` comes after.  A byte that
# differs in nothing is 0, and what is borrowed for it sets its highest bit, and may set that of the next one
@cuda.jit(device=True, inline="always")
def near_places(x, y, z, byte0, byte1, mask1):
    ones, highest = np.uint64({BYTES:#x}), np.uint64({0x80 * BYTES:#x})
    low = (x ^ byte0) | ((((x >> 8) | (y << 56)) ^ byte1) & mask1)
    high = (y ^ byte0) | ((((y >> 8) | (z << 56)) ^ byte1) & mask1)
    return (((low - ones) & ~low & highest) >> 7) | (((high - ones) & ~high & highest) >> 3)


# Which of the 16 bytes a number of a bit in `near_places` stands for
@cuda.jit(device=True, inline="always")
def byte_of(bit):
    return Place((bit >> 3) + ((bit & 4) << 1))


# Whether a part of `length` bytes is at a place, of which the first 8 bytes are `head`
@cuda.jit(device=True, inline="always")
def is_part(vectors, chars, first_vector, place, last, letters, needle, length, head, head_mask):
    text = first_vector << 4
    same = ((bytes_at(vectors, text + place, last) ^ head) & head_mask) == np.uint64(0)
    k = np.int32(8)
    while same and k < length:
        same = chars[text + place + k] == letters[needle + k]
        k = np.int32(k + 1)
    return same


# The first place from `at` to `last` where a part of `length` bytes begins, -1 for none
@cuda.jit(device=True, inline="always")
def find_part(vectors, chars, first_vector, at, last, pattern, letters, needle, length):
    found = Place(-1)
    if at <= last:
        head = bytes_at(pattern, needle, np.int64(2**62))
        head_mask = ~np.uint64(0) >> np.uint64(64 - 8 * min(length, np.int32({WORD})))
        byte0 = (head & np.uint64(255)) * np.uint64({BYTES:#x})
        byte1 = ((head >> 8) & np.uint64(255)) * np.uint64({BYTES:#x})
        mask1 = ~np.uint64(0) if length > 1 else np.uint64(0)
        last_vector = Place((last + length - 1) >> 4)
        last_word = 2 * (first_vector + last_vector) + 1
        vector = Place(at >> 4)
        x, y = load_pair(vectors, first_vector + vector)
        while found < 0 and Place(vector << 4) <= last:
            next_x, next_y = load_pair(vectors, first_vector + min(Place(vector + 1), last_vector))
            near = near_places(x, y, next_x, byte0, byte1, mask1)
            while near != np.uint64(0):
                place = Place((vector << 4) + byte_of(cuda.ffs(near) - 1))
                near &= near - np.uint64(1)
                if (
                    place >= at and place <= last and (found < 0 or place < found)
                    and is_part(vectors, chars, first_vector, place, last_word, letters, needle, length, head, head_mask)
                ):
                    found = place
            x, y = next_x, next_y
            vector = Place(vector + 1)
    return found

'''

_ROWS = """
def NAME(PARAMETERS):
    row = np.int64(cuda.grid(1))
    if row < rows:
        start = np.int64(offsets[row]) + shift
        first_vector = start >> 4
        begin = Place(start & 15)
        end = Place(np.int64(offsets[row + 1]) + shift - (first_vector << 4))
        text = first_vector << 4
        yes = Place(end - begin) >= size
        if yes and nulls:
            bit = first_bit + row
            yes = (bits[bit >> 3] >> (bit & 7)) & 1 != 0
        prefix = bounds[0]
        k = np.int32(0)
        while yes and k < prefix:
            yes = chars[text + begin + k] == letters[k]
            k = np.int32(k + 1)
        stop = Place(end - suffix)
        k = np.int32(0)
        while yes and k < suffix:
            yes = chars[text + stop + k] == letters[bounds[parts] + k]
            k = np.int32(k + 1)
        at = Place(begin + prefix)
        part = np.int32(0)
        while yes and part < parts:
            needle = bounds[part]
            length = np.int32(bounds[part + 1] - needle)
            last = Place(stop - length)
            at = find_part(vectors, chars, first_vector, at, last, pattern, letters, needle, length)
            yes = at >= 0
            at = Place(at + length)
            part = np.int32(part + 1)
        out[row] = np.uint8(yes)
"""

_BLOCKS = f"""
def NAME(PARAMETERS):
    starts = cuda.shared.array(STARTS, Place)
    found = cuda.shared.array(ROWS, np.uint8)  # whether all floating parts are there
    noted = cuda.shared.array(NOTED, np.int32)  # vectors
    count = cuda.shared.array(1, np.int32)
    thread = np.int32(cuda.threadIdx.x)
    first_row = np.int64(cuda.blockIdx.x) * group
    here = np.int32(min(group, rows - first_row))
    first = np.int64(offsets[first_row]) + shift
    first_vector = first >> 4
    text = first_vector << 4
    end = Place(np.int64(offsets[first_row + here]) + shift - text)
    stop_vector = np.int32((end + 15) >> 4)
    row = thread
    while row < here:
        LOAD_STARTS
        row = np.int32(row + {LOADS * THREADS})
    if thread == 0:
        starts[here] = end
        count[0] = np.int32(0)
    cuda.syncthreads()
    prefix = bounds[0]
    needle = bounds[lead]
    length = np.int32(bounds[lead + 1] - needle)
    last_word = 2 * (first_vector + stop_vector) - 1
    turn = np.int32(0)
    while turn < stop_vector:
        LOAD_AND_NOTE
        cuda.syncthreads()
        total = count[0]
        turn = np.int32(turn + {TURN})
        is_full = total > {TURN} or turn >= stop_vector
        cuda.syncthreads()
        entry = thread if is_full else total
        while entry < total:
            vector = noted[entry]
            FIND_NEAR
            near = near_places(x, y, z, byte0, byte1, mask1)
            while near != np.uint64(0):
                place = Place(first + byte_of(cuda.ffs(near) - 1))
                near &= near - np.uint64(1)
                fits = place >= 0 and place + length <= end
                if fits and is_part(
                    vectors, chars, first_vector, place, last_word, letters, needle, length, head, head_mask
                ):
                    low, high = np.int32(0), here  # the last row that begins at or before this place
                    while high - low > 1:
                        middle = np.int32((low + high) >> 1)
                        if starts[middle] <= place:
                            low = middle
                        else:
                            high = middle
                    at = Place(starts[low] + prefix)
                    stop = Place(starts[low + 1] - suffix)
                    fits = found[low] == 0 and place >= at and place + length <= stop
                    part = np.int32(0)
                    while fits and part < parts:
                        other = bounds[part]
                        width = np.int32(bounds[part + 1] - other)
                        if part == lead:
                            at = place
                        else:
                            last = Place((place if part < lead else stop) - width)
                            at = find_part(
                                vectors, chars, first_vector, at, last, pattern, letters, other, width
                            )
                        fits = at >= 0
                        at = Place(at + width)
                        part = np.int32(part + 1)
                    if fits:
                        found[low] = np.uint8(1)
            entry = np.int32(entry + {THREADS})
        if is_full:
            cuda.syncthreads()
            if thread == 0:
                count[0] = np.int32(0)
            cuda.syncthreads()
    row = thread
    while row < here:
        begin, stop = starts[row], Place(starts[row + 1] - suffix)
        yes = found[row] != 0 and Place(stop + suffix - begin) >= size
        if yes and nulls:
            bit = first_bit + first_row + row
            yes = (bits[bit >> 3] >> (bit & 7)) & 1 != 0
        k = np.int32(0)
        while yes and k < prefix:
            yes = chars[text + begin + k] == letters[k]
            k = np.int32(k + 1)
        k = np.int32(0)
        while yes and k < suffix:
            yes = chars[text + stop + k] == letters[bounds[parts] + k]
            k = np.int32(k + 1)
        out[first_row + row] = np.uint8(yes)
        row = np.int32(row + {THREADS})
"""
