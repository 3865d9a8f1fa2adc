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
RESULT = 1 << 18  # bytes that picked groups may take here


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
    result = np.full(RESULT, 0xCC, np.uint8)
    given |= {f"result{8 * width}": result.view(f"i{width}") for width in kernels.WIDTHS}
    run(kernels.PICK, given)
    return int(state[0]), state


def part(
    number: int, width: int, at: int, stride: int = 1, size: int = 0, low: int = 0
) -> dict[str, int]:
    """What the kernel is told of a component."""
    above = kernels.divisor(stride * size) if size else (0, 0)
    told = (*kernels.divisor(stride), *above, size, low, width, at)
    return {f"{n}{number}": v for n, v in zip(kernels.COMPONENT, told, strict=True)}


def written(given: dict[str, Any], width: int, at: int, count: int) -> list[int]:
    """What the kernel wrote from a byte of the result on."""
    found = given[f"result{8 * width}"][at // width :][:count].tolist()
    return [int(value) for value in found]


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
    step = 8 * slots
    given = {"measured": 2, "values0": counts, "values1": sums}
    given |= {"components": 1, **part(0, 8, 0, low=100), "wide": 1, "narrow": 1, "short": 1}
    given |= {"from0": sums, "to0": step, "from4": rows, "to4": 2 * step}
    given |= {"from6": -counts, "to6": 3 * step}
    count, state = picked(counts, 1, given, kept)
    assert count == len(there)
    assert written(given, 8, 0, count) == (there + 100).tolist()
    assert written(given, 8, step, count) == sums[there].tolist()
    assert written(given, 4, 2 * step, count) == rows[there].tolist()
    assert written(given, 8, 3 * step, count) == (-counts[there]).tolist()
    expected = [[v[there].min(), v[there].max()] if count else EXTREMES for v in (counts, sums)]
    assert state[1:5].tolist() == np.ravel(expected).tolist()
    assert state[5:].tolist() == EXTREMES * 2


def test_groups_of_a_hash_table_have_its_keys_as_numbers() -> None:
    keys = np.full(700, -1)
    keys[[3, 40, 699]] = [2**40, 0, 7]
    arrays = [np.arange(700) * k for k in range(1, 5)]
    given: dict[str, Any] = {"measured": 4, "keyed": 1, "wide": 4}
    given |= {"components": 1, **part(0, 8, 0, low=-5)}
    given |= {f"values{i}": a for i, a in enumerate(arrays)}
    given |= {f"from{i}": a for i, a in enumerate(arrays)}
    given |= {f"to{i}": 100 * (i + 1) // 8 * 8 for i in range(4)}
    count, state = picked(keys, 0, given)
    assert count == 3
    assert written(given, 8, 0, 3) == [2**40 - 5, -5, 2]
    assert [written(given, 8, given[f"to{i}"], 3) for i in range(4)] == [
        a[[3, 40, 699]].tolist() for a in arrays
    ]
    assert state[1:].tolist() == [x for k in range(1, 5) for x in (3 * k, 699 * k)]


@pytest.mark.parametrize("groups", [[], [0], [69], [*range(70)]])
def test_components_of_a_number_take_as_many_bytes_as_they_need(groups: list[int]) -> None:
    """Between them nothing is written."""
    flags = np.zeros(70, np.int64)
    flags[groups] = 1
    given: dict[str, Any] = {"measured": 1, "values0": flags, "components": 4}
    parts = [
        (1, 7, 7, 0, -3), (2, 1024, 1, 7, 1), (4, 2048, 14, 0, -(2**31)), (8, 4096, 2, 5, 2**40),
    ]  # fmt: skip
    for i, (width, at, stride, size, low) in enumerate(parts):
        given |= part(i, width, at, stride, size, low)
    count = picked(flags, 1, given)[0]
    assert count == len(groups)
    untouched = given["result8"].view(np.uint8) == 0xCC
    for width, at, stride, size, low in parts:
        expected = [g // stride % (size or 70) + low for g in groups]
        assert written(given, width, at, count) == expected
        untouched[at : at + count * width] = True
    assert untouched.all()


def test_components_of_numbers_of_63_bits() -> None:
    numbers = [0, 5, 2**62, 2**63 - 1, 2**32, 2**32 - 1]
    given: dict[str, Any] = {"measured": 1, "keyed": 1, "components": 4}
    given["values0"] = np.array(numbers)
    parts = [(2**61, 0, 0), (2**30, 2**31, 7), (3, 2**61 + 1, I64_MIN), (1, 3, I64_MAX - 2)]
    for i, (stride, size, low) in enumerate(parts):
        given |= part(i, 8, 64 * i, stride, size, low)
    assert picked(np.array(numbers), 0, given)[0] == len(numbers)
    for i, (stride, size, low) in enumerate(parts):
        expected = [n // stride % (size or 2**63) + low for n in numbers]
        assert written(given, 8, 64 * i, len(numbers)) == expected


def test_a_factor_divides_all_numbers_of_63_bits() -> None:
    made = np.random.default_rng(3)
    powers = [2**bits + more for bits in range(1, 62) for more in (-1, 0, 1)]
    sampled = [int(made.integers(1, 2**bits)) for bits in range(1, 63) for _ in range(20)]
    for number in [*powers, *sampled, I64_MAX - 1, I64_MAX]:
        factor, shift = kernels.divisor(number)
        assert I64_MIN <= factor <= I64_MAX
        last = I64_MAX // number * number
        for dividend in (
            0,
            1,
            number - 1,
            number,
            last - 1,
            last,
            I64_MAX,
            int(made.integers(last)),
        ):
            product = 2 * dividend * (factor % 2**64)
            assert product >> 64 >> shift == dividend // number


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
    code, origin = kernels.group_kernel(name, tmp_path, (9, 0), frozenset(short)).machine_code()
    assert code
    assert origin == "compiler"
