"""The table of functions and the kernels fit together."""

from __future__ import annotations

from fuseline.operators.cpu.functions.kernel_table import KERNELS
from fuseline.plan.functions import SCALAR


def test_each_scalar_function_has_a_kernel_and_each_kernel_a_function() -> None:
    assert set(KERNELS) == set(SCALAR)
    assert all(map(callable, KERNELS.values()))
