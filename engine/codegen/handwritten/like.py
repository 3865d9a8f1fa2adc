"""CUDA kernels for LIKE: patterns of literal parts that are separated by %, over strings as Arrow lays them out.

By rows, each thread has a string of its own.  By blocks, each block of threads has some neighbouring strings, whose bytes it reads
in order, 16 a thread, whatever strings they belong to; where four bytes look like those of a part the place is noted, and then the
threads look at all noted places together.  Whether a string matches is decided by the first place of the first part and the last
place of the last one, and what is between.  Bytes are compared as they are: in UTF-8 no character begins inside another.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...plan.patterns import Literals

THREADS = 256
MOST_ROWS = 512  # of a block
LOADS = 4  # of 16 bytes each, that a thread has in flight
TURN = LOADS * THREADS  # 16-byte vectors that a block goes through before it looks at what it noted
BLOCK_BYTES = 14 << 10  # a little less than a turn's
# A part of so many bytes has four in a row that begin at a multiple of four, wherever it lies
ALIGNED = 7

Signature = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a kernel's text depends on; patterns of one shape share a kernel.

    `blocks` says whether strings are looked at by blocks, for which `aligned` has for each searched part whether it is so long
    that aligned words find it.  `wide`: offsets have 64 bits.
    """

    blocks: bool
    aligned: tuple[bool, ...] = ()
    wide: bool = False

    @property
    def name(self) -> str:
        ways = ["aligned" if a else "window" for a in self.aligned]
        way = ["blocks", *ways] if self.blocks else ["rows"]
        return "_".join(["like", *way, *(["wide"] if self.wide else [])])


def searched(parts: Literals) -> tuple[bytes, ...]:
    """Return the parts that blocks look for in all bytes: the first and the last floating one."""
    floating = parts.floating
    return floating if len(floating) < 3 else (floating[0], floating[-1])


def shape_of(parts: Literals, blocks: bool, wide: bool) -> Shape:
    """Return the shape of a pattern's kernel."""
    if not blocks or not parts.floating:
        return Shape(False, (), wide)
    return Shape(True, tuple(len(p) >= ALIGNED for p in searched(parts)), wide)


def words(parts: Literals) -> list[int]:
    """Return the arguments `a0`, ... by which searched parts are noticed: words to compare with, or a word and its mask."""
    found = []
    for part in searched(parts):
        if len(part) >= ALIGNED:
            found += [int.from_bytes(part[i : i + 4], "little") for i in range(4)]
        else:
            found.append(int.from_bytes(part[:4], "little"))
            found.append((1 << 8 * min(len(part), 4)) - 1)
    return found


def rows_a_block(rows: int, size: int) -> int:
    """Return how many strings make a block's share, when `rows` of them have `size` bytes."""
    return min(max(BLOCK_BYTES * rows // max(size, 1), 1), MOST_ROWS)


def signature(shape: Shape) -> Signature:
    """Name and Numba type of each parameter, in order.

    Positions count from `vectors`, the address of a multiple of 16 bytes at or before the characters, which begin `shift` bytes
    after it.  `offsets` begin with that of row 0; its bit is number `first_bit` of `bits`, which are not read unless `nulls`.
    """
    found = [("rows", "int64")]
    if shape.blocks:
        found.append(("group", "int64"))
    found += [("vectors", "*uint64"), ("chars", "*uint8"), ("shift", "int64")]
    found.append(("offsets", "*int64" if shape.wide else "*int32"))
    found += [("bits", "*uint8"), ("first_bit", "int64"), ("nulls", "int64")]
    found += [("pattern", "*uint8"), ("bounds", "*int32"), ("parts", "int32")]
    found += [("size", "int32"), ("suffix", "int32"), ("out", "*uint8")]
    return found + [(name, "uint32") for name in _word_names(shape)]


def _word_names(shape: Shape) -> list[str]:
    counts = [4 if aligned else 2 for aligned in shape.aligned]
    return [f"{letter}{i}" for letter, n in zip("ab", counts, strict=False) for i in range(n)]


def source(shape: Shape) -> str:
    """Return a kernel's file."""
    parameters = ", ".join(name for name, _ in signature(shape))
    position = "np.int64" if shape.wide else "np.int32"
    none = "2**63 - 1" if shape.wide else "2**31 - 1"
    body = _BLOCKS if shape.blocks else _ROWS
    if shape.blocks:
        body = body.replace("    LOAD_AND_NOTE\n", _indented(_load_and_note(shape), 2))
        body = body.replace("            FIND_NEAR\n", _indented(_find_near(shape), 3))
    head = _HEAD.replace("POSITION", position).replace("LAST_PLACE", none)
    return head + body.replace("NAME", shape.name).replace("PARAMETERS", parameters)


def _load_and_note(shape: Shape) -> list[str]:
    """Load this thread's vectors of a turn, then note those in which a searched part may begin."""
    lines = []
    for j in range(LOADS):
        lines += [
            f"v{j} = np.int32(turn + thread + {j * THREADS})",
            f"here{j} = min(v{j}, np.int32(stop_vector - 1))",
            f"x{j}, y{j} = load_pair(vectors, first_vector + here{j})",
        ]
        if not all(shape.aligned):
            lines += [
                f"after{j} = min(np.int32(here{j} + 1), np.int32(stop_vector - 1))",
                f"z{j} = vectors[2 * (first_vector + after{j})]",
            ]
    for j in range(LOADS):
        for k, aligned in enumerate(shape.aligned):
            test = _aligned_test(j, "ab"[k]) if aligned else _window_test(j, "ab"[k])
            lines += [
                f"if (v{j} < stop_vector) & ({test}):",  # not "and": loads would wait for it
                "    slot = cuda.atomic.add(count, 0, 1)",
                f"    noted[slot] = np.uint16(2 * (v{j} - turn) + {k})",
            ]
    return lines


def _find_near(shape: Shape) -> list[str]:
    """Set a bit of `near` for each place, from 3 bytes before a noted vector on, where the part begins with its first bytes."""
    masks = ["np.uint32(0xFFFFFFFF)" if a else f"{'ab'[k]}1" for k, a in enumerate(shape.aligned)]
    both = len(masks) == 2
    lines = [
        "first_word = " + ("b0 if is_last else a0" if both else "a0"),
        "first_mask = " + (f"{masks[1]} if is_last else {masks[0]}" if both else masks[0]),
        "x, y = load_pair(vectors, first_vector + vector)",
        "w = vectors[max(2 * (first_vector + vector) - 1, np.int64(0))]",
        "z = vectors[2 * (first_vector + min(np.int32(vector + 1), np.int32(stop_vector - 1)))]",
        "near = np.uint32(0)",
    ]
    windows = [f"np.uint32(((w >> 32) | (x << 32)) >> {8 * i})" for i in (1, 2, 3)]
    for bit, window in enumerate([*windows, *_windows("x", "y", "z")]):
        test = f"np.uint32(({window} ^ first_word) & first_mask) == np.uint32(0)"
        lines.append(f"near |= np.uint32({1 << bit}) if {test} else np.uint32(0)")
    return lines


def _indented(lines: list[str], depth: int) -> str:
    return "".join(f"{'    ' * depth}{line}\n" for line in lines)


def _aligned_test(j: int, letter: str) -> str:
    """Whether one of a vector's four words is one of the four words that a part begins with, at whatever place."""
    found = [f"np.uint32({half}{j}{shift})" for half in "xy" for shift in ("", " >> 32")]
    return " | ".join(f"({word} == {letter}{i})" for word in found for i in range(4))


def _window_test(j: int, letter: str) -> str:
    """Whether at one of a vector's 16 bytes begins what a part begins with."""
    tests = [
        f"(np.uint32(({window} ^ {letter}0) & {letter}1) == np.uint32(0))"
        for window in _windows(f"x{j}", f"y{j}", f"z{j}")
    ]
    return " | ".join(tests)


def _windows(x: str, y: str, z: str) -> list[str]:
    """The four bytes from each of 16 on, which are those of `x` and `y`; `z` comes after them."""
    pairs = [x, f"(({x} >> 32) | ({y} << 32))", y, f"(({y} >> 32) | ({z} << 32))"]
    return [f"np.uint32({pair} >> {8 * i})" for pair in pairs for i in range(4)]


_HEAD = f'''"""LIKE over strings as Arrow lays them out."""

import numpy as np
from numba import cuda

from fuseline.codegen.targets.functions_cuda import *

Place = POSITION  # a place among the bytes of a row or a block
NOWHERE = Place(LAST_PLACE)
ROWS = {MOST_ROWS}
STARTS = {MOST_ROWS + 1}
NOTED = {2 * TURN}

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
            yes = chars[text + begin + k] == pattern[k]
            k = np.int32(k + 1)
        stop = Place(end - suffix)
        k = np.int32(0)
        while yes and k < suffix:
            yes = chars[text + stop + k] == pattern[bounds[parts] + k]
            k = np.int32(k + 1)
        at = Place(begin + prefix)
        part = np.int32(0)
        while yes and part < parts:
            needle = bounds[part]
            length = np.int32(bounds[part + 1] - needle)
            zero = np.uint32(0)
            word, mask = zero, zero
            for k in range(4):
                if k < length:
                    word |= np.uint32(pattern[needle + k]) << np.uint32(8 * k)
                    mask |= np.uint32(255) << np.uint32(8 * k)
            last = Place(stop - length)
            found = Place(-1)
            vector = Place(at >> 4)
            last_vector = Place((end - 1) >> 4)
            x, y = load_pair(vectors, first_vector + min(vector, last_vector))
            while found < 0 and Place(vector << 4) <= last:
                next_x, next_y = load_pair(vectors, first_vector + min(Place(vector + 1), last_vector))
                middle = (x >> 32) | (y << 32)
                over = (y >> 32) | (next_x << 32)
                hit = False
                for k in range(4):
                    hit |= np.uint32((np.uint32(x >> (8 * k)) ^ word) & mask) == zero
                    hit |= np.uint32((np.uint32(middle >> (8 * k)) ^ word) & mask) == zero
                    hit |= np.uint32((np.uint32(y >> (8 * k)) ^ word) & mask) == zero
                    hit |= np.uint32((np.uint32(over >> (8 * k)) ^ word) & mask) == zero
                if hit:
                    place = max(at, Place(vector << 4))
                    final = min(last, Place((vector << 4) + 15))
                    while found < 0 and place <= final:
                        k = np.int32(0)
                        while k < length and chars[text + place + k] == pattern[needle + k]:
                            k = np.int32(k + 1)
                        if k == length:
                            found = place
                        place = Place(place + 1)
                x, y = next_x, next_y
                vector = Place(vector + 1)
            yes = found >= 0
            at = Place(found + length)
            part = np.int32(part + 1)
        out[row] = np.uint8(yes)
"""

_BLOCKS = f"""
def NAME(PARAMETERS):
    starts = cuda.shared.array(STARTS, Place)
    earliest = cuda.shared.array(ROWS, Place)  # place of the first floating part in each row
    latest = cuda.shared.array(ROWS, Place)  # and of the last one
    noted = cuda.shared.array(NOTED, np.uint16)  # vector of the turn, and which part may be there
    count = cuda.shared.array(1, np.int32)
    thread = np.int32(cuda.threadIdx.x)
    first_row = np.int64(cuda.blockIdx.x) * group
    here = np.int32(min(group, rows - first_row))
    first_vector = (np.int64(offsets[first_row]) + shift) >> 4
    text = first_vector << 4
    row = thread
    while row <= here:
        starts[row] = Place(np.int64(offsets[first_row + row]) + shift - text)
        if row < here:
            earliest[row] = NOWHERE
            latest[row] = Place(-1)
        row = np.int32(row + {THREADS})
    if thread == 0:
        count[0] = np.int32(0)
    cuda.syncthreads()
    end = starts[here]
    stop_vector = np.int32((end + 15) >> 4)
    prefix = bounds[0]
    turn = np.int32(0)
    while turn < stop_vector:
    LOAD_AND_NOTE
        cuda.syncthreads()
        total = count[0]
        entry = thread
        while entry < total:
            note = np.int32(noted[entry])
            is_last = (note & 1) != 0
            vector = np.int32(turn + (note >> 1))
            FIND_NEAR
            is_last = is_last or parts == 1
            needle = bounds[parts - 1] if is_last else bounds[0]
            length = np.int32((bounds[parts] if is_last else bounds[1]) - needle)
            while near != np.uint32(0):
                place = Place((np.int64(vector) << 4) + (cuda.ffs(near) - 4))
                near &= np.uint32(near - np.uint32(1))
                k = np.int32(min(length, 4))
                fits = place >= 0 and place + length <= end
                while fits and k < length:
                    fits = chars[text + place + k] == pattern[needle + k]
                    k = np.int32(k + 1)
                if fits:
                    low, high = np.int32(0), here  # the last row that begins at or before this place
                    while high - low > 1:
                        middle = np.int32((low + high) >> 1)
                        if starts[middle] <= place:
                            low = middle
                        else:
                            high = middle
                    if place - starts[low] >= prefix and starts[low + 1] - place >= length + suffix:
                        if is_last:
                            cuda.atomic.max(latest, low, place)
                        if not is_last or parts == 1:
                            cuda.atomic.min(earliest, low, place)
            entry = np.int32(entry + {THREADS})
        cuda.syncthreads()
        turn = np.int32(turn + {TURN})
        if turn < stop_vector:
            if thread == 0:
                count[0] = np.int32(0)
            cuda.syncthreads()
    row = thread
    while row < here:
        begin, stop = starts[row], Place(starts[row + 1] - suffix)
        yes = Place(stop + suffix - begin) >= size
        if yes and nulls:
            bit = first_bit + first_row + row
            yes = (bits[bit >> 3] >> (bit & 7)) & 1 != 0
        at = earliest[row]
        if parts == 1:
            yes = yes and at != NOWHERE
        else:
            yes = yes and latest[row] - (bounds[1] - bounds[0]) >= at
        k = np.int32(0)
        while yes and k < prefix:
            yes = chars[text + begin + k] == pattern[k]
            k = np.int32(k + 1)
        k = np.int32(0)
        while yes and k < suffix:
            yes = chars[text + stop + k] == pattern[bounds[parts] + k]
            k = np.int32(k + 1)
        part = np.int32(1)
        if yes:
            at = Place(at + bounds[1] - bounds[0])
        while yes and part < parts - 1:
            needle = bounds[part]
            length = np.int32(bounds[part + 1] - needle)
            yes = False
            while not yes and at + length <= latest[row]:
                k = np.int32(0)
                while k < length and chars[text + at + k] == pattern[needle + k]:
                    k = np.int32(k + 1)
                yes = k == length
                at = Place(at + (length if yes else 1))
            part = np.int32(part + 1)
        out[first_row + row] = np.uint8(yes)
        row = np.int32(row + {THREADS})
"""
