"""Host columns, in the CPU backend's physical form, into their narrowest encoding.

Columns are taken in blocks that stay in a core's cache, since several passes go over each value; blocks run on threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...plan.arrow.arrow_arrays import bits_of, from_numpy, truth_values
from ...plan.arrow.values_type import values_type
from ...plan.types import DataType, Kind
from . import encodings as enc

SAMPLE = 4096  # values from which the greatest common step is guessed before all are checked
# Strings that are not a dictionary yet are made one when so few rows or so small a share of them differ
DISTINCT_SAMPLE = 1 << 16
DISTINCT_SHARE = 0.1
# Or when up to so many values come again: an expression over them is still a table that kernels look into.  TPC-DS's 23 queries that read
# ids of items took 9 % less CPU time at SF1, since joins and groups by these became parts of kernels
MANY_VALUES = 1 << 16
REPEATED_SHARE = 0.65  # of a sample that differ, where each of `MANY_VALUES` is in as many rows
LARGER_SAMPLE = 4  # times the first one, to find that there are more values before all are sorted
FEW_VALUES = 64  # of a dictionary, which say mostly that it is in no order

Ends = tuple[int, int] | None  # of integers


def encode(
    array: pa.Array, data_type: DataType, threads: int = 1, narrow: bool = True
) -> enc.EncodedColumn | None:
    """Return a column encoded, or None for what no kernel reads: long strings, lists, intervals, decimals beyond 64 bits.

    Numbers that are not made `narrow` take 8 bytes, and texts have few values or no codes: for kernels that read them once or twice, this
    takes less time.
    """
    if data_type.is_ranked or data_type.kind in (Kind.INTERVAL, Kind.NULL):
        return None
    if data_type.kind is Kind.VARCHAR:
        return _strings(array, data_type, threads, narrow)
    mask = truth_values(array.is_valid()) if array.null_count else None
    values = registers_of(array, data_type, mask)
    if values is None or not narrow:
        return None if values is None else encode_numbers(values, mask, data_type)
    if data_type.is_float:
        return _whole(values, data_type, mask, threads)
    return _narrow(values, data_type, mask, threads)


def encode_numbers(
    values: enc.Array, mask: enc.Array | None, data_type: DataType, rows: int | None = None
) -> enc.EncodedColumn:
    """Return numbers as in registers encoded as they lie, without a copy where that is possible; `rows` is as for `rounded`."""
    fixed = enc.fixed_encoding(data_type)
    encoding = fixed or enc.REGISTER
    codes = np.ascontiguousarray(values, np.int64 if fixed is None else fixed.code_type)
    mask = None if mask is None or mask.all() else mask
    if mask is not None:
        codes = np.where(mask, codes, codes.dtype.type(0))
    ends = (0, 1) if data_type.kind is Kind.BOOLEAN else None
    if fixed is None:
        low, high = np.minimum.reduce(codes, initial=0), np.maximum.reduce(codes, initial=0)
        ends = enc.rounded((int(low), int(high)), rows)
    if mask is None:  # as `_column` does
        return enc.EncodedColumn(
            data_type, encoding, codes.size, codes, None, 0, *(ends or (None, None))
        )
    return _column(data_type, encoding, codes, mask, ends)


def registers_of(array: pa.Array, data_type: DataType, mask: enc.Array | None) -> enc.Array | None:
    """Return the register form of values: floats, unscaled decimals, day numbers, microseconds; None beyond 64 bits."""
    if data_type.kind is Kind.BOOLEAN:
        return bits_of(array.buffers()[1], array.offset, len(array)).view(np.uint8)
    if data_type.is_wide_decimal:
        low, high = enc.values_of(array, enc.LIMBS).T
        fits = high == low >> 63
        if mask is not None:
            fits |= ~mask
        return low if bool(fits.all()) else None
    if data_type.kind is Kind.UBIGINT:
        values = enc.values_of(array, np.uint64)
        small = values <= np.uint64(2**63 - 1)
        if mask is not None:
            small |= ~mask
        return values.view(np.int64) if bool(small.all()) else None
    if data_type.is_ticks or data_type.is_decimal:
        return enc.values_of(array, np.int64)
    return enc.values_of(array, values_type(array.type))


# Integers


def _narrow(
    integers: enc.Array, data_type: DataType, mask: enc.Array | None, threads: int
) -> enc.EncodedColumn:
    if not (len(integers) if mask is None else mask.any()):
        return _column(data_type, enc.TRUTHS, enc.zeros(len(integers), np.uint8), mask)
    low, high = _extremes(integers, mask, threads)
    picked = slice(None, None, max(1, len(integers) // SAMPLE))
    sample = integers[picked] if mask is None else integers[picked][mask[picked]]
    step = enc.likely_step(sample, low, high)
    while (encoding := enc.narrow_for(low, high, step)).width < 8:
        codes, divides = _codes(integers, low, high, encoding, mask, threads)
        if divides == step:
            return _column(data_type, encoding, codes, mask, (low, high))
        step = enc.useful_step(low, high, divides)
    return _whole(integers, data_type, mask, threads, (low, high))


def _whole(
    values: enc.Array, data_type: DataType, mask: enc.Array | None, threads: int, ends: Ends = None
) -> enc.EncodedColumn:
    """Values as they are, 0 for NULL."""
    encoding = enc.fixed_encoding(data_type) or enc.REGISTER
    codes = enc.zeros(len(values), encoding.code_type)

    def of_block(rows: slice) -> None:
        codes[rows] = values[rows] if mask is None else np.where(mask[rows], values[rows], 0)

    enc.each_block(len(values), threads, of_block)
    return _column(data_type, encoding, codes, mask, ends)


def with_order(column: enc.EncodedColumn, threads: int = 1) -> enc.EncodedColumn:
    """Look whether values ascend, or at least never fall nor repeat often: a sample first, which few columns pass that may."""
    codes = column.codes
    picked = codes[:: max(1, len(codes) // SAMPLE)] if column.may_be_clustered else codes[:0]
    if not column.may_be_clustered or bool((picked[1:] < picked[:-1]).any()):
        return column

    def of_block(rows: slice) -> tuple[bool, bool]:
        part = codes[max(rows.start - 1, 0) : rows.stop]
        if bool((part[1:] > part[:-1]).all()):
            return True, True
        many = codes[max(rows.start - enc.MOST_ALIKE, 0) : rows.stop]
        rises = bool((part[1:] >= part[:-1]).all())
        return False, rises and bool((many[enc.MOST_ALIKE :] != many[: -enc.MOST_ALIKE]).all())

    strictly, clustered = zip(*enc.each_block(len(codes), threads, of_block), strict=True)
    return replace(column, ascending=all(strictly), clustered=all(clustered))


def _extremes(integers: enc.Array, mask: enc.Array | None, threads: int) -> tuple[int, int]:
    some = integers[0] if mask is None else integers[int(np.argmax(mask))]

    def of_block(rows: slice) -> tuple[int, int]:
        values = integers[rows] if mask is None else np.where(mask[rows], integers[rows], some)
        return int(values.min()), int(values.max())

    found = enc.each_block(len(integers), threads, of_block)
    return min(low for low, _ in found), max(high for _, high in found)


def _codes(
    integers: enc.Array,
    low: int,
    high: int,
    encoding: enc.Encoding,
    mask: enc.Array | None,
    threads: int,
) -> tuple[enc.Array, int]:
    """Return codes and the step; a smaller step, and useless codes, when a difference is no multiple of the encoding's."""
    step = encoding.step
    # Differences are right modulo the type's size, whatever the sign
    unsigned = enc.UNSIGNED[integers.itemsize]
    offset = np.array(low % 2 ** (8 * integers.itemsize), np.uint64).astype(unsigned)
    codes = enc.zeros(len(integers), encoding.code_type)
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

    found = enc.each_block(len(integers), threads, of_block)
    return codes, int(np.gcd.reduce(found))


# Strings


def _strings(
    array: pa.Array, data_type: DataType, threads: int, again: bool = False
) -> enc.EncodedColumn | None:
    """Return codes of sorted values; of many, too, where these come `again` and the column is kept."""
    if not isinstance(array, pa.DictionaryArray):
        coded = _with_few_values(array, threads)
        if coded is None and again:
            coded = _with_repeated_values(array)
        if coded is None:
            return None
        array = coded
    values, order = array.dictionary, None
    if not ascend(values):
        places = pc.sort_indices(values)
        order, values = enc.values_of(places, np.uint64), values.take(places)
        if not ascend(values):
            return _strings(array.dictionary_decode().dictionary_encode(), data_type, threads)
    indices = array.indices
    mask = truth_values(indices.is_valid()) if indices.null_count else None
    width = enc.code_width(len(values))
    rank = np.zeros(max(len(values), 1), enc.UNSIGNED[width])
    rank[slice(len(values)) if order is None else order] = np.arange(len(values))
    raw = enc.values_of(indices, values_type(indices.type))
    codes = enc.zeros(len(raw), rank.dtype)

    def of_block(rows: slice) -> None:
        # What lies under a NULL may point anywhere
        np.take(rank, raw[rows], out=codes[rows], mode="clip")
        if mask is not None:
            codes[rows] *= mask[rows]

    enc.each_block(len(raw), threads, of_block)
    return _column(data_type, enc.Dictionary(values, width), codes, mask)


def _with_few_values(array: pa.Array, threads: int) -> pa.DictionaryArray | None:
    """Return strings as a dictionary made block by block, or None where many differ, as mostly the first block says."""
    limit = few_values(min(len(array), DISTINCT_SAMPLE))
    first, rest = array.slice(0, enc.BLOCK).dictionary_encode(), array.slice(enc.BLOCK)
    many = [len(first.dictionary) > limit]

    def of_block(rows: slice) -> pa.DictionaryArray:
        if many[-1]:
            return first
        coded = rest.slice(rows.start, rows.stop - rows.start).dictionary_encode()
        if len(coded.dictionary) > limit:
            many.append(True)
        return coded

    others = enc.each_block(len(rest), threads, of_block)
    if many[-1]:
        return None
    coded = pa.chunked_array([first, *others]).unify_dictionaries().combine_chunks()
    return None if len(coded.dictionary) > max(limit, DISTINCT_SHARE * len(array)) else coded


def _with_repeated_values(array: pa.Array) -> pa.DictionaryArray | None:
    """Return strings as a dictionary where samples say that their values come again, and all of them agree."""
    limit = most_values(len(array), partial(_sampled, array))
    if not limit:
        return None
    coded = array.dictionary_encode()
    return coded if len(coded.dictionary) <= limit else None


def most_values(rows: int, sample: Callable[[int], tuple[int, int]]) -> int:
    """Return up to how many values strings are made a dictionary, 0 for never.

    `sample` takes at least so many rows, or all, and returns how many they are and how many strings differ among them.
    """
    sampled, differing = sample(DISTINCT_SAMPLE)
    if differing <= few_values(sampled):
        return max(few_values(sampled), int(DISTINCT_SHARE * rows))
    if differing <= REPEATED_SHARE * sampled:
        return MANY_VALUES if sample(LARGER_SAMPLE * DISTINCT_SAMPLE)[1] <= MANY_VALUES else 0
    return 0


def few_values(rows: int) -> int:
    """Return how many different strings are few among so many."""
    return max(DISTINCT_SAMPLE // 16, int(DISTINCT_SHARE * rows))


def largest_dictionary(rows: int) -> int:
    """Return how many values strings have at most that are made a dictionary for so many rows."""
    return max(MANY_VALUES, few_values(rows))


def _sampled(array: pa.Array, rows: int) -> tuple[int, int]:
    """Look at evenly spread rows: so many or up to twice as many, all where there are fewer."""
    if len(array) > rows:
        array = array.take(from_numpy(np.arange(0, len(array), len(array) // rows)))
    return len(array), pc.count_distinct(array).as_py()


def ascend(values: pa.Array) -> bool:
    """Whether strings are none of them NULL, and each greater than the one before it, as in a `Dictionary`: of many, some are looked at first."""
    if values.null_count:
        return False
    looks = [values[:FEW_VALUES], values] if len(values) > FEW_VALUES else [values]
    return all(pc.all(pc.less(v[:-1], v[1:])).as_py() for v in looks if len(v) > 1)


# Buffers


def _column(
    data_type: DataType,
    encoding: enc.Encoding,
    codes: enc.Array,
    mask: enc.Array | None,
    ends: Ends = None,
) -> enc.EncodedColumn:
    """`codes` lie at the start of a padded buffer (`zeros`)."""
    validity, nulls, (low, high) = None, 0, ends or (None, None)
    if mask is not None:
        packed = np.packbits(mask, bitorder="little")
        validity, nulls = enc.zeros(len(packed), np.uint8), len(mask) - int(np.count_nonzero(mask))
        validity[:] = packed
    return enc.EncodedColumn(data_type, encoding, len(codes), codes, validity, nulls, low, high)
