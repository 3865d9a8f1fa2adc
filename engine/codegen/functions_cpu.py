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
    if x != x:
        return I64_MAX
    bits = np.float64(x + 0.0).view(np.int64)
    return bits ^ I64_MAX if bits < 0 else bits


__all__ = ["absolute", "order_of_double"]
