"""The kernel that changes the case of letters: run here as simulated CUDA, and compiled for a GPU that need not be there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.handwritten import value_kernels as kernels
from tests.codegen import simulator


def changed(text: bytes, upper: bool) -> tuple[bytes, bool]:
    """What the kernel makes of characters, and whether it says that they are ASCII."""
    cuda = simulator.Cuda(2, 32, 0)
    space: dict[str, Any] = {"cuda": cuda}
    source = kernels.LETTERS_SOURCE.read_text().replace("from numba import cuda\n", "")
    exec(compile(source, str(kernels.LETTERS_SOURCE), "exec"), space)
    words, rest = divmod(len(text), kernels.WORD)
    memory = np.frombuffer(text, np.uint8)
    out, state = np.full(len(text), 0xEE, np.uint8), np.zeros(1, np.int64)
    first, last = b"az" if upper else b"AZ"
    given: dict[str, Any] = {
        "words": words, "rest": rest, "first": first, "last": last, "words64": memory[: 8 * words].view(np.uint64),
        "bytes8": memory, "out64": out[: 8 * words].view(np.uint64), "out8": out, "state": state,
    }  # fmt: skip
    arguments = [
        np.int64(given[n]) if k == "int64" else given[n] for n, k in kernels.LETTERS_SIGNATURE
    ]
    cuda.launch(space[kernels.LETTERS], arguments)
    return out.tobytes(), not state[0]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("length", [8, 9, 128, 1031])
def test_letters_alone_change(upper: bool, length: int) -> None:
    text = np.random.default_rng(length).permutation(np.arange(length) % 128).astype(np.uint8)
    expected = text.tobytes().upper() if upper else text.tobytes().lower()
    assert changed(text.tobytes(), upper) == (expected, True)


@pytest.mark.parametrize("place", [0, 7, 8, 63, 64, 66])
def test_one_byte_that_is_no_ascii_is_seen(place: int) -> None:
    text = bytearray(b"a" * 67)
    text[place] = 0x80
    assert changed(bytes(text), upper=True)[1] is False


def test_the_kernel_compiles_for_a_gpu(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    code, origin = kernels.letter_kernel(kernels.LETTERS, tmp_path, (9, 0)).machine_code()
    assert code
    assert origin == "compiler"
