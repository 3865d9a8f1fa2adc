"""The kernel that makes sort keys one number: run here as simulated CUDA, and compiled for a GPU that need not be there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.handwritten import sort_kernels as kernels
from tests.codegen import simulator

ROWS = 100


def run(given: dict[str, Any]) -> None:
    cuda = simulator.Cuda(1, 32, 0)
    space: dict[str, Any] = {"cuda": cuda}
    text = kernels.SOURCE.read_text().replace("from numba import cuda\n", "")
    exec(compile(text, str(kernels.SOURCE), "exec"), space)
    arguments = [
        np.int64(given[n]) if isinstance(given[n], int) else given[n] for n, _ in kernels.SIGNATURE
    ]
    cuda.launch(space[kernels.DIGIT], arguments)


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("nullable", [0, 1])
@pytest.mark.parametrize("begun", [0, 1])
@pytest.mark.parametrize("narrow", [0, 1])
def test_a_digit(turned: int, nullable: int, begun: int, narrow: int) -> None:
    draw = np.random.default_rng(turned + 2 * nullable)
    keys, first = draw.integers(-50, 50, ROWS), 37
    valid = draw.random(ROWS) < 0.7
    bits = np.packbits(
        np.concatenate([np.ones(first, bool), valid, np.ones(55, bool)]), bitorder="little"
    )
    numbers, base = draw.integers(0, 1000, ROWS), 50 if turned else -50
    digits = base - keys if turned else keys - base
    digits = np.where(valid, digits, 101) if nullable else digits
    expected = numbers * 102 + digits if begun else digits
    for short in (0, 1):
        out32, out64 = np.zeros(ROWS, np.int32), np.zeros(ROWS, np.int64)
        run({
            "rows": ROWS, "narrow": narrow, "keys32": keys.astype(np.int32), "keys64": keys,
            "bits": bits.view(np.uint32), "first_bit": first, "nullable": nullable, "turned": turned, "base": base,
            "null": 101, "size": 102, "begun": begun, "numbers": numbers, "short": short, "out32": out32, "out64": out64,
        })  # fmt: skip
        assert (out32 if short else out64).tolist() == expected.tolist()


def test_it_compiles_for_a_gpu(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    code, origin = kernels.digit_kernel(tmp_path, (9, 0)).machine_code()
    assert code
    assert origin == "compiler"
