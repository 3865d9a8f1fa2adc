"""Kernels that pick the groups that exist: run here as simulated CUDA, and compiled for a GPU that need not be there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.compile.compiler import Signature
from fuseline.codegen.cuda import emit_picks
from fuseline.codegen.cuda.emit_picks import Component, Wanted
from fuseline.codegen.handwritten import group_kernels as kernels
from tests.codegen import simulator
from tests.codegen.machine_code import HOPPER, assembly

THREADS = 64
I64_MIN, I64_MAX = -(2**63), 2**63 - 1
EXTREMES = [I64_MAX, I64_MIN]


def run(
    name: str, given: dict[str, Any], blocks: int = 2, text: str = "", signature: Signature = ()
) -> None:
    """Run a kernel, of the hand-written ones unless it has a text; as pointers it gets arrays."""
    cuda = simulator.Cuda(blocks, THREADS, 8 * THREADS)
    cuda.jit = lambda **options: lambda function: function  # type: ignore[attr-defined]
    text = text or kernels.SOURCE.read_text()
    lines = [line for line in text.splitlines() if "import" not in line]
    space: dict[str, Any] = {"cuda": cuda, "np": np}
    exec(compile("\n".join(lines), name, "exec"), space)
    arguments = []
    for parameter, kind in signature or kernels.SIGNATURES[name]:
        value = given.get(parameter, 0 if kind == "int64" else np.zeros(0, np.int64))
        arguments.append(np.int64(value) if kind == "int64" else value)
    cuda.launch(space[name], arguments)


def wanted(
    components: Sequence[Component], arrays: dict[int, Any], narrow: Sequence[int] = (),
    hashed: bool = False,
) -> Wanted:  # fmt: skip
    """Components and elements of all arrays, those of `narrow` ones as 32 bits."""
    types = {n: str(a.dtype) for n, a in arrays.items()}
    wide = tuple(n for n in arrays if n not in narrow)
    return Wanted(tuple(components), wide, tuple(narrow), types, hashed)


def written(
    flags: Any, wanted: Wanted, arrays: dict[int, Any], given: dict[str, Any], room: int
) -> list[list[int]]:
    """What the generated kernel writes of groups that are marked and placed, and nothing behind the room for them."""
    results = [np.full(room + 1, -86, kind) for kind in wanted.results]
    given |= {"keys": flags, "room": room, **{f"from{n}": a for n, a in arrays.items()}}
    given |= {f"low{i}": part.low for i, part in enumerate(wanted.components)}
    given |= {f"to{i}": result for i, result in enumerate(results)}
    text, signature = emit_picks.source(wanted, "a plan"), emit_picks.signature(wanted)
    run(emit_picks.NAME, given, text=text, signature=signature)
    assert all(result[room] == -86 for result in results)
    return [result[:room].tolist() for result in results]


def picked(
    flags: Any, least: int, wanted: Wanted, arrays: dict[int, Any], measured: Sequence[Any] = (),
    kept: Any = None,
) -> tuple[list[list[int]], Any]:  # fmt: skip
    """Count, place and pick groups, of which a condition has kept some; return what is written and the state."""
    warps, share = kernels.ranges(len(flags))
    places = np.full(warps, -7)
    state = np.array([0, *EXTREMES * kernels.MEASURED])
    given = {"slots": len(flags), "warps": warps, "share": share, "flags": flags, "least": least}
    given |= {"counts": places, "places": places, "state": state, "measured": len(measured)}
    given |= {f"values{i}": values for i, values in enumerate(measured)}
    marked = np.zeros(warps * share, np.bool_)
    marked[: len(flags)] = flags >= least if kept is None else kept
    words = np.packbits(marked, bitorder="little").view(np.int32)
    given["bits"] = np.full(len(words), 123, np.int32) if kept is None else words
    run(kernels.COUNT if kept is None else kernels.MEASURE, given)
    slots = -(-len(flags) // kernels.TAKEN) * kernels.TAKEN // kernels.WORD
    assert given["bits"][:slots].tolist() == words[:slots].tolist()
    run(kernels.PLACES, given, blocks=1)
    found = written(flags, wanted, arrays, given, int(state[0]))
    half = int(state[0]) // 2
    assert written(flags, wanted, arrays, given, half) == [result[:half] for result in found]
    return found, state


@pytest.mark.by_day
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
    arrays = {0: -counts, 1: sums, 2: rows, 3: sums / 8}
    told = wanted([Component(1, 0, 100, 8)], arrays, narrow=[2])
    found, state = picked(counts, 1, told, arrays, (counts, sums), kept)
    lists = (there + 100, -counts[there], sums[there], sums[there] / 8, rows[there])
    assert found == [values.tolist() for values in lists]
    expected = [
        [v[there].min(), v[there].max()] if len(there) else EXTREMES for v in (counts, sums)
    ]
    assert state[1:5].tolist() == np.ravel(expected).tolist()
    assert state[5:].tolist() == EXTREMES * 2


def test_groups_of_a_hash_table_have_its_keys_as_numbers() -> None:
    keys = np.full(700, -1)
    keys[[3, 40, 699]] = [2**40, 0, 7]
    arrays = {k: np.arange(700) * k for k in range(1, 5)}
    told = wanted([Component(1, 0, -5, 8)], arrays, hashed=True)
    (first, *others), state = picked(keys, 0, told, arrays, [*arrays.values()])
    assert first == [2**40 - 5, -5, 2]
    assert others == [a[[3, 40, 699]].tolist() for a in arrays.values()]
    assert state[1:].tolist() == [x for k in range(1, 5) for x in (3 * k, 699 * k)]


@pytest.mark.parametrize("groups", [[], [0], [69], [*range(70)]])
def test_components_of_a_number_take_as_many_bytes_as_they_need(groups: list[int]) -> None:
    flags = np.zeros(70, np.int64)
    flags[groups] = 1
    told = ((7, 0, -3, 1), (7, 1, 1, 2), (14, 0, -(2**31), 4), (2, 5, 2**40, 8))
    parts = [Component(*part) for part in told]
    found, _ = picked(flags, 1, wanted(parts, {}), {}, (flags,))
    for part, values in zip(parts, found, strict=True):
        assert values == [g // part.stride % (part.size or 70) + part.low for g in groups]


def test_components_of_numbers_of_63_bits() -> None:
    numbers = [0, 5, 2**62, 2**63 - 1, 2**32, 2**32 - 1]
    told = ((2**61, 0, 0), (2**30, 2**31, 7), (3, 2**61 + 1, I64_MIN), (1, 3, I64_MAX - 2))
    parts = [Component(*part, width=8) for part in told]
    keys = np.array(numbers)
    found, _ = picked(keys, 0, wanted(parts, {}, hashed=True), {}, (keys,))
    for part, values in zip(parts, found, strict=True):
        assert values == [n // part.stride % (part.size or 2**63) + part.low for n in numbers]


def test_nothing_but_a_count_is_wanted() -> None:
    flags = np.array([1, 0, 1])
    assert picked(flags, 1, wanted([], {}), {}, (flags,))[0] == []


def test_ranges_hold_all_slots() -> None:
    for slots in (1, 255, 257, 10**6, kernels.RANGES * kernels.LEAST_SHARE + 1, 2**30):
        warps, share = kernels.ranges(slots)
        assert share % kernels.TAKEN == 0
        assert (warps - 1) * share < slots <= warps * share
        assert warps <= kernels.RANGES


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("name", "short"),
    [
        *((name, []) for name in kernels.SIGNATURES),
        (kernels.COUNT, ["flags", "values0", "values2"]),
        (kernels.MEASURE, ["values1"]),
    ],
)
def test_kernels_compile_for_a_gpu(name: str, short: list[str], tmp_path: Path) -> None:
    file = kernels.group_kernel(name, tmp_path, HOPPER, frozenset(short))
    assembly(file.source, file.name, file.signature)


def test_the_generated_kernel_compiles_for_a_gpu() -> None:
    """The compiler makes products of divisions by constants: of 64 bits, these would be calls."""
    arrays = {i: np.zeros(1, kind) for i, kind in enumerate(("float64", "int64", "int32"))}
    parts = [Component(3, 0, 0, 8), Component(1, 3, 0, 1)]
    told = wanted(parts, arrays, narrow=[1], hashed=True)
    text, signature = emit_picks.source(told, "a plan"), emit_picks.signature(told)
    assert "div." not in assembly(text, emit_picks.NAME, signature)
