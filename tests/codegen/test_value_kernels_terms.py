"""The kernel of sums and products: run here as simulated CUDA, and compiled for a GPU that need not be there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.handwritten import value_kernels as kernels
from tests.codegen import simulator

ROWS = 100
WIDE, SHORT = kernels.COLUMN_OF[8], kernels.COLUMN_OF[4]
ADD, SUB, MUL = kernels.ADD, kernels.SUB, kernels.MUL


def run(steps: list[tuple[int, int]], memory: Any) -> list[int]:
    cuda = simulator.Cuda(2, 32, 0)
    space: dict[str, Any] = {"cuda": cuda}
    text = kernels.TERMS_SOURCE.read_text().replace("from numba import cuda\n", "")
    exec(compile(text, str(kernels.TERMS_SOURCE), "exec"), space)
    out = np.zeros(ROWS, np.int64)
    program = np.array(steps, np.int64).ravel()
    given = (ROWS, len(steps), program, memory.view(np.int32), memory.view(np.int64), out)
    cuda.launch(space[kernels.TERMS], [np.int64(g) if isinstance(g, int) else g for g in given])
    found: list[int] = out.tolist()
    return found


def test_expressions_in_postfix_order() -> None:
    draw = np.random.default_rng(1)
    a, b, c = (draw.integers(-1000, 1000, ROWS) for _ in range(3))
    memory = np.concatenate([a, b, c.astype(np.int32).view(np.int64)])
    at_a, at_b, at_c = (WIDE, 0), (WIDE, 8 * ROWS), (SHORT, 16 * ROWS)
    one, mul = (kernels.CONSTANT, 1), (MUL, 0)
    charge = [at_a, one, at_b, (SUB, 0), mul, one, at_c, (ADD, 0), mul]
    assert run(charge, memory) == (a * (1 - b) * (1 + c)).tolist()
    deep = [at_a, at_b, at_c, (kernels.CONSTANT, -7), mul, (SUB, 0), (ADD, 0)]
    assert run(deep, memory) == (a + (b - c * -7)).tolist()


def test_it_compiles_for_a_gpu(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    code, origin = kernels.term_kernel(kernels.TERMS, tmp_path, (9, 0)).machine_code()
    assert code
    assert origin == "compiler"
