"""Functions of infinite dates and timestamps, by what their rows say: the kernels themselves never see one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ....errors import ExecutionError
from ....plan.calendar import INFINITE_DAY, INFINITE_MICROS
from ....plan.expr import Call
from ....plan.functions import SCALAR
from ....plan.types import Kind
from .kernels_casts import cast
from .kernels_logic import select
from .vectors import Array, Kernel, Vector, both_valid, null_constant


def beside_infinities(kernels: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """Return kernels that compute finite moments alone, where a row says what comes of the others."""
    return {
        name: _guarded(kernel, SCALAR[name].infinite)
        if name in SCALAR and SCALAR[name].infinite
        else kernel
        for name, kernel in kernels.items()
    }


def _guarded(kernel: Kernel, comes: str) -> Kernel:
    def compute(call: Call, args: tuple[Vector, ...]) -> Vector:
        moments = [place for place, arg in enumerate(args) if arg.type.is_temporal]
        odd = {place: _infinite(args[place]) for place in moments if _has_infinite(args[place])}
        if not odd:
            return kernel(call, args)
        valid = both_valid(*args)
        finite, ends = list(args), {}
        for place, mask in odd.items():
            here, data = args[place], args[place].data
            odd[place] = mask if valid is None else mask & valid
            finite[place] = replace(here, data=np.where(mask, 0, data).astype(data.dtype))
            ends[place] = replace(here, data=np.where(mask, data, 0).astype(data.dtype))
        if comes == "error" and any(mask.any() for mask in odd.values()):
            raise ExecutionError(
                "Cannot subtract infinite timestamps: keep those apart for which isfinite(x)."
            )
        result = kernel(call, tuple(finite))
        for place, mask in odd.items():
            kept = comes == "kept" and place == moments[0]
            end = cast(ends[place], call.type, safe=False) if kept else null_constant(call.type)
            result = select(mask, end, result)
        return result

    return compute


def _end(moments: Vector) -> int:
    return INFINITE_DAY if moments.type.kind is Kind.DATE else INFINITE_MICROS


def _has_infinite(moments: Vector) -> bool:
    """Whether some moment is infinite: the least and the greatest show it."""
    end, data = _end(moments), moments.data
    return bool(data.max() == end or data.min() == -end)


def _infinite(moments: Vector) -> Array:
    return np.asarray(np.abs(moments.data) == _end(moments))
