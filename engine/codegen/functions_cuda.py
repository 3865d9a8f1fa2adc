"""What generated CUDA kernels call, under the names that every target provides."""

from __future__ import annotations

import numpy as np
from numba import cuda

I64_MAX = np.int64(2**63 - 1)


@cuda.jit(device=True, inline="always")
def absolute(x):  # type: ignore[no-untyped-def]
    """The absolute value of a double."""
    return -x if x < 0.0 else x


@cuda.jit(device=True, inline="always")
def order_of_double(x):  # type: ignore[no-untyped-def]
    """An int64 that orders as SQL orders doubles: -0.0 is 0.0, NaN above infinity."""
    bits = cuda.libdevice.double_as_longlong(x + 0.0)
    ordered = bits ^ I64_MAX if bits < 0 else bits
    return I64_MAX if x != x else ordered


@cuda.jit(device=True, inline="always")
def double_of_bits(bits):  # type: ignore[no-untyped-def]
    """The double that these 64 bits are."""
    return cuda.libdevice.longlong_as_double(np.int64(bits))


@cuda.jit(device=True, inline="always")
def float_of_bits(bits):  # type: ignore[no-untyped-def]
    """The float that the low 32 bits are."""
    return cuda.libdevice.int_as_float(np.int32(bits))


__all__ = ["absolute", "double_of_bits", "float_of_bits", "order_of_double"]
