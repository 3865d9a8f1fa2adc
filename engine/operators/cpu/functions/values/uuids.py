"""UUIDs of texts, of draws, and what stands in their bits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .....errors import ExecutionError
from .....plan.arrow.arrow_arrays import array_from, from_numpy, null_as, truth_values
from .....plan.expr import Call
from .....plan.text.uuid_text import UUID_BYTES, UUID_LETTERS, uuid_letters
from ..vectors import Array, Kernel, Vector, both_valid
from .each_value import ValueFunction
from .hashes import hashed

_ARROW = pa.binary(UUID_BYTES)
_MILLIS = 1 << 48  # that a UUID of version 7 begins with


def of_texts(texts: pa.Array) -> pa.Array:
    """Return the bytes of 32 digits with dashes anywhere, perhaps in braces; NULL for any other text."""
    inner = pc.replace_substring_regex(texts, r"(?s)\A\{(.*)\}\z", r"\1")
    digits = pc.replace_substring(inner, "-", "")
    known = truth_values(null_as(pc.match_substring_regex(digits, r"\A[0-9a-fA-F]{32}\z"), False))
    data = bytes.fromhex("".join(digits.filter(from_numpy(known)).to_pylist()))
    places = np.cumsum(known) - 1
    return _of_buffer(data).take(from_numpy(places, known))


def texts_of(values: pa.Array) -> pa.Array:
    """Return 36 characters each: five groups of digits, with dashes between them."""
    letters = pa.py_buffer(uuid_letters(values.buffers()[1], values.offset, len(values)))
    texts = pa.Array.from_buffers(pa.binary(UUID_LETTERS), len(values), [None, letters])
    return pc.if_else(values.is_valid(), texts.cast(pa.binary()).cast(pa.string()), None)


def of_bytes(values: pa.Array) -> pa.Array:
    """Return bytes as UUIDs; NULL where there are not 16 of them."""
    fits = pc.equal(pc.binary_length(values), UUID_BYTES)
    return pc.if_else(fits, values, None).cast(_ARROW)


def _of_buffer(data: bytes) -> pa.Array:
    buffers = [None, pa.py_buffer(data)]
    return pa.Array.from_buffers(_ARROW, len(data) // UUID_BYTES, buffers, 0)


def _version(value: bytes) -> int:
    """Return the character of the version above '0', as DuckDB: 54 for an f."""
    return ord(value.hex()[12]) - ord("0")


def _timestamp(value: bytes) -> int:
    version = _version(value)
    if version != 7:
        raise ExecutionError(
            f"A UUID of version {version} has no time: uuid_extract_timestamp takes version 7."
        )
    millis = int.from_bytes(value[:6], "big")
    return 1000 * (millis - _MILLIS if millis >= _MILLIS // 2 else millis)


def _drawn(args: tuple[Vector, ...]) -> Array:
    """Return 16 bytes for each row, of two hashes of its number and the seed."""
    number, seed = (np.asarray(v.data) for v in args[:2])
    halves = (hashed(number, seed), hashed(~number, seed))
    words = np.stack(np.broadcast_arrays(*map(np.atleast_1d, halves)), axis=1)
    return np.ascontiguousarray(words.astype(">u8")).view(np.uint8)


def _made(call: Call, args: tuple[Vector, ...], data: Array, version: int) -> Vector:
    data[:, 6] = data[:, 6] & 0x0F | version << 4
    data[:, 8] = data[:, 8] & 0x3F | 0x80
    array = _of_buffer(data.tobytes())
    valid = both_valid(*args)
    if all(v.is_constant for v in args):
        return Vector(call.type, array).first()
    if valid is not None:
        array = pc.if_else(array_from(np.broadcast_to(valid, len(array))), array, None)
    return Vector(call.type, array)


def _random(call: Call, args: tuple[Vector, ...]) -> Vector:
    return _made(call, args, _drawn(args), 4)


def _of_time(call: Call, args: tuple[Vector, ...]) -> Vector:
    data = _drawn(args)
    millis = np.asarray(args[2].data).astype(">u8").reshape(-1, 1).view(np.uint8)
    data[:, :6] = millis[:, 2:]
    return _made(call, args, data, 7)


KERNELS: dict[str, Kernel] = {"random_uuid": _random, "uuid_of_time": _of_time}
FUNCTIONS: dict[str, ValueFunction] = {
    "uuid_extract_version": _version,
    "uuid_extract_timestamp": _timestamp,
}
