"""Encoded host columns back into the CPU backend's physical form, value for value.

Codes are Arrow arrays on the way, so that row groups are cut out of them before they are decoded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .encode import UNSIGNED, each_block, values_of
from .encodings import Dictionary, EncodedColumn, Narrow, Plain


def codes_of(column: EncodedColumn) -> pa.Array:
    """Return a column's codes with its NULLs, over the same buffers."""
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(column.codes.dtype),
        column.rows,
        [validity, pa.py_buffer(column.codes)],
        column.nulls,
    )


def decode(
    codes: pa.Array, column: EncodedColumn, arrow_type: pa.DataType, threads: int = 1
) -> pa.Array:
    """Return the values of all or some of a column's codes (`codes_of`), in `arrow_type`; strings as a dictionary."""
    match column.encoding:
        case Plain():
            return codes
        case Dictionary(values):
            return _strings(codes, values)
        case Narrow(_, _, width) if width == 8 and arrow_type.bit_width == 64:
            return codes.view(arrow_type)
        case Narrow():
            return _integers(codes, column.encoding, arrow_type, threads)


def _strings(codes: pa.Array, values: pa.Array) -> pa.Array:
    if not len(values):
        return pa.nulls(len(codes), values.type)
    return pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), values, safe=False)


def _integers(codes: pa.Array, encoding: Narrow, arrow_type: pa.DataType, threads: int) -> pa.Array:
    """Base + step * code in the bits of the type; what lies under NULLs is the base."""
    wide = pa.types.is_decimal128(arrow_type)
    item = 8 if wide else max(1, arrow_type.bit_width // 8)
    raw = values_of(codes, UNSIGNED[encoding.width])
    values = np.empty(len(raw), UNSIGNED[item])
    # Right modulo the type's size, whatever the signs
    base, step = (
        np.array(part % 2 ** (8 * item), np.uint64).astype(values.dtype)
        for part in (encoding.base, encoding.step)
    )

    def of_block(rows: slice) -> None:
        block = values[rows]
        block[:] = raw[rows]
        if encoding.step != 1:
            block *= step
        if encoding.base:
            block += base

    each_block(len(raw), threads, of_block)
    data: Any = values
    if wide:
        data = np.empty((len(values), 2), np.int64)
        data[:, 0] = values.view(np.int64)
        data[:, 1] = data[:, 0] >> 63
    elif pa.types.is_boolean(arrow_type):
        data = np.packbits(values, bitorder="little")
    buffers = [_bitmap(codes), pa.py_buffer(data)]
    return pa.Array.from_buffers(arrow_type, len(codes), buffers, codes.null_count)


def _bitmap(codes: pa.Array) -> pa.Buffer | None:
    """The validity of an array, from bit 0 on."""
    if not codes.null_count:
        return None
    if codes.offset == 0:
        return codes.buffers()[0]
    return pa.py_buffer(np.packbits(np.asarray(codes.is_valid()), bitorder="little"))
