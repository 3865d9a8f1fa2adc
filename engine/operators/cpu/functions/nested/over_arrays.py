"""How a function of Arrow arrays becomes a kernel: constants are arrays for it, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from .....plan.expr import Call
from .....plan.types import Kind
from ..vectors import Kernel, Vector

ArrayFunction: TypeAlias = Callable[[Call, list[pa.Array]], pa.Array]


def over_arrays(function: ArrayFunction) -> Kernel:
    """Make a kernel of a function over arrays of one length, in physical form, which gives another."""

    def kernel(call: Call, args: tuple[Vector, ...]) -> Vector:
        varying = [v for v in args if not v.is_constant]
        count = len(varying[0].data) if varying else 1
        if call.type.kind is Kind.NULL:  # of NULL, as a list of any type
            made = pa.nulls(count)
        else:
            made = function(call, [v.to_arrow(count) for v in args])
        vector = Vector.from_arrow(made, call.type)
        return vector if varying else vector.first()

    return kernel
