"""The table of functions and the kernels fit together."""

from __future__ import annotations

import pytest

from fuseline.operators.cpu.expressions_chunk import resolve
from fuseline.operators.cpu.expressions_kernels import KERNELS
from fuseline.plan.functions import SCALAR


@pytest.mark.parametrize("name", sorted(SCALAR))
def test_each_scalar_function_has_a_kernel(name: str) -> None:
    assert callable(resolve(name))


def test_each_kernel_has_a_function() -> None:
    assert set(KERNELS) <= {row.cpu or name for name, row in SCALAR.items()}
