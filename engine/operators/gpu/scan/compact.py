"""Long texts in fewer bytes, for the column cache: no kernel reads them, and operators get them back as they were.

Instead of offsets there are lengths, of a byte each where no text has more than 255; and a character takes no more bits than
the different ones need: six for English words, four for telephone numbers.  Both ways go at the speed of memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.cuda.accumulator_layout import WARP
from ....records import dataclass
from ....storage.columns.device_encode import UNSIGNED
from ....storage.columns.encodings import Array
from ..columns import INT32, INT64, TEXT, cast
from . import run_column_kernels

if TYPE_CHECKING:
    from rmm.pylibrmm.stream import Stream

WIDE_OFFSETS = (1 << 31) - 1  # characters from which libcudf's offsets to them have 8 bytes
BYTE_BITS = 8
BLOCK_BYTES = 1024  # that are packed together
MEASURES = 7  # what `text_measure` gives: the longest length, 256 bits for bytes that occur, first and last offset


@dataclass(frozen=True, eq=False)
class CompactText:
    """A column of strings; `lengths` has one more element, 0, than rows.

    `packed` holds `count` characters, `width` bits each, as `text_pack` lays them out, or at 8 bits as they are; `symbols` says
    which byte each number of `width` bits is.
    """

    rows: int
    nulls: int
    validity: Array | None
    lengths: plc.Column
    count: int
    width: int
    packed: DeviceBuffer
    symbols: DeviceBuffer | None

    @property
    def description(self) -> str:
        length = plc.types.size_of(self.lengths.type())
        return f"text length={length} bits={self.width}"

    @property
    def plain_bytes(self) -> int:
        """What the strings take as they are."""
        width = 4 if self.count < WIDE_OFFSETS else 8
        return self.count + width * (self.rows + 1) + self._bitmap_bytes

    @property
    def _bitmap_bytes(self) -> int:
        return plc.null_mask.bitmask_allocation_size_bytes(self.rows) if self.nulls else 0

    def size(self) -> int:
        return self.rows

    def null_count(self) -> int:
        return self.nulls

    def device_buffer_size(self) -> int:
        return int(self.lengths.device_buffer_size() + self.packed.size + self._bitmap_bytes)

    def plain(self, directory: Path) -> plc.Column:
        """Return the strings; kernels lie in `directory`."""
        offset = INT32 if self.count < WIDE_OFFSETS else INT64
        starts = plc.reduce.scan(
            cast(self.lengths, offset), plc.aggregation.sum(), plc.reduce.ScanType.EXCLUSIVE
        )
        characters = plc.gpumemoryview(self._characters(directory))
        return plc.Column(
            TEXT, self.rows, characters, self.validity, self.nulls, 0, [starts]
        )  # fmt: skip

    def _characters(self, directory: Path) -> DeviceBuffer:
        if self.symbols is None:
            return self.packed
        size = blocks(self.count) * BLOCK_BYTES
        made = DeviceBuffer(size=size, stream=plc.utils.CUDF_DEFAULT_STREAM)
        arguments = (self.count, self.width, self.symbols.ptr, self.packed.ptr, made.ptr)
        threads = blocks(self.count) * WARP
        run_column_kernels.run("text_unpack", threads, arguments, None, directory)
        return made


@dataclass(frozen=True)
class TextLayout:
    """How long texts are to be kept: bytes of a length, how many characters there are, and which bytes occur."""

    length_width: int
    count: int
    symbols: Array

    @property
    def width(self) -> int:
        """Bits of a character."""
        return max(1, (len(self.symbols) - 1).bit_length())


def layout(measured: Array) -> TextLayout | None:
    """Return how to keep texts of which `text_measure` found this; None where that takes no fewer bytes than they do."""
    longest, *seen, first, last = map(int, measured)
    bits = np.array(seen, np.int64).view(np.uint8)
    symbols = np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.uint8)
    width = 1 if longest < 1 << 8 else 2 if longest < 1 << 16 else 4
    found = TextLayout(width, last, symbols)
    if first != 0 or last == 0 or (width == 4 and found.width == BYTE_BITS):
        return None
    return found


def blocks(count: int) -> int:
    """How many blocks so many characters fill."""
    return -(-count // BLOCK_BYTES)


class Compacting:
    """A column on its way into fewer bytes: memory is taken first, then kernels run on a stream."""

    def __init__(self, column: plc.Column, how: TextLayout) -> None:
        stream = plc.utils.CUDF_DEFAULT_STREAM
        self._column, self._how = column, how
        rows = column.size() + 1
        self._lengths = DeviceBuffer(size=rows * how.length_width, stream=stream)
        whole = how.width == BYTE_BITS
        size = how.count if whole else blocks(how.count) * BLOCK_BYTES // BYTE_BITS * how.width
        self._packed = DeviceBuffer(size=size, stream=stream)
        self._symbols = None if whole else DeviceBuffer(size=1 << how.width, stream=stream)
        self._numbers = DeviceBuffer(size=256, stream=stream)

    def start(self, stream: Stream, directory: Path) -> None:
        """Launch what fills the memory."""
        how, column = self._how, self._column
        starts, characters = text_pointers(column), int(column.data().ptr)
        lengths = [self._lengths.ptr] * 3
        arguments = (*starts, how.length_width, *lengths)
        run_column_kernels.run("text_lengths", column.size() + 1, arguments, stream, directory)
        if self._symbols is None:
            self._packed.copy_from_device(_TextBytes(characters, how.count), stream)
            return
        numbers = np.zeros(256, np.uint8)
        numbers[how.symbols] = np.arange(len(how.symbols))
        symbols = np.zeros(1 << how.width, np.uint8)
        symbols[: len(how.symbols)] = how.symbols
        self._numbers.copy_from_host(numbers, stream)
        self._symbols.copy_from_host(symbols, stream)
        arguments = (how.count, how.width, self._numbers.ptr, characters, self._packed.ptr)
        threads = blocks(how.count) * WARP
        run_column_kernels.run("text_pack", threads, arguments, stream, directory)

    def finished(self, validity: Array | None) -> CompactText:
        """Return the column; what was launched has to be done when it is used."""
        column, how = self._column, self._how
        rows, nulls = column.size(), column.null_count()
        data = plc.gpumemoryview(self._lengths)
        lengths = plc.Column(UNSIGNED[how.length_width], rows + 1, data, None, 0, 0, [])
        return CompactText(
            rows, nulls, validity, lengths, how.count, how.width, self._packed, self._symbols
        )


@dataclass(frozen=True)
class _TextBytes:
    """Device memory as RMM copies from it."""

    pointer: int
    size: int

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {"data": (self.pointer, True), "shape": (self.size,), "typestr": "|u1", "version": 3}


def text_pointers(column: plc.Column) -> tuple[int, ...]:
    """Rows, whether offsets have 64 bits, and the offsets as kernels of either width take them."""
    offsets = column.child(0)
    starts = int(offsets.data().ptr)
    return column.size(), int(offsets.type().id() == plc.TypeId.INT64), starts, starts
