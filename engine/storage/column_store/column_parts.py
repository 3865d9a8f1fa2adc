"""A column put together of parts of its rows that are encoded one after the other: they lie in files, so that memory has one part at a time,
or in memory of the host for the sake of a device, which has less.

Each part has the narrowest form of its own rows.  The form of all follows from theirs: the least and the greatest value, the common step,
the values of all dictionaries; codes are then written anew, a block at a time.  Text that has no codes in some part is text in all.
"""

from __future__ import annotations

import math
import mmap
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...plan.arrow.arrow_arrays import array_from, bits_of
from ...plan.types import DataType, Kind
from ..columns import encodings as enc
from ..columns.encode import encode, largest_dictionary, with_order
from .column_file import StoredColumn

BUFFER_BYTES = 1 << 20
ROWS_TOGETHER = 16  # as one row of a block, so that threads that write memory meet less often
MOST_TEXT = (1 << 31) - 1  # bytes, as far as offsets of 32 bits reach
Convert = Callable[[enc.Array], enc.Array]
Allocate = Callable[[int], enc.Array]  # bytes of memory


class ColumnParts:
    """The parts of a column so far: files that are open within a `with`; what was made of them stays mapped.

    With a function in the place of a folder they lie in memory, and codes of all in that which it gives for so many bytes; texts stay in
    the arrays that were added.
    All methods raise `OSError`.
    """

    def __init__(self, place: Path | Allocate, data_type: DataType) -> None:
        self._place, self._type = place, data_type
        self._parts: list[enc.EncodedColumn] = []
        self._open = ExitStack()
        self._codes = _File(place, self._open) if isinstance(place, Path) else None
        self._texts: _TextParts | _TextsInMemory | None = None

    def __enter__(self) -> ColumnParts:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def add(self, rows: pa.Array | enc.EncodedColumn, threads: int) -> bool:
        """Append rows; False where nothing can be made of all of them together: neither text nor what has codes."""
        if self._texts is None:
            encoded = (
                rows if isinstance(rows, enc.EncodedColumn) else encode(rows, self._type, threads)
            )
            if encoded is not None:
                encoded = encoded.flat()
                if self._codes is not None:
                    self._codes.write(encoded.codes)
                    encoded = replace(encoded, codes=None)
                self._parts.append(encoded)
                return True
        if self._type.kind is not Kind.VARCHAR:
            return False
        return self._as_texts().add(_texts_of(rows))

    def whole(self, threads: int) -> StoredColumn | None:
        """Return the column of all rows, over files that have no name; None where nothing can be made of them together."""
        if self._texts is not None:
            return StoredColumn(self._texts.whole(), refused=True)
        coded = [part for part in self._parts if isinstance(part.encoding, enc.Dictionary)]
        if coded:
            values = _values_of_all(coded)
            if len(values) > largest_dictionary(self._rows):
                texts = self._as_texts()
                return None if texts.is_full else StoredColumn(texts.whole(), refused=True)
            form = enc.Dictionary(values, enc.code_width(len(values)))
            return self._made(replace(self._parts[0], encoding=form), threads)
        first = self._parts[0]
        if first.encoding.is_float:
            return self._made(first, threads)
        lows = [part.low for part in self._parts if part.low is not None]
        highs = [part.high for part in self._parts if part.high is not None]
        if not lows:
            return self._made(replace(first, encoding=enc.TRUTHS, low=None, high=None), threads)
        low, high = min(lows), max(highs)
        step = math.gcd(
            *(part.encoding.step for part in self._parts if part.low != part.high),
            *(number - low for number in (*lows, *highs)),
        )
        narrow = enc.narrow_for(low, high, enc.useful_step(low, high, step or 1))
        return self._made(replace(first, encoding=narrow, low=low, high=high), threads)

    @property
    def _rows(self) -> int:
        return sum(part.rows for part in self._parts)

    def _as_texts(self) -> _TextParts | _TextsInMemory:
        """Have all rows as text from now on."""
        if self._texts is None:
            if isinstance(self._place, Path):
                self._texts = _TextParts(self._place, self._open)
            else:
                self._texts = _TextsInMemory()
            for part in self._stored():
                self._texts.add(_texts_of(part))
        return self._texts

    def _stored(self) -> Iterator[enc.EncodedColumn]:
        """Yield the parts with their codes."""
        if self._codes is None:
            yield from self._parts
            return
        data, start = self._codes.buffer(), 0
        for part in self._parts:
            codes = np.frombuffer(data, part.encoding.code_type, part.rows, start)
            yield replace(part, codes=codes)
            start += codes.nbytes

    def _made(self, form: enc.EncodedColumn, threads: int) -> StoredColumn:
        """Return all rows in one form, that of `form`."""
        in_file = isinstance(self._place, Path)
        data = self._codes_in_file(form) if in_file else self._codes_in_memory(form, threads)
        nulls = sum(part.nulls for part in self._parts)
        rows = self._rows
        column = replace(
            form,
            rows=rows,
            codes=np.frombuffer(data, form.encoding.code_type, rows),
            validity=np.frombuffer(_bits_of_all(self._parts), np.uint8) if nulls else None,
            nulls=nulls,
        )
        return StoredColumn(with_order(column, threads))

    def _codes_in_file(self, form: enc.EncodedColumn) -> pa.Buffer:
        assert isinstance(self._place, Path)
        codes = _File(self._place, self._open)
        for part in self._stored():
            convert = _conversion(part, form)
            for start in range(0, part.rows, enc.BLOCK):
                block = _converted(part, convert, slice(start, min(start + enc.BLOCK, part.rows)))
                codes.write(block.astype(form.encoding.code_type, copy=False))
        return codes.buffer()

    def _codes_in_memory(self, form: enc.EncodedColumn, threads: int) -> enc.Array:
        assert not isinstance(self._place, Path)
        data = self._place(self._rows * form.encoding.width)
        codes, first = data.view(form.encoding.code_type), 0
        for place, part in enumerate(self._parts):
            own, convert = codes[first : first + part.rows], _conversion(part, form)

            def write(
                blocks: slice,
                part: enc.EncodedColumn = part,
                convert: Convert = convert,
                own: enc.Array = own,
            ) -> None:
                rows = slice(
                    blocks.start * ROWS_TOGETHER, min(blocks.stop * ROWS_TOGETHER, part.rows)
                )
                own[rows] = _converted(part, convert, rows)

            enc.each_block(-(-part.rows // ROWS_TOGETHER), threads, write)
            first += part.rows
            # Let go of, so that all codes are not there twice
            self._parts[place] = replace(part, codes=None)
            del part, write
        return data


class _File:
    """Bytes that are written behind one another and then mapped; the file has no name."""

    def __init__(self, folder: Path, open_files: ExitStack) -> None:
        made = tempfile.TemporaryFile(dir=folder, buffering=BUFFER_BYTES)  # noqa: SIM115  until all are closed
        self._file: IO[bytes] = open_files.enter_context(made)
        self.size = 0

    def write(self, values: enc.Array) -> None:
        self._file.write(np.ascontiguousarray(values).view(np.uint8).data)
        self.size += values.nbytes

    def buffer(self) -> pa.Buffer:
        self._file.flush()
        if not self.size:
            return pa.py_buffer(b"")
        return pa.py_buffer(mmap.mmap(self._file.fileno(), self.size, prot=mmap.PROT_READ))


class _TextsInMemory:
    """Texts as they came, which stay where they are."""

    is_full = False

    def __init__(self) -> None:
        self._parts: list[pa.Array] = []

    def add(self, array: pa.Array) -> bool:
        self._parts.append(array)
        return True

    def whole(self) -> pa.ChunkedArray:
        return pa.chunked_array(self._parts, pa.string())


class _TextParts:
    """Texts behind one another; `is_full` once there are too many."""

    def __init__(self, folder: Path, open_files: ExitStack) -> None:
        self._ends, self._data = _File(folder, open_files), _File(folder, open_files)
        self._ends.write(np.zeros(1, np.int32))
        self._valid: list[pa.Array] = []
        self.is_full = False

    def add(self, array: pa.Array) -> bool:
        wide = np.int64 if pa.types.is_large_string(array.type) else np.int32
        _, offsets, data = array.buffers()
        if len(array):
            ends = np.frombuffer(offsets, wide)[array.offset : array.offset + len(array) + 1]
            self.is_full |= self._data.size + int(ends[-1] - ends[0]) > MOST_TEXT
            if self.is_full:
                return False
            self._ends.write((ends[1:] - ends[0] + self._data.size).astype(np.int32))
            if ends[-1] > ends[0]:
                self._data.write(np.frombuffer(data, np.uint8)[int(ends[0]) : int(ends[-1])])
        self._valid.append(array.is_valid())
        return True

    def whole(self) -> pa.Array:
        valid = pa.concat_arrays([array_from([], pa.bool_()), *self._valid])
        nulls = len(valid) - valid.true_count
        buffers = [valid.buffers()[1] if nulls else None, self._ends.buffer(), self._data.buffer()]
        return pa.Array.from_buffers(pa.string(), len(valid), buffers, nulls)


def _texts_of(rows: pa.Array | enc.EncodedColumn) -> pa.Array:
    if isinstance(rows, enc.EncodedColumn):
        rows = rows.encoding.decode(enc.codes_of(rows), pa.string())
    return rows.dictionary_decode() if pa.types.is_dictionary(rows.type) else rows


def _converted(part: enc.EncodedColumn, convert: Convert, rows: slice) -> enc.Array:
    """Return codes of some rows of a part, from a multiple of 8 on, in the form of all; that of a NULL is 0."""
    block = convert(part.codes[rows])
    if part.validity is None:
        return block
    bits = part.validity[rows.start // 8 : (rows.stop + 7) // 8]
    return np.where(bits_of(bits, 0, len(block)), block, 0)


def _conversion(part: enc.EncodedColumn, form: enc.EncodedColumn) -> Convert:
    """Return what makes codes of a part to codes of a form."""
    own, target = part.encoding, form.encoding
    if isinstance(target, enc.Dictionary):
        assert own.values is not None
        if not len(own.values):
            return np.zeros_like
        places = pc.index_in(own.values, target.values)
        table = enc.numbers(places).astype(target.code_type)
        return lambda codes: np.take(table, codes)
    if not isinstance(target, enc.Narrow) or part.low is None or own == target:
        return lambda codes: codes
    base = target.base if target.width < 8 else 0
    if part.low == part.high:  # whose step says nothing
        only = np.array((part.low - base) // target.step % 2**64, np.uint64)
        return lambda codes: np.full(len(codes), only)
    # Right modulo 2**64, whatever the signs
    times, plus = (
        np.array(number % 2**64, np.uint64)
        for number in (own.step // target.step, (own.base - base) // target.step)
    )
    return lambda codes: codes.astype(np.uint64) * times + plus


def _values_of_all(parts: list[enc.EncodedColumn]) -> pa.Array:
    """Return the values of some dictionaries, sorted."""
    known = (part.encoding.values for part in parts)
    arrays = [values.cast(pa.string()) for values in known if values is not None]
    values = pa.chunked_array(arrays).unique()
    return values.take(pc.sort_indices(values))


def _bits_of_all(parts: list[enc.EncodedColumn]) -> pa.Buffer:
    """Return the bitmap of all rows."""
    every = [array_from([], pa.bool_())]
    for part in parts:
        bits = part.validity
        if bits is None:
            bits = np.full(-(-part.rows // 8), 255, np.uint8)
        every.append(pa.Array.from_buffers(pa.bool_(), part.rows, [None, pa.py_buffer(bits)]))
    return pa.concat_arrays(every).buffers()[1]
