"""Hashes of many strings, and which strings are not what their hash says: by kernels (`handwritten.cpu.functions_texts_cpu`), until these are there by numpy.

To number a million addresses of 85 bytes, of which every fourth is different, takes 0.16 s of CPU time, and 0.25 where numpy hashes them and
Arrow copies the first string of each hash beside all rows to compare them (a busy machine); `FEW_HASHED` = inf switches the kernels off.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....codegen.compile.compiler import Signature
from ....plan.arrow.arrow_arrays import from_numpy
from ....records import dataclass
from ....storage.columns.encodings import Array
from ..handwritten_kernels import HandwrittenKernels, KernelsByName
from ..memory.chunks import each_chunk
from ..table import to_numpy
from .ordering import STEP

Ints = npt.NDArray[np.int64]

FEW_HASHED = 1 << 14  # which are hashed and compared soon enough
WORD_BYTES = 8
AT_ONCE = 64  # strings whose first ones are fetched together
BITS, HALF, ONES = np.uint64(8), np.uint64(32), np.uint64((1 << 64) - 1)


def _kernels(wide: bool) -> HandwrittenKernels:
    texts: Signature = [("text", "[uint8]"), ("offsets", "[int64]" if wide else "[int32]")]
    span: Signature = [("start", "int64"), ("stop", "int64")]
    numbers: Signature = [("codes", "[int64]"), ("firsts", "[int64]")]
    return HandwrittenKernels(
        "functions_texts_cpu.py",
        {
            "hash_texts": [*texts, *span, ("out", "[uint64]")],
            "find_others": [*texts, *numbers, *span, ("places", "[int64]"), ("others", "[int64]")],
        },
    )


HASHING = {wide: _kernels(wide) for wide in (False, True)}  # whether offsets have 64 bits


def hashes_of(strings: pa.Array) -> Ints:
    """Return numbers of the first, the last and the 8 bytes in the middle of strings: in a quarter of the time that all bytes take."""
    kernels, hashes = _at_hand(strings), np.empty(len(strings), np.uint64)
    if kernels is not None:
        text, offsets, hash_texts = *buffers_of(strings), kernels["hash_texts"]
        each_chunk(lambda a, b: hash_texts(text, offsets, a, b, hashes), len(strings))
        return hashes.view(np.int64)
    bytes_of = WordsOfText.of(strings)

    def chunk(start: int, stop: int) -> None:
        begin, end = bytes_of.ends[start:stop], bytes_of.ends[start + 1 : stop + 1]
        found = (end - begin).view(np.uint64)
        for at in (begin, (begin + end) >> 1, np.maximum(begin, end - WORD_BYTES)):
            found = (found ^ (found >> HALF) ^ bytes_of.words(at, end)) * STEP
        hashes[start:stop] = found

    each_chunk(chunk, len(strings))
    return hashes.view(np.int64)


def others(strings: pa.Array, codes: Ints, firsts: Ints) -> Ints:
    """Return the rows, in order, whose strings, none of which is NULL, differ from that of the first row of their code."""
    kernels = _at_hand(strings)
    if kernels is None:
        values = strings.take(from_numpy(firsts))

        def compare(start: int, stop: int) -> Ints:
            first = values.take(from_numpy(codes[start:stop]))
            same = to_numpy(pc.equal(strings.slice(start, stop - start), first))
            return start + np.flatnonzero(~same)

        return np.concatenate(each_chunk(compare, len(strings)))
    text, offsets, find_others = *buffers_of(strings), kernels["find_others"]

    def find(start: int, stop: int) -> Ints:
        places, rows = np.empty(AT_ONCE, np.int64), np.empty(stop - start, np.int64)
        return rows[: find_others(text, offsets, codes, firsts, start, stop, places, rows)]

    return np.concatenate(each_chunk(find, len(strings)))


def _at_hand(strings: pa.Array) -> KernelsByName | None:
    wide = pa.types.is_large_string(strings.type)
    return HASHING[wide].at_hand() if len(strings) > FEW_HASHED else None


def buffers_of(strings: pa.Array) -> tuple[Array, Array]:
    """Return the bytes of strings, and where each of them begins and the last one ends."""
    _, ends, text = strings.buffers()
    dtype = np.int64 if pa.types.is_large_string(strings.type) else np.int32
    offsets = np.frombuffer(ends, dtype)[strings.offset :][: len(strings) + 1]
    return np.frombuffer(text or b"", np.uint8), offsets


@dataclass(frozen=True)
class WordsOfText:
    """The bytes of strings, where each begins and ends, and the 8 bytes from each place on as one integer."""

    ends: Ints
    windows: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, strings: pa.Array) -> WordsOfText:
        _, offsets, text = strings.buffers()
        dtype = np.int64 if isinstance(strings, pa.LargeStringArray) else np.int32
        ends = np.frombuffer(offsets, dtype)[strings.offset : strings.offset + len(strings) + 1]
        content = np.frombuffer(text or b"", np.uint8)
        if len(content) < WORD_BYTES:
            content = np.append(content, np.zeros(WORD_BYTES, np.uint8))
        windows = np.ndarray((len(content) - WORD_BYTES + 1,), "<u8", content, strides=(1,))
        return cls(ends.astype(np.int64), windows)

    def words(self, at: Ints, end: Ints) -> npt.NDArray[np.uint64]:
        """Return 8 bytes from each place on, zeros behind the end; the first byte is the lowest."""
        place = np.minimum(at, len(self.windows) - 1)
        found = self.windows[place]
        found >>= np.minimum(at - place, WORD_BYTES - 1).astype(np.uint64) * BITS
        missing = np.clip(WORD_BYTES - (end - at), 0, WORD_BYTES)
        found &= np.where(missing < WORD_BYTES, ONES >> (missing.astype(np.uint64) * BITS), 0)
        return found
