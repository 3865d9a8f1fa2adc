"""Kernels that pick the groups that exist: run here as simulated CUDA, and compiled for a GPU that need not be there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.handwritten import group_kernels as kernels
from tests.codegen import simulator

THREADS = 64
I64_MIN, I64_MAX = -(2**63), 2**63 - 1
EXTREMES = [I64_MAX, I64_MIN]


def run(name: str, given: dict[str, Any], blocks: int = 2) -> None:
    """Run a kernel; as pointers it gets arrays."""
    cuda = simulator.Cuda(blocks, THREADS, 8 * THREADS)
    cuda.jit = lambda **options: lambda function: function  # type: ignore[attr-defined]
    text = kernels.SOURCE.read_text().replace("from numba import cuda\n", "")
    space: dict[str, Any] = {"cuda": cuda}
    exec(compile(text, str(kernels.SOURCE), "exec"), space)
    arguments = []
    for parameter, kind in kernels.SIGNATURES[name]:
        value = given.get(parameter, 0 if kind == "int64" else np.zeros(0, np.int64))
        arguments.append(np.int64(value) if kind == "int64" else value)
    cuda.launch(space[name], arguments)


def picked(flags: Any, least: int, given: dict[str, Any], kept: Any = None) -> tuple[int, Any]:
    """Count, place and pick groups, of which a condition has kept some; return how many there are and the state."""
    warps, share = kernels.ranges(len(flags))
    places = np.full(warps, -7)
    state = np.array([0, *EXTREMES * kernels.MEASURED])
    given |= {"slots": len(flags), "warps": warps, "share": share, "flags": flags, "least": least}
    given |= {"counts": places, "places": places, "state": state}
    marked = np.zeros(warps * share, np.bool_)
    marked[: len(flags)] = flags >= least if kept is None else kept
    words = np.packbits(marked, bitorder="little").view(np.int32)
    given["bits"] = np.full(len(words), 123, np.int32) if kept is None else words
    run(kernels.COUNT if kept is None else kernels.MEASURE, given)
    slots = -(-len(flags) // kernels.TAKEN) * kernels.TAKEN // kernels.WORD
    assert given["bits"][:slots].tolist() == words[:slots].tolist()
    run(kernels.PLACES, given, blocks=1)
    run(kernels.PICK, given)
    return int(state[0]), state


@pytest.mark.parametrize("slots", [1, 31, 33, 1000, 5000])
@pytest.mark.parametrize(
    ("share", "conditioned"),
    [(0.0, False), (0.01, False), (0.5, False), (1.0, False), (0.02, True), (1.0, True)],
)
def test_groups_come_out_in_the_order_of_their_slots(
    slots: int, share: float, conditioned: bool
) -> None:
    """Counts are of 32 bits, or of 64."""
    made = np.random.default_rng(slots)
    counts = np.where(made.random(slots) < share, made.integers(1, 9, slots), 0)
    counts = counts.astype(np.int64 if slots % 2 else np.int32)
    sums = made.integers(-(10**12), 10**12, slots)
    rows = made.integers(-1, 2**31, slots)
    kept = (counts > 0) & (sums > 0) if conditioned else None
    there = np.flatnonzero(counts if kept is None else kept)
    given = {"measured": 2, "values0": counts, "values1": sums, "base": 100, "width": 8}
    given |= {"numbers64": np.zeros(slots, np.int64), "wide": 1, "narrow": 1}
    given |= {"from0": sums, "to0": np.zeros(slots, np.int64)}
    given |= {"from4": rows, "to4": np.zeros(slots, np.int32)}
    given |= {"short": 1, "from6": -counts, "to6": np.zeros(slots, np.int64)}
    count, state = picked(counts, 1, given, kept)
    assert count == len(there)
    assert given["numbers64"][:count].tolist() == (there + 100).tolist()
    assert given["to0"][:count].tolist() == sums[there].tolist()
    assert given["to4"][:count].tolist() == rows[there].tolist()
    assert given["to6"][:count].tolist() == (-counts[there]).tolist()
    expected = [[v[there].min(), v[there].max()] if count else EXTREMES for v in (counts, sums)]
    assert state[1:5].tolist() == np.ravel(expected).tolist()
    assert state[5:].tolist() == EXTREMES * 2


def test_groups_of_a_hash_table_have_its_keys_as_numbers() -> None:
    keys = np.full(700, -1)
    keys[[3, 40, 699]] = [2**40, 0, 7]
    arrays = [np.arange(700) * k for k in range(1, 5)]
    given: dict[str, Any] = {"measured": 4, "keyed": 1, "base": -5, "width": 8, "wide": 4}
    given |= {f"values{i}": a for i, a in enumerate(arrays)}
    given |= {f"from{i}": a for i, a in enumerate(arrays)}
    given |= {f"to{i}": np.zeros(3, np.int64) for i in range(4)}
    given["numbers64"] = np.zeros(3, np.int64)
    count, state = picked(keys, 0, given)
    assert count == 3
    assert given["numbers64"].tolist() == [2**40 - 5, -5, 2]
    assert [given[f"to{i}"].tolist() for i in range(4)] == [
        a[[3, 40, 699]].tolist() for a in arrays
    ]
    assert state[1:].tolist() == [x for k in range(1, 5) for x in (3 * k, 699 * k)]


def test_a_row_number_takes_32_bits() -> None:
    given: dict[str, Any] = {"measured": 1, "width": 4, "numbers32": np.zeros(2, np.int32)}
    flags = np.array([0, 1, 0, 2])
    given["values0"] = flags
    assert picked(flags, 1, given)[0] == 2
    assert given["numbers32"].tolist() == [1, 3]


def test_a_key_is_a_component_of_the_number() -> None:
    numbers = np.array([0, 5, 2**62, 99])
    given = {"rows": 4, "numbers": numbers, "stride": 5, "size": 7, "low": -3}
    given["values"] = np.zeros(4, np.int64)
    run(kernels.KEY, given)
    assert given["values"].tolist() == [int(n) // 5 % 7 - 3 for n in numbers]


def test_ranges_hold_all_slots() -> None:
    for slots in (1, 255, 257, 10**6, kernels.RANGES * kernels.LEAST_SHARE + 1, 2**30):
        warps, share = kernels.ranges(slots)
        assert share % kernels.TAKEN == 0
        assert (warps - 1) * share < slots <= warps * share
        assert warps <= kernels.RANGES


@pytest.mark.parametrize(
    ("name", "short"),
    [
        *((name, []) for name in kernels.SIGNATURES),
        (kernels.COUNT, ["flags", "values0", "values2"]),
        (kernels.MEASURE, ["values1"]),
    ],
)
def test_kernels_compile_for_a_gpu(name: str, short: list[str], tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    code, origin = kernels.group_kernel(name, tmp_path, (9, 0), frozenset(short)).cubin()
    assert code
    assert origin == "compiler"
