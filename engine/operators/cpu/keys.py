"""Keys as integers: what joins, groups, set operations and sorts work on.

Every value of a fixed-width type has an image in one or two int64 whose order and equality are those of SQL (NaN equals NaN and
is the largest number, -0.0 equals 0.0, an INTERVAL month has 30 days).  Strings get dictionary codes.  Several keys are
packed into one int64 where their ranges allow; otherwise what is packed so far is renumbered by hashing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .table import (
    Indices,
    Mask,
    decimal_limbs,
    decode,
    from_numpy,
    to_numpy,
    validity,
)

Ints = npt.NDArray[np.int64]

PACKED_LIMIT = 1 << 62
SMALL_DOMAIN = 1 << 16  # codes that are worth a direct-address array however few rows there are
ROWS_FACTOR = 4  # a direct-address array may have this many slots for each row
SIGN_BIT = np.int64(-(1 << 63))
DAY_MICROS = 86_400_000_000


@dataclass(frozen=True)
class Image:
    """int64 values with the order and equality of an array's values, arbitrary where not `valid`; valid ones lie in low..high."""

    values: Ints
    valid: Mask | None
    low: int
    high: int


def is_string(array: pa.Array) -> bool:
    t = array.type
    if pa.types.is_dictionary(t):
        t = t.value_type
    return bool(pa.types.is_string(t) or pa.types.is_large_string(t))


def images(array: pa.Array) -> list[Image]:
    """Return the images of an array of any type but VARCHAR, most significant first."""
    valid = validity(array)
    return [_measured(values, valid) for values in _image_values(array)]


def dictionary_image(array: pa.Array) -> tuple[Image, pa.Array]:
    """Return codes of strings (equality only) and the distinct values that they number."""
    if pa.types.is_dictionary(array.type) and len(array.dictionary) > 2 * len(array):
        array = decode(array)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    codes, values, valid = to_numpy(array), array.dictionary, validity(array)
    distinct = values.dictionary_encode()
    if len(distinct.dictionary) < len(values):  # a function of a dictionary column may repeat values
        renumbered = distinct.indices.fill_null(0).to_numpy(zero_copy_only=False)
        codes = renumbered[codes if valid is None else np.where(valid, codes, 0)]
        values = distinct.dictionary
    return Image(codes.astype(np.int64), valid, 0, len(values) - 1), values


def ranked_image(array: pa.Array) -> Image:
    """Return ranks of strings in binary order of their UTF-8 bytes."""
    codes, values = dictionary_image(array)
    if not len(values):
        return codes
    ranks = np.empty(len(values), np.int64)
    ranks[pc.array_sort_indices(values).to_numpy()] = np.arange(len(values))
    if codes.valid is None:
        return Image(ranks[codes.values], None, 0, codes.high)
    return Image(ranks[np.where(codes.valid, codes.values, 0)], codes.valid, 0, codes.high)


def ordered_images(array: pa.Array) -> list[Image]:
    """Return images of an array of any type, most significant first."""
    return [ranked_image(array)] if is_string(array) else images(array)


def group_codes(arrays: Sequence[pa.Array]) -> tuple[Ints, int]:
    """Return for each row a code in 0..size-1, equal where all keys are; NULL is a value.  Not all codes need occur."""
    length = len(arrays[0])
    packed = np.zeros(length, np.int64)
    size = 1
    # Strings last: where the other keys already tell all rows apart, their hashing is saved.
    for array in sorted(arrays, key=is_string):
        if size > 1 and is_string(array) and size >= length:
            packed, size = renumber(packed)
            if size == length:
                break
        for image in [dictionary_image(array)[0]] if is_string(array) else images(array):
            digit, base = _with_null(image)
            packed, size = _append(packed, size, digit, base)
    if size > max(SMALL_DOMAIN, ROWS_FACTOR * length):
        return renumber(packed)
    return packed, size


def join_codes(
    build: Sequence[pa.Array], probe: Sequence[pa.Array], null_equal: Sequence[bool]
) -> tuple[Ints, Ints, int]:
    """Return codes of the build and the probe rows, and their number `size`.

    Rows match when their codes are equal and below `size`; `size` itself is the code of rows that match none.
    """
    pair = _Pair(np.zeros(len(build[0]), np.int64), np.zeros(len(probe[0]), np.int64), 1)
    for build_key, probe_key, nulls in zip(build, probe, null_equal, strict=True):
        for digit in _pair_digits(build_key, probe_key, nulls):
            pair = _append_pair(pair, digit)
    slots = max(SMALL_DOMAIN, ROWS_FACTOR * (len(pair.build) + len(pair.probe)))
    if pair.size > slots:
        pair = _renumber_pair(pair)
    build_codes = _marked(pair.build, pair.build_missing, pair.size)
    probe_codes = _marked(pair.probe, pair.probe_missing, pair.size)
    return build_codes, probe_codes, pair.size


def renumber(codes: Ints) -> tuple[Ints, int]:
    """Return codes without gaps by hashing, and their number; numbers follow first occurrence."""
    encoded = from_numpy(codes).dictionary_encode()
    return to_numpy(encoded).astype(np.int64), len(encoded.dictionary)


def stable_order(codes: Ints, size: int) -> Indices:
    """Return the row numbers sorted by code in 0..size-1, equal codes in input order.

    numpy sorts 16-bit integers by radix; two such passes take half the time of one sort of int64.
    """
    if size <= 1 << 16:
        return np.argsort(codes.astype(np.uint16), kind="stable")
    if size > 1 << 32 or bool((codes[1:] >= codes[:-1]).all()):
        return np.argsort(codes, kind="stable")  # sorted runs are merged in one pass
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    return order[np.argsort((codes >> 16).astype(np.uint16)[order], kind="stable")]


def _image_values(array: pa.Array) -> list[Ints]:
    t, types = array.type, pa.types
    if types.is_null(t):
        return [np.zeros(len(array), np.int64)]
    if types.is_decimal(t):
        limbs = decimal_limbs(array)
        low, high = limbs[:, 0], limbs[:, 1]
        if bool((high == low >> 63).all()):
            return [np.ascontiguousarray(low)]
        return [np.ascontiguousarray(high), low ^ SIGN_BIT]
    if types.is_interval(t):
        return _interval_values(array)
    values = to_numpy(array)
    if types.is_floating(t):
        return [float_image(values)]
    if types.is_uint64(t):
        return [values.view(np.int64) ^ SIGN_BIT]
    return [values.astype(np.int64, copy=False)]


def float_image(values: npt.NDArray[Any]) -> Ints:
    """Return int64 in the order of floats, NaN above all of them and all NaN alike."""
    wide = values.astype(np.float64)  # a copy, which may be written
    wide += 0.0  # -0.0 + 0.0 is 0.0
    wide[np.isnan(wide)] = np.nan
    bits = wide.view(np.int64)
    return bits ^ ((bits >> 63) & np.int64((1 << 63) - 1))


def _interval_values(array: pa.Array) -> list[Ints]:
    """Days and microseconds within a day, of months of 30 days: how DuckDB compares intervals."""
    record = np.dtype([("months", np.int32), ("days", np.int32), ("nanos", np.int64)])
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return [np.zeros(len(array), np.int64)] * 2
    parts = np.frombuffer(buffer, record, len(array), array.offset * record.itemsize)
    more_days, micros = np.divmod(parts["nanos"] // 1000, DAY_MICROS)
    days = parts["months"].astype(np.int64) * 30 + parts["days"] + more_days
    return [days, micros]


def _measured(values: Ints, valid: Mask | None) -> Image:
    seen = values if valid is None else values[valid]
    if not len(seen):
        return Image(values, valid, 0, -1)
    return Image(values, valid, int(seen.min()), int(seen.max()))


def _with_null(image: Image) -> tuple[Ints, int]:
    """Digits 0..base-1 of an image, 0 for NULL where there is one; bases beyond the limit are renumbered."""
    nulls = 0 if image.valid is None else 1
    base = image.high - image.low + 1 + nulls
    if base > PACKED_LIMIT:
        digit, base = renumber(image.values)
        base += nulls
    elif image.low == 0 and not nulls:
        return image.values, max(base, 1)
    else:
        digit = image.values - image.low
    if image.valid is not None:
        digit = np.where(image.valid, digit + 1, 0)
    return digit, max(base, 1)


def _append(packed: Ints, size: int, digit: Ints, base: int) -> tuple[Ints, int]:
    if size == 1:
        return digit, base
    if size * base > PACKED_LIMIT:
        packed, size = renumber(packed)
        if size * base > PACKED_LIMIT:
            digit, base = renumber(digit)
    return packed * base + digit, size * base


@dataclass(frozen=True)
class _Pair:
    """Codes 0..size-1 of the two sides of a join; a missing row has no code that the other side could have."""

    build: Ints
    probe: Ints
    size: int
    build_missing: Mask | None = None
    probe_missing: Mask | None = None


def _pair_digits(build: pa.Array, probe: pa.Array, null_equal: bool) -> list[_Pair]:
    if pa.types.is_null(build.type) or pa.types.is_null(probe.type):
        return [_null_pair(build, probe, null_equal)]
    if is_string(build):
        return [_string_pair(build, probe, null_equal)]
    build_images, probe_images = images(build), images(probe)
    if len(build_images) != len(probe_images):  # decimals of which one side fits 64 bits
        build_images, probe_images = _wide_images(build), _wide_images(probe)
    return [_pair(b, p, null_equal) for b, p in zip(build_images, probe_images, strict=True)]


def _wide_images(array: pa.Array) -> list[Image]:
    limbs, valid = decimal_limbs(array), validity(array)
    return [
        _measured(np.ascontiguousarray(limbs[:, 1]), valid),
        _measured(limbs[:, 0] ^ SIGN_BIT, valid),
    ]


def _null_pair(build: pa.Array, probe: pa.Array, null_equal: bool) -> _Pair:
    def missing(array: pa.Array) -> Mask:
        valid = validity(array)
        is_null = np.zeros(len(array), bool) if valid is None else ~valid
        return ~is_null if null_equal else np.ones(len(array), bool)

    zeros = [np.zeros(len(a), np.int64) for a in (build, probe)]
    return _Pair(zeros[0], zeros[1], 1, missing(build), missing(probe))


def _string_pair(build: pa.Array, probe: pa.Array, null_equal: bool) -> _Pair:
    build_image, values = dictionary_image(build)
    if pa.types.is_dictionary(probe.type) and len(probe.dictionary) > 2 * len(probe):
        probe = decode(probe)
    valid = validity(probe)
    entries = probe.dictionary if pa.types.is_dictionary(probe.type) else probe
    found = pc.index_in(entries, value_set=values.cast(entries.type)).fill_null(-1)
    codes = found.to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_dictionary(probe.type):
        at = to_numpy(probe)
        codes = codes[at if valid is None else np.where(valid, at, 0)] if len(codes) else (
            np.full(len(probe), -1, np.int64)
        )
    return _pair(build_image, Image(codes, valid, -1, len(values) - 1), null_equal)


def _pair(build: Image, probe: Image, null_equal: bool) -> _Pair:
    """Digits in the range of the build side; probe values outside of it are missing."""
    if build.high - build.low + 1 > PACKED_LIMIT:
        build, probe = _renumbered_images(build, probe)
    base = max(build.high - build.low + 1, 1)
    build_digit, probe_digit = build.values, probe.values
    if build.low:
        build_digit, probe_digit = build_digit - build.low, probe_digit - build.low
    outside = None
    if probe.low < build.low or probe.high > build.high:
        outside = (probe.values < build.low) | (probe.values > build.high)
    if null_equal and (build.valid is not None or probe.valid is not None):
        # NULL gets the digit above all values.
        build_digit = _marked(build_digit, _not(build.valid), base)
        probe_digit = _marked(probe_digit, _not(probe.valid), base)
        if outside is not None and probe.valid is not None:
            outside &= probe.valid
        return _Pair(build_digit, probe_digit, base + 1, None, outside)
    return _Pair(build_digit, probe_digit, base, _not(build.valid), _either(outside, _not(probe.valid)))


def _renumbered_images(build: Image, probe: Image) -> tuple[Image, Image]:
    pair = _renumber_pair(
        _Pair(build.values, probe.values, 0, _not(build.valid), _not(probe.valid))
    )
    found = _marked(pair.probe, pair.probe_missing, -1)
    return (
        Image(pair.build, build.valid, 0, pair.size - 1),
        Image(found, probe.valid, -1, pair.size - 1),
    )


def _renumber_pair(pair: _Pair) -> _Pair:
    """Number the build side's codes without gaps; probe codes that it does not have become missing."""
    encoded = from_numpy(pair.build, _not(pair.build_missing)).dictionary_encode()
    values = encoded.dictionary
    build = to_numpy(encoded).astype(np.int64)
    found = pc.index_in(from_numpy(pair.probe), value_set=values)
    missing = _either(_not(validity(found)), pair.probe_missing)
    probe = to_numpy(found).astype(np.int64)
    return _Pair(build, probe, max(len(values), 1), pair.build_missing, missing)


def _append_pair(left: _Pair, right: _Pair) -> _Pair:
    build_missing = _either(left.build_missing, right.build_missing)
    probe_missing = _either(left.probe_missing, right.probe_missing)
    if left.size == 1:
        return _Pair(right.build, right.probe, right.size, build_missing, probe_missing)
    if left.size * right.size > PACKED_LIMIT:
        left = _renumber_pair(left)
        if left.size * right.size > PACKED_LIMIT:
            right = _renumber_pair(right)
        build_missing = _either(left.build_missing, right.build_missing)
        probe_missing = _either(left.probe_missing, right.probe_missing)
    return _Pair(
        left.build * right.size + right.build,
        left.probe * right.size + right.probe,
        left.size * right.size,
        build_missing,
        probe_missing,
    )


def _marked(codes: Ints, where: Mask | None, code: int) -> Ints:
    return codes if where is None else np.where(where, np.int64(code), codes)


def _not(mask: Mask | None) -> Mask | None:
    return None if mask is None else ~mask


def _either(a: Mask | None, b: Mask | None) -> Mask | None:
    if a is None or b is None:
        return a if b is None else b
    return a | b
