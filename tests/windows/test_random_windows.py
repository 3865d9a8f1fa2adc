"""Random window queries: the same answers as DuckDB; `FUSELINE_RANDOM=5000` tries more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from tests.compare import assert_same_as_duckdb, connected

from .window_queries import Drawn, table

CASES = int(os.environ.get("FUSELINE_RANDOM", "300"))
GROUPS = 10
TABLES = {f"t{rows}": table(rows, rows) for rows in (0, 1, 12, 90)}


@pytest.fixture(params=("always", "never"))
def connection(request: pytest.FixtureRequest, backend: str) -> Iterator[Any]:
    with connected(TABLES, device=backend, fuse=request.param) as made:
        yield made


@pytest.mark.by_day(2)
@pytest.mark.parametrize("group", range(GROUPS))
def test_random_windows(group: int, connection: Any) -> None:
    compare(range(group, CASES // 2, GROUPS), connection)


@pytest.mark.nightly
def test_many_windows(connection: Any) -> None:
    compare(range(100_000, 105_000), connection)


def compare(seeds: range, connection: Any) -> None:
    """Compare what DuckDB answers: of random bounds it refuses some."""
    reference = duckdb.connect()
    for name, made in TABLES.items():
        reference.register(name, made)
    for seed in seeds:
        rows = (90, 12, 90, 12, 90, 1, 0)[seed % 7]
        query = Drawn(seed).text().replace("from t", f"from t{rows}")
        try:
            reference.execute(query)
        except duckdb.Error:
            continue
        assert_same_as_duckdb(query, {f"t{rows}": TABLES[f"t{rows}"]}, connection=connection)
