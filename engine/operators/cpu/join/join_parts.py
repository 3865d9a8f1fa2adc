"""The sides of a join that does not fit into memory: cut into parts by their keys, and put together again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....plan.arrow.arrow_arrays import array_from
from ....plan.arrow.arrow_types import is_bytes
from ....plan.expr import Column
from ....storage.columns.agreement import is_common
from ...spill_area import SpilledPiece
from ...spilling import PARTS
from .. import table as tables
from ..memory.chunks import each_chunk
from ..nested_arrays import Lists, fields_of
from ..sort.keys import image_values, is_string, wide_decimal_values
from ..table import Table, concat_arrays, decode, physical_type, to_numpy, validity

Hashes = npt.NDArray[np.uint64]

# Of a side, cut at a time: cutting takes four times as much, which nobody asks for, since it is to make room
PIECE_BYTES = 32 << 20
BYTES_A_BLOCK = 1 << 16  # of strings that are hashed at a time, which takes forty times as many
# Odd, so that multiplying by them loses no bit; the second is the inverse of the first modulo 2^64
STEP = 0x9E3779B97F4A7C15
BACK = pow(STEP, -1, 1 << 64)
SHIFT = np.uint64(32)


def parted(
    table: Table, keys: Sequence[Column], columns: Sequence[Column]
) -> Iterator[SpilledPiece]:
    """Yield the rows of a table, some at a time, in the order of their parts; an empty table as one piece."""
    size = sum(table[c].nbytes for c in columns)
    step = max(1, table.num_rows * PIECE_BYTES // max(1, size))
    for start in range(0, max(1, table.num_rows), step):
        rows = tables.slice(table, start, step)
        numbers = part_numbers([rows[key] for key in keys])
        order = np.argsort(numbers, kind="stable")
        ordered = tables.take(rows, order, columns)
        arrays = [_without_unused(ordered[c]) for c in columns]
        batch = pa.RecordBatch.from_arrays(arrays, [str(c.id) for c in columns])
        counts = np.bincount(numbers, minlength=PARTS)
        yield SpilledPiece(batch, [0, *np.cumsum(counts).tolist()])


def piece_of(table: Table, bounds: Sequence[int], columns: Sequence[Column]) -> SpilledPiece:
    """Return a table whose rows lie in the order of parts already."""
    arrays = [_without_unused(table[c]) for c in columns]
    return SpilledPiece(pa.RecordBatch.from_arrays(arrays, [str(c.id) for c in columns]), bounds)


def unparted(rows: Sequence[pa.RecordBatch], columns: Sequence[Column]) -> Table:
    """Return rows of pieces as a table."""
    filled = [batch for batch in rows if batch.num_rows]
    if not filled:
        return Table({c.id: array_from([], physical_type(c.type)) for c in columns}, 0)
    arrays = {c.id: concat_arrays([b.column(i) for b in filled]) for i, c in enumerate(columns)}
    return Table(arrays, sum(batch.num_rows for batch in filled))


def part_numbers(keys: Sequence[pa.Array]) -> npt.NDArray[np.uint8]:
    """Return the part of each row: the same for keys that are equal in SQL, 0 where one of them is NULL."""
    if any(pa.types.is_dictionary(key.type) for key in keys):  # whose entries are hashed once
        return _numbers(keys)
    count = len(keys[0])
    numbers = np.empty(count, np.uint8)

    def chunk(start: int, stop: int) -> None:
        numbers[start:stop] = _numbers([key.slice(start, stop - start) for key in keys])

    each_chunk(chunk, count)
    return numbers


def _numbers(keys: Sequence[pa.Array]) -> npt.NDArray[np.uint8]:
    hashes = np.zeros(len(keys[0]), np.uint64)
    for key in keys:
        for values in _hashed(key):
            hashes = _mixed(hashes ^ values)
    numbers = (hashes >> np.uint64(64 - PARTS.bit_length() + 1)).astype(np.uint8)
    for valid in map(validity, keys):
        if valid is not None:
            numbers[~valid] = 0
    return numbers


def _hashed(key: pa.Array) -> list[Hashes]:
    """Return numbers that are equal for equal values, arbitrary ones for NULL."""
    if is_string(key) or is_bytes(key.type):
        return [_string_hashes(key)]
    if pa.types.is_nested(key.type):
        return [_nested_hashes(key)]
    decimal = pa.types.is_decimal(key.type)
    images = wide_decimal_values(key) if decimal else image_values(key)
    return [values.astype(np.int64).view(np.uint64) for values in images]


def _nested_hashes(key: pa.Array) -> Hashes:
    """Return hashes of what lists and structs have inside, where NULL is a value."""
    if pa.types.is_struct(key.type):
        hashes = np.zeros(len(key), np.uint64)
        for inside in fields_of(key):
            hashes = _mixed(hashes ^ _with_null(inside))
        return hashes
    lists = Lists.of(key)
    at_places = _mixed(_with_null(lists.elements) ^ _mixed(lists.places.view(np.uint64)))
    hashes = lists.lengths.view(np.uint64).copy()
    np.add.at(hashes, lists.rows, at_places)
    return hashes


def _with_null(inside: pa.Array) -> Hashes:
    hashes = np.zeros(len(inside), np.uint64)
    for values in _hashed(inside):
        hashes = _mixed(hashes ^ values)
    valid = validity(inside)
    return hashes if valid is None else np.where(valid, hashes, np.uint64(1))


def _mixed(hashes: Hashes) -> Hashes:
    hashes = (hashes ^ (hashes >> SHIFT)) * np.uint64(STEP)
    return (hashes ^ (hashes >> SHIFT)) * np.uint64(BACK)


def _string_hashes(key: pa.Array) -> Hashes:
    if pa.types.is_dictionary(key.type):
        entries = _string_hashes(key.dictionary)
        if not len(entries):
            return np.zeros(len(key), np.uint64)
        codes = to_numpy(key)
        valid = validity(key.indices)
        return entries[codes if valid is None else np.where(valid, codes, 0)]
    ends, text = _text_of(key)
    marks = np.arange(ends[0], ends[-1] + BYTES_A_BLOCK, BYTES_A_BLOCK)
    bounds = np.unique([0, *np.searchsorted(ends, marks), len(key)])
    blocks = [_block_hashes(ends[a : b + 1], text) for a, b in pairwise(bounds.tolist())]
    return np.concatenate(blocks) if blocks else np.zeros(0, np.uint64)


def _text_of(strings: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return where strings begin and end in their bytes, and these."""
    if pa.types.is_fixed_size_binary(strings.type):
        strings = strings.cast(pa.binary())
    wide = pa.types.is_large_string(strings.type)
    dtype: npt.DTypeLike = np.int64 if wide else np.int32
    _, offsets, text = strings.buffers()
    if not len(strings):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    first = strings.offset * np.dtype(dtype).itemsize
    ends = np.frombuffer(offsets, dtype, len(strings) + 1, first).astype(np.int64)
    return ends, np.frombuffer(text or b"", np.uint8)


def _block_hashes(ends: npt.NDArray[np.int64], text: npt.NDArray[np.uint8]) -> Hashes:
    """Return polynomials of the strings' bytes: differences of running sums, divided by what their first byte was multiplied by."""
    begin, end = int(ends[0]), int(ends[-1])
    if end == begin:
        return np.zeros(len(ends) - 1, np.uint64)
    if end - begin > 2 * BYTES_A_BLOCK:  # then the last string is long
        return np.append(
            _block_hashes(ends[:-1], text), _long_hash(int(ends[-2]), int(ends[-1]), text)
        )
    ends = ends - begin
    powers = np.full(end - begin, STEP, np.uint64).cumprod()
    sums = np.zeros(end - begin + 1, np.uint64)
    np.cumsum((text[begin:end] + np.uint64(1)) * powers, out=sums[1:])
    back = np.full(end - begin + 1, BACK, np.uint64).cumprod()
    return (sums[ends[1:]] - sums[ends[:-1]]) * back[ends[:-1]]


def _long_hash(begin: int, end: int, text: npt.NDArray[np.uint8]) -> Hashes:
    """Return the same of one string, of which each block's polynomial is multiplied by the power of its place."""
    shift = np.uint64(pow(STEP, BYTES_A_BLOCK, 1 << 64))
    found = np.zeros(1, np.uint64)
    for start in reversed(range(begin, end, BYTES_A_BLOCK)):
        block = np.array([start, min(start + BYTES_A_BLOCK, end)])
        found = found * shift + _block_hashes(block, text)
    return found


def _without_unused(array: pa.Array) -> pa.Array:
    """Strings with about as many entries in their dictionary as there are rows would write most of them for nothing, unless workers have these."""
    if pa.types.is_dictionary(array.type):
        values = array.dictionary
        if len(values) * PARTS > len(array) and not is_common(values):
            return decode(array)
    return array
