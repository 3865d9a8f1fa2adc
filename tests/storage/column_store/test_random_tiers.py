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
EXTREME = 0.3


def answers(folder: Path, queries: list[str], **settings: Any) -> list[Any]:
    """Return the tables that queries give, or the errors that they raise."""
    given: list[Any] = []
    with fuseline.connect("cpu", **settings) as connection:
        for path in folder.glob("*.parquet"):
            connection.read_parquet(str(path), path.stem)
        for query in queries:
            try:
                given.append(connection.sql(query).to_arrow())
            except FuselineError as error:
                given.append(error)
    return given


@pytest.mark.parametrize("seed", SEEDS)
def test_random_tiers(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    for name, table in tables(draw, EXTREME).items():
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=draw.choice((1, 3, 5)))
    queries = [filled(shape(draw.randrange(10**6)), draw, EXTREME) for _ in range(QUERIES)]
    expected = answers(tmp_path, queries, fuse="never")
    fused = "always" if seed % 10 == 9 else "never"  # which compiles
    for _ in ("cold", "warm"):
        limits: dict[str, Any] = {"column_cache_limit": draw.choice((0, 20, 100, 1000))}
        if draw.random() < 0.5:
            limits["memory_limit"] = draw.choice((20_000, 100_000))
        found = answers(tmp_path, queries, fuse=fused, column_store=tmp_path / "store", **limits)
        for query, one, other in zip(queries, expected, found, strict=True):
            if isinstance(other, MemoryLimitError) and "memory_limit" in limits:
                continue
            if isinstance(one, FuselineError):
                assert isinstance(other, type(one)), (query, limits, other)
                continue
            assert not isinstance(other, FuselineError), (query, limits, other)
            order = ordering(query, one.column_names)
            assert difference(one, other, order) is None, (query, limits)
