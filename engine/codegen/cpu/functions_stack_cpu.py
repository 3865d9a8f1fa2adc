"""Small arrays on the stack of a CPU kernel, which allocates nothing."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.cgutils import alloca_once
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array


@intrinsic(prefer_literal=True)
def on_stack(context, size, dtype):  # type: ignore[no-untyped-def]
    """An array of a constant size, whose elements hold anything; it ends with the function that calls this."""
    if not isinstance(size, types.IntegerLiteral) or not isinstance(dtype, types.NumberClass):
        return None
    kind, length = types.Array(dtype.instance_type, 1, "C"), size.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        item = context.get_data_type(kind.dtype)
        bytes_each = context.get_constant(types.intp, context.get_abi_sizeof(item))
        array = make_array(kind)(context, builder)
        populate_array(
            array,
            data=alloca_once(builder, item, size=length),
            shape=[context.get_constant(types.intp, length)],
            strides=[bytes_each],
            itemsize=bytes_each,
            meminfo=None,
        )
        return array._getvalue()

    return kind(size, dtype), generate


__all__ = ["on_stack"]
