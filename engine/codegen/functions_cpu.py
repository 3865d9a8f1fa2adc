"""What generated CPU kernels call, under the names that every target provides."""

from __future__ import annotations

import numpy as np
from numba import njit

I64_MAX = np.int64(2**63 - 1)


@njit(inline="always")
def absolute(x):  # type: ignore[no-untyped-def]
    """The absolute value of a double."""
    return -x if x < 0.0 else x


@njit
def order_of_double(x):  # type: ignore[no-untyped-def]
    """An int64 that orders as SQL orders doubles: -0.0 is 0.0, NaN above infinity."""
    if x != x:  # noqa: PLR0124 - NaN alone
        return I64_MAX
    bits = np.float64(x + 0.0).view(np.int64)
    return bits ^ I64_MAX if bits < 0 else bits


@njit
def group_slot(keys, state, key):  # type: ignore[no-untyped-def]
    """The slot of a group number in an open-addressing table, made if there is none; -1 when the table is half full."""
    mask = np.uint64(keys.size - 1)
    mixed = np.uint64(key) * np.uint64(
        0x9E3779B97F4A7C15
    )  # Fibonacci hashing: the high bits are well mixed
    slot = (mixed ^ (mixed >> np.uint64(32))) & mask
    while True:
        held = keys[slot]
        if held == key:
            return np.int64(slot)
        if held == -1:
            if state[0] * 2 >= keys.size:
                return np.int64(-1)
            keys[slot] = key
            state[0] += 1
            return np.int64(slot)
        slot = (slot + np.uint64(1)) & mask


__all__ = ["absolute", "group_slot", "order_of_double"]
