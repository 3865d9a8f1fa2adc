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


@pytest.mark.by_day
@pytest.mark.parametrize(("slots", "bits", "turns"), [(1, 3, 4), (5, 6, 2), (3, 2, 1)])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("order", ["random", "ties", "empty"])
def test_values_by_their_ranks(slots: int, bits: int, turns: int, kind: Any, order: str) -> None:
    draw, rows, copies = np.random.default_rng(bits), 200, 3
    end = 1 << bits * turns if order != "ties" else 3
    values = draw.integers(0, end + 1, rows).astype(kind)  # of which `end` is no value
    keys = draw.integers(int(order == "empty" and slots > 1), slots, rows).astype(np.int32)
    groups = [np.sort(values[(keys == s) & (values < end)]) for s in range(slots)]
    ranks = [[share * (len(g) - 1) // 2 for g in groups] for share in (1, 2)]
    wanted = np.array(ranks).clip(0).ravel()
    found, counters = np.zeros(2 * slots, np.int64), np.zeros(0, np.int32)
    for turn in reversed(range(turns)):
        first = turn == turns - 1
        items = slots if first else 2 * slots
        counters = np.zeros((items << bits) * copies, np.int32)
        run({
            "rows": rows, "grouped": int(slots > 1), "keys": keys, "width": values.itemsize, "values32": values.view(np.int32),
            "values64": values if kind is np.int64 else np.zeros(0, np.int64), "end": end, "shift": bits * turn, "bits": bits,
            "slots": slots, "items": items, "copies": copies, "prefixes": found, "counters": counters,
        }, kernels.COUNT, kernels.SELECTING[kernels.COUNT])  # fmt: skip
        folded = {"size": items << bits, "copies": copies, "counters": counters}
        run(folded, kernels.FOLD, kernels.SELECTING[kernels.FOLD])
        if first:
            counts = counters[: slots << bits].reshape(slots, -1).sum(axis=1)
            assert counts.tolist() == [len(g) for g in groups]
        chosen = {"items": 2 * slots, "slots": items, "bits": bits, "ranks": wanted}
        chosen |= {"prefixes": found, "counters": counters}
        run(chosen, kernels.CHOOSE, kernels.SELECTING[kernels.CHOOSE])
    for place, group in enumerate(groups * 2):
        if len(group):
            assert found[place] == group[ranks[place // slots][place % slots]]


@pytest.mark.parametrize("name", [kernels.DIGIT, kernels.LEAD, *kernels.SELECTING])
def test_they_compile_for_a_gpu(name: str, tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    code, origin = kernels.sort_kernel(name, tmp_path, (9, 0)).machine_code()
    assert code
    assert origin == "compiler"
