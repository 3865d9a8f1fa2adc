"""CUDA kernels for LIKE: patterns of literal parts that are separated by %, over strings as Arrow lays them out.

By rows, each thread has a string of its own.  By blocks, each block of threads has some neighbouring strings, whose bytes it reads
in order, 16 a thread, whatever strings they belong to, and looks for one part alone, the longest one that may stand anywhere: where
some bytes look like those it begins with, the place is noted.  Then the threads look at all noted places together: which string it
is, whether the part is there, the parts before it as early as possible, and those behind it.  That decides it, since a string
matches if and only if that holds for one of the places.  Bytes are compared as they are: in UTF-8 no character begins inside another.
"""

from __future__ import annotations

import numpy as np

from ...plan.patterns import Literals
from ...records import dataclass

THREADS = 128
MOST_ROWS = 512  # of a block
LOADS = 4  # of 16 bytes each, that a thread has in flight
# 16-byte vectors that a block goes through at a time; it looks at what it noted when that is much, and in the end
TURN = LOADS * THREADS
# On an H200 blocks of 24 KB and 128 threads took 0.23 ms for 0.8 GB, of 14 KB and 256 threads 0.32
BLOCK_BYTES = 24 << 10
# A part of so many bytes has four in a row that begin at a multiple of four, wherever it lies
ALIGNED = 7
WORD = 8  # bytes
BYTES = 0x0101010101010101  # each byte of a word

Signature = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class LikeShape:
    """What a kernel's text depends on; patterns of one shape share a kernel.

    `blocks` says whether strings are looked at by blocks, and then `aligned` whether the part that is looked for is so long that
    aligned words find it.  `wide`: offsets have 64 bits.
    """

    blocks: bool
    aligned: bool = False
    wide: bool = False

    @property
    def name(self) -> str:
        way = f"blocks_{'aligned' if self.aligned else 'pairs'}" if self.blocks else "rows"
        return f"like_{way}{'_wide' if self.wide else ''}"


def searched(parts: Literals) -> int:
    """Return the number of the floating part that blocks look for in all bytes: the longest one."""
    lengths = [len(part) for part in parts.floating]
    return lengths.index(max(lengths))


def shape_of(parts: Literals, blocks: bool, wide: bool) -> LikeShape:
    """Return the shape of a pattern's kernel."""
    if not blocks or not parts.floating:
        return LikeShape(False, False, wide)
    return LikeShape(True, len(parts.floating[searched(parts)]) >= ALIGNED, wide)


def words(parts: Literals) -> list[np.generic]:
    """Return the arguments by which the searched part is noticed, as NumPy's numbers: `_word_parameters`."""
    part = parts.floating[searched(parts)]
    length = min(len(part), WORD)
    second, counts = (part[1], 2**64 - 1) if length > 1 else (0, 0)
    head = [int.from_bytes(part[:length], "little"), (1 << 8 * length) - 1]
    found: list[np.generic] = [
        np.uint64(w) for w in (*head, part[0] * BYTES, second * BYTES, counts)
    ]
    if len(part) >= ALIGNED:
        found += [np.uint32(int.from_bytes(part[i : i + 4], "little")) for i in range(4)]
    return found


def memory(parts: Literals) -> bytes:
    """Return the text of all parts, which kernels read by words, then from `bounds_at` on where the floating ones begin."""
    room = bounds_at(parts) - len(parts.text)
    return parts.text + bytes(room) + np.array(parts.bounds, np.int32).tobytes()


def bounds_at(parts: Literals) -> int:
    """Return where bounds begin in `memory`: behind the word after the one with the last byte."""
    return (len(parts.text) // WORD + 2) * WORD


def rows_a_block(rows: int, size: int) -> int:
    """Return how many strings make a block's share, when `rows` of them have `size` bytes."""
    return min(max(BLOCK_BYTES * rows // max(size, 1), 1), MOST_ROWS)


def signature(shape: LikeShape) -> Signature:
    """Name and Numba type of each parameter, in order.

    Positions count from `vectors`, the address of a multiple of 16 bytes at or before the characters, which begin `shift` bytes
    after it.  `offsets` begin with that of row 0; its bit is number `first_bit` of `bits`, which are not read unless `nulls`.
    `pattern` and `bounds` lie in `memory`.
    """
    found = [("rows", "int64")]
    if shape.blocks:
        found += [("group", "int64"), ("lead", "int32")]
    found += [("vectors", "*uint64"), ("chars", "*uint8"), ("shift", "int64")]
    found.append(("offsets", "*int64" if shape.wide else "*int32"))
    found += [("bits", "*uint8"), ("first_bit", "int64"), ("nulls", "int64")]
    found += [("pattern", "*uint64"), ("letters", "*uint8"), ("bounds", "*int32")]
    found += [("parts", "int32"), ("size", "int32"), ("suffix", "int32"), ("out", "*uint8")]
    return found + _word_parameters(shape)


def _word_parameters(shape: LikeShape) -> Signature:
    """The first 8 bytes of a part and their mask, its first and its second byte repeated, which bits of the second count; words at places 0 to 3."""
    if not shape.blocks:
        return []
    found = [(n, "uint64") for n in ("head", "head_mask", "byte0", "byte1", "mask1")]
    return found + [(f"word{i}", "uint32") for i in range(4) if shape.aligned]
