"""Random queries whose columns come from tiers of random sizes: answers are those of runs without limits, cold and warm."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import FuselineError, MemoryLimitError
from tests.compare import difference, ordering
from tests.random_queries.data import tables
from tests.random_queries.shapes import filled, shape

if TYPE_CHECKING:
    from pathlib import Path

QUERIES = 4  # a draw of tables
SEEDS = [*range(4), *(pytest.param(s, marks=pytest.mark.nightly) for s in range(4, 250))]
GPU_SEEDS = [*range(10), *(pytest.param(s, marks=pytest.mark.nightly) for s in range(10, 250))]
EXTREME = 0.3


def answers(folder: Path, queries: list[str], device: str = "cpu", **settings: Any) -> list[Any]:
    """Return the tables that queries give, or the errors that they raise."""
    given: list[Any] = []
    with fuseline.connect(device, **settings) as connection:
        for path in folder.glob("*.parquet"):
            connection.read_parquet(str(path), path.stem)
        for query in queries:
            try:
                given.append(connection.sql(query).to_arrow())
            except FuselineError as error:
                given.append(error)
    return given


def drawn(folder: Path, draw: random.Random) -> list[str]:
    """Write random tables, and return queries of them."""
    for name, table in tables(draw, EXTREME).items():
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=draw.choice((1, 3, 5)))
    return [filled(shape(draw.randrange(10**6)), draw, EXTREME) for _ in range(QUERIES)]


def assert_same(queries: list[str], expected: list[Any], found: list[Any], limits: Any) -> None:
    for query, one, other in zip(queries, expected, found, strict=True):
        if isinstance(other, MemoryLimitError) and "memory_limit" in limits:
            continue
        if isinstance(one, FuselineError):
            assert isinstance(other, type(one)), (query, limits, other)
            continue
        assert not isinstance(other, FuselineError), (query, limits, other)
        order = ordering(query, one.column_names)
        assert difference(one, other, order) is None, (query, limits)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_tiers(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    queries = drawn(tmp_path, draw)
    expected = answers(tmp_path, queries, fuse="never")
    fused = "always" if seed % 10 == 9 else "never"  # which compiles
    for _ in ("cold", "warm"):
        limits: dict[str, Any] = {"column_cache_limit": draw.choice((0, 20, 100, 1000))}
        if draw.random() < 0.5:
            limits["memory_limit"] = draw.choice((20_000, 100_000))
        found = answers(tmp_path, queries, fuse=fused, column_store=tmp_path / "store", **limits)
        assert_same(queries, expected, found, limits)


@pytest.mark.gpu
@pytest.mark.parametrize("seed", GPU_SEEDS)
def test_random_tiers_of_a_gpu(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    queries = drawn(tmp_path, draw)
    expected = answers(tmp_path, queries, "gpu", fuse="never")
    fused = "always" if seed % 10 == 9 else "never"
    store = tmp_path / "store" if draw.random() < 0.5 else None
    for _ in ("cold", "warm"):
        limits: dict[str, Any] = {"column_cache_limit": draw.choice((0, 20, 100, 1000))}
        limits["host_cache_limit"] = draw.choice((0, 50, 500, 10_000))
        found = answers(
            tmp_path, [*queries, *queries], "gpu", fuse=fused, column_store=store, **limits
        )
        assert_same([*queries, *queries], [*expected, *expected], found, limits)
