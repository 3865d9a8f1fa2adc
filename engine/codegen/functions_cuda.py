"""What generated CUDA kernels call, under the names that every target provides."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import cuda, types
from numba.cuda.extending import intrinsic

I64_MAX = np.int64(2**63 - 1)
PAIR_BYTES = 16


@cuda.jit(device=True, inline="always")
def absolute(x):  # type: ignore[no-untyped-def]
    """The absolute value of a double."""
    return -x if x < 0.0 else x


@cuda.jit(device=True, inline="always")
def order_of_double(x):  # type: ignore[no-untyped-def]
    """An int64 that orders as SQL orders doubles: -0.0 is 0.0, NaN above infinity."""
    bits = cuda.libdevice.double_as_longlong(x + 0.0)
    ordered = bits ^ I64_MAX if bits < 0 else bits
    return I64_MAX if x != x else ordered  # noqa: PLR0124 - NaN alone is


@cuda.jit(device=True, inline="always")
def double_of_bits(bits):  # type: ignore[no-untyped-def]
    """The double that these 64 bits are."""
    return cuda.libdevice.longlong_as_double(np.int64(bits))


@cuda.jit(device=True, inline="always")
def float_of_bits(bits):  # type: ignore[no-untyped-def]
    """The float that the low 32 bits are."""
    return cuda.libdevice.int_as_float(np.int32(bits))


@intrinsic
def load_pair(context, pointer, pair):  # type: ignore[no-untyped-def]
    """Elements 2 * pair and 2 * pair + 1 of an array of 64-bit words that begins at a multiple of 16 bytes, in one access.

    A thread that loads words one by one asks the first-level cache for the same sector several times.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words, number = arguments
        vector = ir.VectorType(ir.IntType(64), 2)
        address = builder.gep(builder.bitcast(words, vector.as_pointer()), [number])
        loaded = builder.load(address)
        loaded.align = PAIR_BYTES
        both = [builder.extract_element(loaded, ir.Constant(ir.IntType(32), i)) for i in (0, 1)]
        return context.make_tuple(builder, signature.return_type, both)

    return types.UniTuple(pointer.dtype, 2)(pointer, pair), generate


__all__ = ["absolute", "double_of_bits", "float_of_bits", "load_pair", "order_of_double"]
