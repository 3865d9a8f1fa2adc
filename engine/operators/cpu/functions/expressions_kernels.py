"""KERNELS: the CPU's way to compute each scalar function, (call, arguments) -> values."""

from __future__ import annotations

from . import (
    kernels_arithmetic,
    kernels_casts,
    kernels_dates,
    kernels_formats,
    kernels_intervals,
    kernels_logic,
    kernels_numeric,
    kernels_patterns,
    kernels_strings,
)
from .json import JSON_KERNELS
from .nested import NESTED_KERNELS
from .values import VALUE_KERNELS
from .vectors import Kernel

KERNELS: dict[str, Kernel] = {
    **kernels_logic.KERNELS,
    **kernels_arithmetic.KERNELS,
    **kernels_numeric.KERNELS,
    **kernels_strings.KERNELS,
    **kernels_patterns.KERNELS,
    **VALUE_KERNELS,
    **kernels_dates.KERNELS,
    **kernels_formats.KERNELS,
    **kernels_intervals.KERNELS,
    **NESTED_KERNELS,
    **JSON_KERNELS,
    **kernels_casts.KERNELS,
}
