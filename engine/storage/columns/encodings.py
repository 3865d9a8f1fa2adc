"""The narrow forms in which columns lie in memory for kernels.

`Narrow` keeps integers (and decimals, dates, timestamps, truth values) as base + step * code in 1, 2 or 4 bytes, or as they are in
8; `Dictionary` keeps strings as codes of sorted values, so that order and equality of codes are those of the strings;
`Plain` keeps floats.  NULLs are a bitmap as in Arrow, present only when there are any; the code of a NULL is 0.

What an encoding is stands in its class, which all readers ask: kernels, the host, the device.  To measure columns and to choose
theirs is the part of `encode.py`, and of `device_encode.py` on the device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...plan.arrow.arrow_arrays import truth_values
from ...plan.arrow.values_type import values_type
from ...plan.types import DataType, Kind
from ...records import dataclass
from ...threads.together import together

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable


T = TypeVar("T")
Array: TypeAlias = npt.NDArray[Any]  # of registers, codes, row numbers: who has it knows of what
BLOCK = 1 << 15  # rows, a multiple of 8: 256 kB of int64
PADDING = 64  # bytes: kernels load whole words, which must not leave the buffer
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def each_block(rows: int, threads: int, work: Callable[[slice], T]) -> list[T]:
    """Return what `work` makes of each block of rows; where there are few, each thread has as many of them."""
    count = -(-rows // BLOCK)
    if threads < 2 or count < 2 * threads:
        threads, size = 1, BLOCK
    else:
        size = -(-rows // (-(-count // threads) * threads * 8)) * 8
    blocks = [slice(at, min(at + size, rows)) for at in range(0, rows, size)]
    return together(work, blocks, threads)


# Both halves of 128 bits.  Not "2i8": NumPy reads that with Python's parser, which in Python 3.11 fails now and then in two threads at once
LIMBS = np.dtype((np.int64, 2))


def values_of(array: pa.Array, numpy_type: npt.DTypeLike) -> Array:
    """The values buffer as NumPy sees it, without a copy; what lies under NULLs is anything."""
    item, data = np.dtype(numpy_type), array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), item)
    return np.frombuffer(data, item, len(array), array.offset * item.itemsize)


def numbers(array: pa.Array) -> Array:
    """The numbers of an array without NULL; Arrow's and NumPy's own ways import pandas."""
    if pa.types.is_boolean(array.type):
        return truth_values(array)
    return values_of(array, values_type(array.type))


def zeros(rows: int, numpy_type: npt.DTypeLike) -> Array:
    """An array of zeros at the start of a buffer of a multiple of `PADDING` bytes."""
    item = np.dtype(numpy_type).itemsize
    count = -(-rows * item // PADDING) * PADDING // item
    return np.zeros(count, numpy_type)[:rows]


FEW_ROWS = 64  # up to which a wide interval costs nothing: no table is made of it
# Rows of one value in a clustered column: whoever looks for them goes through the rows around one, until the value is another
MOST_ALIKE = 64


class PlaceTerms(Protocol[T]):
    """Terms of a kernel that reads a row's code, all of them 64-bit integers."""

    def element(self, ending: str, place: T) -> T:
        """Return an element of the array that is called as the column, with this ending."""
        ...

    def apply(self, operator: str, left: T | int, right: T | int) -> T:
        """Return what an infix operator makes of two."""
        ...


class Encoding(ABC):
    """How values lie: as codes of `width` bytes, which are `values[code]`, a sorted Arrow array, or `base + step * code`.

    Each row has a code of its own, but where `arrays`, `place`, `row_codes` and `flat` say otherwise.
    """

    width: int
    base: int = 0
    step: int = 1
    values: pa.Array | None = None
    is_float = False

    def count(self, high: int | None) -> int | None:
        """Return how many different codes there may be, `high` being the highest value; None where values are codes."""
        return None

    @property
    def form(self) -> Hashable:
        """What kernels are made for: all but the values of a dictionary."""
        return type(self), self.width, self.base, self.step

    @property
    def arrays(self) -> tuple[tuple[str, str], ...]:
        """What kernels read besides a bitmap: arrays by what follows the column's name in theirs, and the NumPy types of elements."""
        return (("", self.code_type.name),)

    @property
    def flat(self) -> Encoding:
        """The encoding with a code for each row."""
        return self

    def place(self, row: T, terms: PlaceTerms[T]) -> T:
        """Return where in the first array a kernel finds the code of a row."""
        return row

    def row_codes(self, column: EncodedColumn, rows: slice) -> Array:
        """Return the codes of a column's rows on the host, one for each."""
        return column.codes[rows]

    @property
    def code_type(self) -> np.dtype[np.integer]:
        """The type of codes: unsigned, but for values as they are."""
        return np.dtype(f"{'f' if self.is_float else 'u' if self.width < 8 else 'i'}{self.width}")

    def registers(self, codes: Array) -> Array:
        """Return what NumPy codes stand for: integers as in registers, floats, places in `values`."""
        return codes

    @abstractmethod
    def decode(self, codes: pa.Array, arrow_type: pa.DataType, threads: int = 1) -> pa.Array:
        """Return the values of all or some of a column's codes (`codes_of`) in the CPU backend's physical form, an `arrow_type`."""


@dataclass(frozen=True, slots=True)
class Narrow(Encoding):
    """value = base + step * code; with `width` 8 the code is the value itself, signed, with base 0 and step 1."""

    base: int = field()
    step: int = field()
    width: int

    def __str__(self) -> str:
        return f"narrow base={self.base} step={self.step} width={self.width}"

    def count(self, high: int | None) -> int | None:
        if self.width == 8:
            return None
        return 1 if high is None else (high - self.base) // self.step + 1

    def registers(self, codes: Array) -> Array:
        numbers = codes.astype(np.int64, copy=False)
        return numbers if (self.base, self.step) == (0, 1) else numbers * self.step + self.base

    def decode(self, codes: pa.Array, arrow_type: pa.DataType, threads: int = 1) -> pa.Array:
        if self.width == 8 and arrow_type.bit_width == 64:
            return codes.view(arrow_type)
        # What lies under NULLs becomes the base
        wide = arrow_type.bit_width == 128
        item = UNSIGNED[8 if wide else max(1, arrow_type.bit_width // 8)]
        raw = values_of(codes, UNSIGNED[self.width])
        values: Array = np.empty((len(raw), 2) if wide else len(raw), item)
        # Right modulo the type's size, whatever the signs
        size = 1 << 8 * values.itemsize
        base, step = item(self.base % size), item(self.step % size)

        def of_block(rows: slice) -> None:
            block = raw[rows].astype(item) if wide else values[rows]
            if not wide:
                block[:] = raw[rows]
            if self.step != 1:
                block *= step
            if self.base:
                block += base
            if wide:  # 128 bits, while they are in a core's cache
                values[rows, 0] = block
                np.right_shift(block.view(np.int64), 63, out=values[rows, 1].view(np.int64))

        each_block(len(raw), threads, of_block)
        data = np.packbits(values, bitorder="little") if arrow_type.bit_width == 1 else values
        buffers = [_bitmap(codes), pa.py_buffer(data)]
        return pa.Array.from_buffers(arrow_type, len(codes), buffers, codes.null_count)


@dataclass(frozen=True, slots=True)
class Dictionary(Encoding):
    """An index into `values`, a sorted Arrow array of different strings; decoded, a dictionary of Arrow's."""

    values: pa.Array = field(repr=False)
    width: int

    def __str__(self) -> str:
        return f"dictionary values={len(self.values)} width={self.width}"

    def count(self, high: int | None) -> int | None:
        return max(len(self.values), 1)

    def decode(self, codes: pa.Array, arrow_type: pa.DataType, threads: int = 1) -> pa.Array:
        if not len(self.values):
            return pa.nulls(len(codes), self.values.type)
        return pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), self.values, safe=False)


@dataclass(frozen=True, slots=True)
class Plain(Encoding):
    """A float of `width` bytes as it is."""

    width: int
    is_float = True

    def __str__(self) -> str:
        return f"plain width={self.width}"

    def decode(self, codes: pa.Array, arrow_type: pa.DataType, threads: int = 1) -> pa.Array:
        return codes


REGISTER, TRUTHS = Narrow(0, 1, 8), Narrow(0, 1, 1)


@dataclass(eq=False)
class EncodedColumn:
    """A column for kernels, on the host (NumPy arrays) or on the device (buffers), with what was measured of it.

    `codes` has `rows` elements of `encoding.width` bytes, in a buffer padded to `blocks.PADDING`; `validity` is a bitmap, least
    significant bit first, or None without NULLs.  `low` and `high` are the extremes of the valid values, integers as in
    registers (unscaled, days, microseconds), None for floats, strings and columns of NULLs alone.  `ascending`: there are rows and
    no NULLs, and each value is greater than the one before (False: that is not known); `clustered` that no value is less than the one
    before, and none is that of more than `MOST_ALIKE` rows, as in a table that lies in the order of a foreign key.  `others` are what an
    encoding keeps besides where not each row has a code.
    """

    type: DataType
    encoding: Encoding
    rows: int
    codes: Any = field(repr=False)  # a NumPy array, or memory of the device
    validity: Any = field(repr=False)
    nulls: int
    low: int | None = None
    high: int | None = None
    ascending: bool = False
    clustered: bool = False
    others: tuple[Array, ...] = field(default=(), repr=False)

    @property
    def nbytes(self) -> int:
        """The bytes of codes and of the bitmap, without padding."""
        bitmap = 0 if self.validity is None else -(-self.rows // 8)
        if self.others:
            return sum(array.nbytes for array in (self.codes, *self.others)) + bitmap
        return self.rows * self.encoding.width + bitmap

    @cached_property
    def arrays(self) -> tuple[Array, ...]:
        """What kernels read of a column on the host: the arrays of its encoding, and the bitmap where there are NULLs."""
        bitmap = () if self.validity is None else (self.validity,)
        return (self.codes, *self.others, *bitmap)

    def flat(self) -> EncodedColumn:
        """Return a column on the host with a code for each row."""
        if not self.others:
            return self
        codes = self.encoding.row_codes(self, slice(None))
        return replace(self, encoding=self.encoding.flat, codes=codes, others=())

    def of_rows(self, ranges: Iterable[tuple[int, int]]) -> EncodedColumn:
        """Return the rows from each first to before its last of a column on the host: over the same codes where that is one range.

        The encoding and the extremes stay those of all rows.
        """
        whole = codes_of(self)
        parts = [whole.slice(first, end - first) for first, end in ranges]
        codes = parts[0] if len(parts) == 1 else pa.concat_arrays([whole.slice(0, 0), *parts])
        rows, bitmap = len(codes), _bitmap(codes)
        return replace(
            self,
            encoding=self.encoding.flat,
            others=(),
            rows=rows,
            codes=values_of(codes, self.encoding.flat.code_type),
            validity=None if bitmap is None else np.frombuffer(bitmap, np.uint8, -(-rows // 8)),
            nulls=codes.null_count,
            ascending=self.ascending and rows > 0,
            clustered=self.clustered and rows > 0,
        )

    @property
    def may_be_clustered(self) -> bool:
        """Whether there are integers enough between the extremes for the rows not to repeat too often."""
        if not self.rows or self.nulls or self.others or self.low is None or self.high is None:
            return False
        return (self.high - self.low) // self.encoding.step >= (self.rows - 1) // MOST_ALIKE


def fixed_encoding(data_type: DataType) -> Encoding | None:
    """Return the encoding of floats, and of truth values whichever occur; None for types of which values are looked at."""
    if data_type.is_float:
        return Plain(4 if data_type.kind is Kind.FLOAT else 8)
    return TRUTHS if data_type.kind is Kind.BOOLEAN else None


def narrow_for(low: int, high: int, step: int) -> Narrow:
    """Return the narrowest encoding of the integers low, low + step, ... high."""
    last = (high - low) // step
    for width in (1, 2, 4):
        if last < 1 << 8 * width:
            return Narrow(low, step, width)
    return REGISTER


def useful_step(low: int, high: int, step: int) -> int:
    """Return `step`, or 1 where codes with it are no narrower: it would only have to be checked, divided and multiplied by."""
    narrower = narrow_for(low, high, step).width < narrow_for(low, high, 1).width
    return step if narrower else 1


def rounded(bounds: tuple[int, int], rows: int | None = None) -> tuple[int, int]:
    """Return an interval that does not depend on each single value: from 0 or a power of two to another.

    A kernel made for one run of a query then fits the next one, whose rows are others.  Of few `rows` any interval will do.
    """
    step, (low, high) = 8 if rows is not None and rows <= FEW_ROWS else 1, bounds
    first = -_power_above(-low - 1, step) if low < 0 else 0
    return first, _power_above(high, step) - 1 if high > 0 else 0


def _power_above(size: int, step: int) -> int:
    """Return a power of two, of a multiple of `step` or of 63, that is above a size."""
    bits = -(-size.bit_length() // step) * step
    return (1 << (bits if bits < 63 else 63)) if size < 1 << 63 else 1 << 64


def likely_step(sample: Array, low: int, high: int) -> int:
    """Return the greatest number that divides the differences of some integers from the lowest, if it makes codes narrower, else 1."""
    if high - low >= 1 << 63 or narrow_for(low, high, 1).width == 1:
        return 1
    step = int(np.gcd.reduce(sample.astype(np.int64) - low, initial=0)) or high - low
    return useful_step(low, high, step)


def code_width(count: int) -> int:
    """Bytes of a code with `count` different values."""
    return 1 if count <= 1 << 8 else 2 if count <= 1 << 16 else 4


def codes_of(column: EncodedColumn) -> pa.Array:
    """Return a column's codes with its NULLs, over the same buffers where each row has one."""
    column = column.flat()
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(column.codes.dtype),
        column.rows,
        [validity, pa.py_buffer(column.codes)],
        column.nulls,
    )


def _bitmap(codes: pa.Array) -> pa.Buffer | None:
    """The validity of an array, from bit 0 on."""
    if not codes.null_count:
        return None
    if codes.offset % 8 == 0:
        return codes.buffers()[0].slice(codes.offset // 8)
    return pa.py_buffer(np.packbits(truth_values(codes.is_valid()), bitorder="little"))
