"""The kernels that make sort keys numbers: run here as simulated CUDA, and compiled for a GPU that need not be there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.compile.compiler import Signature
from fuseline.codegen.handwritten import sort_kernels as kernels
from tests.codegen import simulator

ROWS = 100
LEADS = [name for name, _ in kernels.LEAD_SIGNATURE]


def run(
    given: dict[str, Any], name: str = kernels.DIGIT, signature: Signature = kernels.SIGNATURE
) -> None:
    cuda = simulator.Cuda(1, 32, 0)
    space: dict[str, Any] = {"cuda": cuda}
    text = kernels.SOURCE.read_text().replace("from numba import cuda\n", "")
    exec(compile(text, str(kernels.SOURCE), "exec"), space)
    arguments = [
        np.int64(given[n]) if isinstance(given[n], int) else given[n] for n, _ in signature
    ]
    cuda.launch(space[name], arguments)


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


@pytest.mark.parametrize("wide", [0, 1])
def test_the_first_bytes_of_texts(wide: int) -> None:
    texts = ["", "a", "a\0", "ab", "abcdefgh", "abcdefghi", "b", "é", "\U0010ffff", "zz"]
    data = "".join(texts).encode()
    offsets = np.cumsum([0, *(len(text.encode()) for text in texts)])
    out = np.zeros(len(texts), np.int64)
    given = (
        len(texts),
        np.frombuffer(data, np.uint8),
        wide,
        offsets.astype(np.int32),
        offsets,
        out,
    )
    run(dict(zip(LEADS, given, strict=True)), kernels.LEAD, kernels.LEAD_SIGNATURE)
    padded = [text.encode()[:8].ljust(8, b"\0") for text in texts]
    assert out.tolist() == [int.from_bytes(text, "big") - 2**63 for text in padded]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", [kernels.DIGIT, kernels.LEAD])
def test_they_compile_for_a_gpu(name: str, tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    code, origin = kernels.sort_kernel(name, tmp_path, (9, 0)).machine_code()
    assert code
    assert origin == "compiler"
