"""random(), which hashes the number of a row and a seed; and hash(): the number that DuckDB gives a value, which samples and buckets of pipelines in SQL are made by.

Numbers are mixed by two rounds of multiplication and shifts, texts are folded word by word, and values of several parts combine theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .....plan.arrow.arrow_arrays import null_as, truth_values
from .....plan.calendar import DAYS_A_MONTH, MICROS_A_DAY
from .....plan.expr import Call
from .....plan.types import UBIGINT, DataType, Kind
from .....storage.columns.encodings import numbers
from ..vectors import Array, Kernel, Vector, both_valid

_Hashes = npt.NDArray[np.uint64]

_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_OF_LENGTH = np.uint64(0xC6A4A7935BD1E995)
_SEED = np.uint64(0xE17A1465)
_HALF_OF_WORD = np.uint64(32)
_OF_NULL = np.uint64(0xBF58476D1CE4E5B9)
_WORD = 8  # bytes
_DIGITS_OF_32_BITS = 9


def _mixed(words: _Hashes) -> _Hashes:
    """Spread each bit of 64 over all of them."""
    for _ in range(2):
        words = (words ^ (words >> _HALF_OF_WORD)) * _FACTOR
    return words ^ (words >> _HALF_OF_WORD)


def _combined(first: _Hashes, second: _Hashes) -> _Hashes:
    return ((first ^ (first >> _HALF_OF_WORD)) * _FACTOR) ^ second


def _hash(call: Call, args: tuple[Vector, ...]) -> Vector:
    count = max(v.length for v in args)
    constant = all(v.is_constant for v in args)
    found = _of_array(args[0].to_arrow(count), args[0].type)
    for vector in args[1:]:
        found = _combined(found, _of_array(vector.to_arrow(count), vector.type))
    made = Vector(UBIGINT, found)
    return made.first() if constant else made


def _of_array(array: pa.Array, data_type: DataType) -> _Hashes:
    """Return the hash of each value, that of NULL where there is none."""
    found = _of_values(array, data_type)
    if array.null_count or data_type.kind is Kind.NULL:
        found = np.where(truth_values(array.is_null()), _OF_NULL, found)
    return found


def _of_values(array: pa.Array, data_type: DataType) -> _Hashes:
    """Return the hash of each value that is not NULL, anything where it is."""
    kind = data_type.kind
    if kind is Kind.NULL:
        return np.zeros(len(array), np.uint64)
    if kind in (Kind.VARCHAR, Kind.BLOB):
        return _of_bytes(array.cast(pa.binary()))
    if kind is Kind.STRUCT:
        fields = [array.field(i) for i in range(array.type.num_fields)]
        return _of_parts(
            [_of_array(*part) for part in zip(fields, data_type.children, strict=True)]
        )
    if data_type.is_nested:
        return _of_lists(array, data_type)
    if data_type.is_float:
        return _of_floats(array)
    if data_type.is_wide_decimal or kind in (Kind.UUID, Kind.INTERVAL):
        return _of_sixteen_bytes(array, data_type)
    if data_type.is_decimal:
        values = numbers(_counted(array))
        return _of_integers(
            values if data_type.precision > _DIGITS_OF_32_BITS else values.astype(np.int32)
        )
    if data_type.is_enum:
        array = array.indices if pa.types.is_dictionary(array.type) else array
    return _of_integers(numbers(_counted(array)))


def _counted(array: pa.Array) -> pa.Array:
    """Return the integers that values are: days, microseconds, 0 and 1."""
    kind = array.type
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif pa.types.is_temporal(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return null_as(array, 0)


def _of_integers(values: npt.NDArray[np.integer]) -> _Hashes:
    """Signed ones of up to 32 bits count as 32, wider ones as 64."""
    if values.dtype.kind == "i":
        values = (
            values.view(np.uint64)
            if values.itemsize == _WORD
            else values.astype(np.int32).view(np.uint32)
        )
    return _mixed(values.astype(np.uint64))


def _of_floats(array: pa.Array) -> _Hashes:
    values = numbers(null_as(array, 0.0))
    values = np.where(values == 0, values.dtype.type(0), values)  # of -0.0
    values = np.where(np.isnan(values), values.dtype.type("nan"), values)
    return _mixed(values.view(np.uint32 if values.itemsize == 4 else np.uint64).astype(np.uint64))


def _halves(array: pa.Array) -> npt.NDArray[np.uint64]:
    """Return the two words of each value of 16 bytes."""
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    _, data = array.buffers()
    if data is None:
        return np.zeros((len(array), 2), np.uint64)
    return np.frombuffer(data, np.uint64)[2 * array.offset :][: 2 * len(array)].reshape(-1, 2)


def _of_sixteen_bytes(array: pa.Array, data_type: DataType) -> _Hashes:
    halves = _halves(array)
    if data_type.kind is Kind.INTERVAL:
        return _of_intervals(halves)
    if (
        data_type.kind is Kind.UUID
    ):  # the first byte is the highest, with another sign, as DuckDB orders them
        halves = halves.byteswap()[:, ::-1] ^ np.array([0, 1 << 63], np.uint64)
    return _mixed(halves[:, 0]) ^ _mixed(halves[:, 1])


def _of_intervals(halves: npt.NDArray[np.uint64]) -> _Hashes:
    """Return the hashes of what intervals are in months of 30 days, days and microseconds."""
    parts = np.ascontiguousarray(halves[:, 0]).view(np.int32).reshape(-1, 2).astype(np.int64)
    months, days = parts[:, 0], parts[:, 1]
    micros = np.ascontiguousarray(halves[:, 1]).view(np.int64)
    more_days, micros = np.divmod(micros, MICROS_A_DAY)
    more_months, days = np.divmod(days + more_days, DAYS_A_MONTH)
    months = months + more_months
    return _of_integers(days) ^ _of_integers(months) ^ _of_integers(micros)


def _of_bytes(array: pa.BinaryArray) -> _Hashes:
    """Fold the words of each value, the last of which is filled with zeros."""
    array = null_as(array, b"")
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset :][: len(array) + 1].astype(np.int64)
    starts, lengths = ends[:-1], np.diff(ends)
    held = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    held = np.concatenate([held[: ends[-1] if len(ends) else 0], np.zeros(_WORD, np.uint8)])
    found = _SEED ^ (lengths.astype(np.uint64) * _OF_LENGTH)
    rows, place = np.flatnonzero(lengths > 0), 0
    while len(rows):
        at = starts[rows] + place
        words = held[at[:, None] + np.arange(_WORD)].view(np.uint64)[:, 0]
        left = np.minimum(lengths[rows] - place, _WORD).astype(np.uint64)
        words = words & (~np.uint64(0) >> (np.uint64(64) - left * np.uint64(8)))
        found[rows] = (found[rows] ^ words) * _FACTOR
        place += _WORD
        rows = rows[lengths[rows] > place]
    return _mixed(found)


def _of_parts(parts: Sequence[_Hashes]) -> _Hashes:
    found = parts[0]
    for part in parts[1:]:
        found = _combined(found, part)
    return found


def _of_lists(array: pa.Array, data_type: DataType) -> _Hashes:
    """Combine the hashes of the elements of each list; one without any has that of NULL."""
    if pa.types.is_map(array.type):
        pairs = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        inside = _of_array(pairs, data_type.children[0])
    elif pa.types.is_fixed_size_list(array.type):
        inside = _of_array(array.values, data_type.children[0])
        starts = (np.arange(len(array)) + array.offset) * array.type.list_size
        return _folded(inside, starts, np.full(len(array), array.type.list_size))
    else:
        inside = _of_array(array.values, data_type.children[0])
    ends = numbers(array.offsets).astype(np.int64)
    return _folded(inside, ends[:-1], np.diff(ends))


def _folded(
    inside: _Hashes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> _Hashes:
    found = np.full(len(starts), _OF_NULL)
    rows = np.flatnonzero(lengths > 0)
    found[rows] = inside[starts[rows]]
    place = 1
    while len(rows := rows[lengths[rows] > place]):
        found[rows] = _combined(found[rows], inside[starts[rows] + place])
        place += 1
    return found


_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


def hashed(numbers: Array, seed: Array) -> Array:
    """Return XXH64 of 8 bytes each (Collet, https://xxhash.com)."""
    with np.errstate(over="ignore"):
        mixed = _rotated(numbers.astype(np.uint64) * _P2, 31) * _P1
        state = (seed.astype(np.uint64) + _P5 + np.uint64(8)) ^ mixed
        state = _rotated(state, 27) * _P1 + _P4
        state = (state ^ (state >> np.uint64(33))) * _P2
        state = (state ^ (state >> np.uint64(29))) * _P3
        return state ^ (state >> np.uint64(32))


def _rotated(values: Array, bits: int) -> Array:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def random(call: Call, args: tuple[Vector, ...]) -> Vector:
    number, seed = args
    bits = hashed(np.asarray(number.data), np.asarray(seed.data)) >> np.uint64(11)
    return Vector(call.type, bits.astype(np.float64) * 2.0**-53, both_valid(*args))


KERNELS: dict[str, Kernel] = {
    "hash": _hash,
    "random": random,
}
