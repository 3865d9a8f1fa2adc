"""What threads that write to one array do in one operation on the CPU, which Numba does not offer there."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


def _atomic(operation: str) -> Any:
    """Return what changes an element of an array, by LLVM's name for it, and returns the one that was there."""

    def atomic(context, array, place, value):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            given, at, changed = arguments
            held = context.make_array(signature.args[0])(context, builder, given)
            address = builder.gep(held.data, [at])
            return builder.atomic_rmw(operation, address, changed, "monotonic")

        if not isinstance(place, types.Integer) or value != array.dtype:
            return None
        return array.dtype(array, place, value), generate

    return intrinsic(atomic)


exchange = _atomic("xchg")  # put a value there
unite = _atomic("or")  # set the bits of a value
