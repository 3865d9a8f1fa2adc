"""Host columns, in the CPU backend's physical form, into their narrowest encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..plan.types import DataType, Kind
from .encodings import PADDING, Dictionary, EncodedColumn, Narrow, Plain, code_width, narrow_for

SAMPLE = 4096  # values from which the greatest common step is guessed before all are checked
# Strings that are not a dictionary yet are made one when so few rows or so small a share of them differ
DISTINCT_SAMPLE = 1 << 16
DISTINCT_SHARE = 0.1
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def encode(array: pa.Array, data_type: DataType) -> EncodedColumn | None:
    """Return a column encoded, or None for what no kernel reads: long strings, intervals, decimals beyond 64 bits."""
    if data_type.kind in (Kind.INTERVAL, Kind.NULL):
        return None
    if data_type.kind is Kind.VARCHAR:
        return _strings(array, data_type)
    if data_type.is_float:
        values = _values(array, np.float32 if data_type.kind is Kind.FLOAT else np.float64)
        codes = _padded(np.where(_mask(array), values, 0) if array.null_count else values)
        return _column(data_type, Plain(codes.itemsize), array, codes)
    integers = _integers(array, data_type)
    return None if integers is None else _narrow(array, integers, data_type)


def _integers(array: pa.Array, data_type: DataType) -> Any:
    """The register form of values: unscaled decimals, day numbers, microseconds; None beyond 64 bits."""
    if data_type.kind is Kind.BOOLEAN:
        return _values(pc.fill_null(array, False).cast(pa.uint8()), np.uint8)
    if data_type.is_wide_decimal:
        limbs = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset :][: 2 * len(array)]
        low, high = limbs[0::2], limbs[1::2]
        fits = high == low >> 63
        if array.null_count:
            fits |= ~_mask(array)
        return low if bool(fits.all()) else None
    if data_type.kind is Kind.UBIGINT:
        values = _values(array, np.uint64)
        low_half = values <= np.uint64(2**63 - 1)
        return values.view(np.int64) if bool(low_half.all()) else None
    kinds = {Kind.DATE: np.int32, Kind.TIMESTAMP: np.int64}
    numpy_type = kinds.get(data_type.kind) or (
        np.int64 if data_type.is_decimal else array.type.to_pandas_dtype()
    )
    return _values(array, numpy_type)


def _narrow(array: pa.Array, integers: Any, data_type: DataType) -> EncodedColumn:
    mask = _mask(array) if array.null_count else None
    valid = integers if mask is None else integers[mask]
    if len(valid) == 0:
        codes = _padded(np.zeros(len(array), np.uint8))
        return _column(data_type, Narrow(0, 1, 1), array, codes)
    low, high = int(valid.min()), int(valid.max())
    step = _step(valid, low, high)
    encoding = narrow_for(low, high, step)
    if encoding.width == 8:
        wide = integers.astype(np.int64)
        codes = wide if mask is None else np.where(mask, wide, 0)
    else:
        # Differences of int64 values may pass 2**63 and come back to the right code modulo 2**64
        offset = integers.astype(np.int64).view(np.uint64) - np.uint64(low % 2**64)
        scaled = offset if step == 1 else offset // np.uint64(step)
        codes = scaled.astype(UNSIGNED[encoding.width])
        if mask is not None:
            codes[~mask] = 0
    return _column(data_type, encoding, array, _padded(codes), low, high)


def _step(valid: Any, low: int, high: int) -> int:
    """The greatest number that divides all differences; guessed from a sample, then checked."""
    if high == low or high - low >= 2**63:
        return 1
    sample = valid[:: max(1, len(valid) // SAMPLE)].astype(np.int64) - low
    step = int(np.gcd.reduce(sample)) or high - low
    while step > 1:
        rest = (valid.astype(np.int64) - low) % step
        worst = int(rest.max())
        if worst == 0:
            return step
        step = int(np.gcd(step, np.gcd.reduce(rest)))
    return 1


def _strings(array: pa.Array, data_type: DataType) -> EncodedColumn | None:
    if not pa.types.is_dictionary(array.type):
        sample = array.slice(0, DISTINCT_SAMPLE)
        limit = max(DISTINCT_SAMPLE // 16, int(DISTINCT_SHARE * len(sample)))
        if pc.count_distinct(sample).as_py() > limit:
            return None
        array = array.dictionary_encode()
    indices, values = array.indices, array.dictionary
    order = pc.sort_indices(values)
    rank = np.empty(len(values), np.int64)
    rank[np.asarray(order)] = np.arange(len(values))
    width = code_width(len(values))
    raw = np.asarray(pc.fill_null(indices, 0)) if indices.null_count else np.asarray(indices)
    codes = rank.astype(UNSIGNED[width])[raw] if len(values) else np.zeros(len(raw), np.uint8)
    if indices.null_count:
        codes[np.asarray(indices.is_null())] = 0
    return _column(data_type, Dictionary(values.take(order), width), indices, _padded(codes))


def _column(
    data_type: DataType,
    encoding: Narrow | Dictionary | Plain,
    array: pa.Array,
    codes: Any,
    low: int | None = None,
    high: int | None = None,
) -> EncodedColumn:
    validity = None
    if array.null_count:
        validity = _padded(np.packbits(_mask(array), bitorder="little"))
    size = codes.nbytes + (0 if validity is None else validity.nbytes)
    rows = len(array)
    return EncodedColumn(
        data_type, encoding, rows, codes[:rows], validity, array.null_count, low, high, size
    )


def _mask(array: pa.Array) -> Any:
    return np.asarray(array.is_valid())


def _values(array: pa.Array, numpy_type: Any) -> Any:
    """The values buffer as NumPy sees it, without a copy; what lies under NULLs is anything."""
    item = np.dtype(numpy_type)
    if len(array) == 0:
        return np.empty(0, item)
    return np.frombuffer(array.buffers()[1], item, len(array), array.offset * item.itemsize)


def _padded(values: Any) -> Any:
    """The same values at the start of a buffer of a multiple of `PADDING` bytes."""
    count = -(-values.nbytes // PADDING) * PADDING // values.itemsize
    padded = np.zeros(count, values.dtype)
    padded[: len(values)] = values
    return padded
