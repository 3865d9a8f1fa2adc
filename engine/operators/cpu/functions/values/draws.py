"""random(): XXH64 of the number of a row and a seed, so that a draw does not depend on how rows are cut into chunks."""

from __future__ import annotations

import numpy as np

from .....plan.expr import Call
from ..vectors import Array, Kernel, Vector, both_valid

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


KERNELS: dict[str, Kernel] = {"random": random}
