"""Host columns, in the CPU backend's physical form, into their narrowest encoding.

Columns are taken in blocks that stay in a core's cache, since several passes go over each value; blocks run on threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...plan.types import DataType, Kind
from .encodings import (
    MOST_ALIKE,
    PADDING,
    Dictionary,
    EncodedColumn,
    Narrow,
    Plain,
    code_width,
    narrow_for,
    useful_step,
)

BLOCK = 1 << 15  # rows, a multiple of 8: 256 kB of int64
SAMPLE = 4096  # values from which the greatest common step is guessed before all are checked
# Strings that are not a dictionary yet are made one when so few rows or so small a share of them differ
DISTINCT_SAMPLE = 1 << 16
DISTINCT_SHARE = 0.1
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def encode(array: pa.Array, data_type: DataType, threads: int = 1) -> EncodedColumn | None:
    """Return a column encoded, or None for what no kernel reads: long strings, intervals, decimals beyond 64 bits."""
    if data_type.kind in (Kind.INTERVAL, Kind.NULL):
        return None
    if data_type.kind is Kind.VARCHAR:
        return _strings(array, data_type, threads)
    mask = np.asarray(array.is_valid()) if array.null_count else None
    if data_type.is_float:
        values = values_of(array, np.float32 if data_type.kind is Kind.FLOAT else np.float64)
        codes = _blank(len(values), values.dtype)
        each_block(len(values), threads, lambda rows: _copy(values, codes, rows, mask))
        return _column(data_type, Plain(codes.itemsize), array, codes, mask)
    integers = _integers(array, data_type, mask)
    return None if integers is None else _narrow(array, integers, data_type, mask, threads)


def _integers(array: pa.Array, data_type: DataType, mask: Any) -> Any:
    """The register form of values: unscaled decimals, day numbers, microseconds; None beyond 64 bits."""
    if data_type.kind is Kind.BOOLEAN:
        return values_of(pc.fill_null(array, False).cast(pa.uint8()), np.uint8)
    if data_type.is_wide_decimal:
        limbs = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset :][: 2 * len(array)]
        low, high = limbs[0::2], limbs[1::2]
        fits = high == low >> 63
        if mask is not None:
            fits |= ~mask
        return low if bool(fits.all()) else None
    if data_type.kind is Kind.UBIGINT:
        values = values_of(array, np.uint64)
        small = values <= np.uint64(2**63 - 1)
        if mask is not None:
            small |= ~mask
        return values.view(np.int64) if bool(small.all()) else None
    kinds = {Kind.DATE: np.int32, Kind.TIMESTAMP: np.int64}
    numpy_type = kinds.get(data_type.kind) or (
        np.int64 if data_type.is_decimal else array.type.to_pandas_dtype()
    )
    return values_of(array, numpy_type)


# Integers


def _narrow(
    array: pa.Array, integers: Any, data_type: DataType, mask: Any, threads: int
) -> EncodedColumn:
    rows = len(array)
    if rows == array.null_count:
        return _column(data_type, Narrow(0, 1, 1), array, _blank(rows, np.uint8), mask)
    low, high = _extremes(integers, mask, threads)
    step = _likely_step(integers, mask, low, high)
    while (encoding := narrow_for(low, high, step)).width < 8:
        codes, divides = _codes(integers, low, high, encoding, mask, threads)
        if divides == step:
            return _column(data_type, encoding, array, codes, mask, low, high)
        step = useful_step(low, high, divides)
    codes = _blank(rows, np.int64)
    each_block(rows, threads, lambda part: _copy(integers, codes, part, mask))
    return _column(data_type, encoding, array, codes, mask, low, high)


def with_order(column: EncodedColumn, threads: int = 1) -> EncodedColumn:
    """Look whether values ascend, or at least never fall nor repeat often: a sample first, which few columns pass that may."""
    codes = column.codes
    picked = codes[:: max(1, len(codes) // SAMPLE)] if column.may_be_clustered else codes[:0]
    if not column.may_be_clustered or bool((picked[1:] < picked[:-1]).any()):
        return column

    def of_block(rows: slice) -> tuple[bool, bool]:
        part = codes[max(rows.start - 1, 0) : rows.stop]
        if bool((part[1:] > part[:-1]).all()):
            return True, True
        many = codes[max(rows.start - MOST_ALIKE, 0) : rows.stop]
        rises = bool((part[1:] >= part[:-1]).all())
        return False, rises and bool((many[MOST_ALIKE:] != many[:-MOST_ALIKE]).all())

    strictly, clustered = zip(*each_block(len(codes), threads, of_block), strict=True)
    return replace(column, ascending=all(strictly), clustered=all(clustered))


def _extremes(integers: Any, mask: Any, threads: int) -> tuple[int, int]:
    some = integers[0] if mask is None else integers[int(np.argmax(mask))]

    def of_block(rows: slice) -> tuple[int, int]:
        values = integers[rows] if mask is None else np.where(mask[rows], integers[rows], some)
        return int(values.min()), int(values.max())

    found = each_block(len(integers), threads, of_block)
    return min(low for low, _ in found), max(high for _, high in found)


def _likely_step(integers: Any, mask: Any, low: int, high: int) -> int:
    """The greatest number that divides the differences of a sample, if it makes codes narrower, else 1."""
    if high - low >= 2**63 or narrow_for(low, high, 1).width == 1:
        return 1
    picked = slice(None, None, max(1, len(integers) // SAMPLE))
    sample = integers[picked] if mask is None else integers[picked][mask[picked]]
    step = int(np.gcd.reduce(sample.astype(np.int64) - low, initial=0)) or high - low
    return useful_step(low, high, step)


def _codes(
    integers: Any, low: int, high: int, encoding: Narrow, mask: Any, threads: int
) -> tuple[Any, int]:
    """Return codes and the step; a smaller step, and useless codes, when a difference is no multiple of the encoding's."""
    step = encoding.step
    # Differences are right modulo the type's size, whatever the sign
    unsigned = UNSIGNED[integers.itemsize]
    offset = np.array(low % 2 ** (8 * integers.itemsize), np.uint64).astype(unsigned)
    codes = _blank(len(integers), UNSIGNED[encoding.width])
    shorter = np.uint32 if integers.itemsize == 8 and high - low < 2**32 else unsigned
    divisor = shorter(step) if step > 1 else None

    def of_block(rows: slice) -> int:
        difference = integers[rows].view(unsigned) - offset
        if mask is not None:
            difference *= mask[rows]
        if divisor is None:
            codes[rows] = difference
            return step
        difference = difference.astype(shorter, copy=False)
        quotient = difference // divisor
        codes[rows] = quotient
        quotient *= divisor
        if np.array_equal(quotient, difference):
            return step
        return int(np.gcd(step, int(np.gcd.reduce(difference - quotient))))

    found = each_block(len(integers), threads, of_block)
    return codes, int(np.gcd.reduce(found))


# Strings


def _strings(array: pa.Array, data_type: DataType, threads: int) -> EncodedColumn | None:
    if not pa.types.is_dictionary(array.type):
        sample = array
        if len(array) > DISTINCT_SAMPLE:
            sample = array.take(pa.array(np.arange(0, len(array), len(array) // DISTINCT_SAMPLE)))
        limit = max(DISTINCT_SAMPLE // 16, int(DISTINCT_SHARE * len(sample)))
        if pc.count_distinct(sample).as_py() > limit:
            return None
        array = array.dictionary_encode()
        if len(array.dictionary) > max(limit, DISTINCT_SHARE * len(array)):
            return None
    order = pc.sort_indices(array.dictionary)
    values = array.dictionary.take(order)
    if values.null_count or (len(values) > 1 and pc.any(pc.equal(values[1:], values[:-1])).as_py()):
        return _strings(array.dictionary_decode().dictionary_encode(), data_type, threads)
    indices = array.indices
    mask = np.asarray(indices.is_valid()) if indices.null_count else None
    width = code_width(len(values))
    rank = np.zeros(max(len(values), 1), UNSIGNED[width])
    rank[np.asarray(order)] = np.arange(len(values))
    raw = values_of(indices, indices.type.to_pandas_dtype())
    codes = _blank(len(raw), rank.dtype)

    def of_block(rows: slice) -> None:
        # What lies under a NULL may point anywhere
        np.take(rank, raw[rows], out=codes[rows], mode="clip")
        if mask is not None:
            codes[rows] *= mask[rows]

    each_block(len(raw), threads, of_block)
    return _column(data_type, Dictionary(values, width), indices, codes, mask)


# Buffers


def each_block(rows: int, threads: int, work: Callable[[slice], Any]) -> list[Any]:
    """Return what `work` makes of each block of rows."""
    blocks = [slice(at, min(at + BLOCK, rows)) for at in range(0, rows, BLOCK)]
    if threads < 2 or len(blocks) < 2 * threads:
        return [work(block) for block in blocks]
    shared: Iterator[tuple[int, slice]] = iter(list(enumerate(blocks)))
    results: list[Any] = [None] * len(blocks)
    lock = threading.Lock()

    def drain() -> None:
        while True:
            with lock:
                found = next(shared, None)
            if found is None:
                return
            results[found[0]] = work(found[1])

    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(drain) for _ in range(threads)]:
            future.result()
    return results


def _copy(values: Any, codes: Any, rows: slice, mask: Any) -> None:
    codes[rows] = values[rows] if mask is None else np.where(mask[rows], values[rows], 0)


def _column(
    data_type: DataType,
    encoding: Narrow | Dictionary | Plain,
    array: pa.Array,
    codes: Any,
    mask: Any,
    low: int | None = None,
    high: int | None = None,
) -> EncodedColumn:
    """`codes` lie at the start of a padded buffer (`_blank`)."""
    validity = None
    size = codes.nbytes
    if mask is not None:
        packed = np.packbits(mask, bitorder="little")
        validity = _blank(len(packed), np.uint8)
        validity[:] = packed
        size += validity.nbytes
    return EncodedColumn(
        data_type, encoding, len(array), codes, validity, array.null_count, low, high, size
    )


def values_of(array: pa.Array, numpy_type: Any) -> Any:
    """The values buffer as NumPy sees it, without a copy; what lies under NULLs is anything."""
    item = np.dtype(numpy_type)
    if len(array) == 0:
        return np.empty(0, item)
    return np.frombuffer(array.buffers()[1], item, len(array), array.offset * item.itemsize)


def _blank(rows: int, numpy_type: Any) -> Any:
    """An array of zeros at the start of a buffer of a multiple of `PADDING` bytes."""
    item = np.dtype(numpy_type).itemsize
    count = -(-rows * item // PADDING) * PADDING // item
    return np.zeros(count, numpy_type)[:rows]
