"""The table of scalar functions: name in plans -> kernel, and what a call must be like for the GPU to take it."""

from __future__ import annotations

from collections.abc import Callable

from ....plan.expr import Call
from . import (
    kernels_arithmetic,
    kernels_dates,
    kernels_formats,
    kernels_logic,
    kernels_numeric,
    kernels_patterns,
    kernels_strings,
    kernels_zones,
)
from .values import Kernel

KERNELS: dict[str, Kernel] = {
    **kernels_logic.KERNELS,
    **kernels_arithmetic.KERNELS,
    **kernels_numeric.KERNELS,
    **kernels_strings.KERNELS,
    **kernels_patterns.KERNELS,
    **kernels_dates.KERNELS,
    **kernels_formats.KERNELS,
    **kernels_zones.KERNELS,
}
# Function -> why a call of it is refused, or None.
REFUSALS: dict[str, Callable[[Call], str | None]] = {
    **kernels_numeric.REFUSALS,
    **kernels_strings.REFUSALS,
    **kernels_patterns.REFUSALS,
    **kernels_dates.REFUSALS,
    **kernels_formats.REFUSALS,
    **kernels_zones.REFUSALS,
}


def refusal(call: Call) -> str | None:
    """Return why the GPU does not compute a call, whatever its arguments are made of, or None."""
    if call.function not in KERNELS and call.function != "coalesce":
        return f"the function {call.function}()"
    check = REFUSALS.get(call.function)
    return None if check is None else check(call)
