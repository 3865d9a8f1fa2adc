"""Kernels over rows in the order of a window: run here as simulated CUDA, and compiled for a GPU that need not be there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.handwritten import window_kernels as kernels
from tests.codegen import simulator

THREADS = 64
SHARE = 32  # places of a range here, so that few rows have many ranges


def run(name: str, given: dict[str, Any], blocks: int = 2) -> None:
    cuda = simulator.Cuda(blocks, THREADS, 0)
    cuda.jit = lambda **options: lambda function: function  # type: ignore[attr-defined]
    space: dict[str, Any] = {"cuda": cuda}
    text = kernels.SOURCE.read_text().replace("from numba import cuda\n", "")
    exec(compile(text, str(kernels.SOURCE), "exec"), space)
    scalars = ("int64", "float64")
    arguments = [
        np.int64(given[n]) if k in scalars and isinstance(given[n], int) else given[n]
        for n, k in kernels.SIGNATURES[name]
    ]
    cuda.launch(space[name], arguments)


def sorted_keys(rows: int, partitions: int, keys: int) -> tuple[Any, Any]:
    """Partitions and keys in order, as numbers of both."""
    draw = np.random.default_rng(rows + partitions)
    packed = np.sort(draw.integers(0, partitions, rows) * keys + draw.integers(0, keys, rows))
    return packed // keys, packed


def placed(packed: Any, below: int, narrow: bool = True) -> dict[str, Any]:
    """Marks and the state of ranges."""
    rows, kind = len(packed), np.int32 if narrow else np.int64
    warps = -(-rows // SHARE)
    given: dict[str, Any] = {
        "rows": rows, "warps": warps, "share": SHARE, "narrow": int(narrow), "below": below,
        "heads": np.full(rows, 7, np.uint8), "peers": np.full(rows, 7, np.uint8),
        "state": np.full(kernels.STATES * warps, -99), "out": np.full(rows, -99),
    }  # fmt: skip
    given |= {f"keys{width}": packed.astype(kind) for width in ("32", "64")}
    run(kernels.CHANGES, given)
    run(kernels.HEADS, given)
    return given


SHAPES = [(1, 1, 1), (31, 2, 3), (100, 1, 200), (1100, 1, 9), (130, 40, 5)]


@pytest.mark.parametrize(("rows", "partitions", "keys"), SHAPES)
def test_where_partitions_and_peers_begin_and_end(rows: int, partitions: int, keys: int) -> None:
    parts, packed = sorted_keys(rows, partitions, keys)
    index = np.arange(rows)
    for narrow in (True, False)[: 1 + (rows < 1000)]:
        given = placed(packed, keys, narrow)
        assert given["heads"].tolist() == np.diff(parts, prepend=-1).astype(bool).tolist()
        assert given["peers"].tolist() == np.diff(packed, prepend=-1).astype(bool).tolist()
    start, first = (np.searchsorted(k, k, "left") for k in (parts, packed))
    dense = np.cumsum(given["peers"])
    expected = {
        kernels.START: start,
        kernels.PEER_START: first,
        kernels.NUMBER: index - start + 1,
        kernels.RANK: first - start + 1,
        kernels.DENSE_RANK: dense - dense[start] + 1,
    }
    if rows > SHARE * simulator.WARP:  # the ranges are what counts
        expected = {kernels.DENSE_RANK: expected[kernels.DENSE_RANK]}
    for what, values in expected.items():
        run(kernels.STARTS, given | {"what": what})
        assert given["out"].tolist() == values.tolist(), what
    firsts = given["state"].reshape(kernels.STATES, -1)
    for flags, at, key in (
        ("heads", kernels.FIRST_HEADS, parts),
        ("peers", kernels.FIRST_PEERS, packed),
    ):
        run(kernels.STOPS, given | {"flags": given[flags], "firsts": firsts[at]})
        assert given["out"].tolist() == np.searchsorted(key, key, "right").tolist()


def test_without_partitions() -> None:
    _, packed = sorted_keys(300, 3, 7)
    assert np.flatnonzero(placed(packed, 0)["heads"]).tolist() == [0]


@pytest.mark.parametrize(("rows", "partitions", "keys", "double"), [
    (31, 2, 3, False), (1100, 1, 9, False), (130, 40, 5, False), (130, 40, 5, True),
])  # fmt: skip
def test_running_values(rows: int, partitions: int, keys: int, double: bool) -> None:
    _, packed = sorted_keys(rows, partitions, keys)
    given = placed(packed, keys)
    values = np.random.default_rng(rows).integers(-100, 100, rows)
    kind = np.float64 if double else np.int64
    ends: dict[int, tuple[Any, Any]] = {
        kernels.ADDED: (np.add, 0),
        kernels.LEAST: (np.minimum, 10**6),
        kernels.GREATEST: (np.maximum, -(10**6)),
    }
    if rows > SHARE * simulator.WARP:  # the ranges are what counts
        ends = {kernels.ADDED: ends[kernels.ADDED]}
    for how, (combine, none) in ends.items():
        more = {"how": how, "none": kind(none), "values": values.astype(kind)}
        more |= {"sums": np.zeros(given["warps"], kind), "out": np.zeros(rows, kind)}
        run(kernels.SUMS, given | more)
        run(kernels.RUNNING, given | more)
        bounds = np.flatnonzero(given["heads"])
        pieces = np.split(values, bounds[1:])
        expected = np.concatenate([combine.accumulate(piece) for piece in pieces])
        assert more["out"].tolist() == expected.tolist()


@pytest.mark.parametrize("words", [1, 2])
def test_values_go_back_to_their_rows(words: int) -> None:
    order = np.random.default_rng(words).permutation(150)
    values, out = np.arange(150 * words), np.zeros(150 * words, np.int64)
    run(
        kernels.SCATTER, {"rows": 150, "words": words, "order": order, "values": values, "out": out}
    )
    assert out.reshape(150, -1)[order].tolist() == values.reshape(150, -1).tolist()


@pytest.mark.parametrize("away", [-70, -1, 0, 1, 3, 70])
def test_values_of_other_places(away: int) -> None:
    rows = 150
    order = np.random.default_rng(3).permutation(rows).astype(np.int32)
    bounds = np.minimum(np.arange(rows) // 50 * 50 + (0 if away < 0 else 50), rows)
    found, taken = np.zeros(rows, np.int64), np.zeros(rows, np.int32)
    run(kernels.MOVED, {"rows": rows, "away": away, "bounds": bounds, "out": found})
    there = np.arange(rows) + away
    inside = (there >= 0) & (there // 50 == np.arange(rows) // 50)
    assert found.tolist() == np.where(inside, there, -1).tolist()
    given = {"rows": rows, "nowhere": -9, "order": order, "places": found, "out": taken}
    expected = np.where(inside, order[there % rows], -9).tolist()
    run(kernels.TAKEN, given | {"stays": 0})
    assert taken[order].tolist() == expected
    run(kernels.TAKEN, given | {"stays": 1})
    assert taken.tolist() == expected


def test_values_where_peers_end() -> None:
    stops, words, out = np.arange(150) // 7 * 7 + 7, np.arange(200) * 3, np.zeros(150, np.int64)
    run(kernels.ENDS, {"rows": 150, "stops": stops, "words": words, "out": out})
    assert out.tolist() == ((stops - 1) * 3).tolist()


VARIANTS = [
    *((name, False) for name in kernels.SIGNATURES),
    (kernels.SUMS, True), (kernels.RUNNING, True),
]  # fmt: skip


@pytest.mark.by_day(4)
@pytest.mark.parametrize(("name", "double"), VARIANTS)
def test_kernels_compile_for_a_gpu(name: str, double: bool, tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    code, origin = kernels.window_kernel(name, tmp_path, (9, 0), double).machine_code()
    assert code
    assert origin == "compiler"
