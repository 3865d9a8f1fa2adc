"""The 99 queries of TPC-DS on every backend, fused and unfused; their generator is fetched, so all of it is for the night."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import data, tpcds
from tests.compare import assert_same_as_duckdb, connected

pytestmark = pytest.mark.nightly

SCALE = 0.1  # 288,000 sales in stores; 18 queries have no rows yet


@pytest.fixture(scope="module")
def tables() -> dict[str, Path]:
    return {name: Path(path) for name, path in data.tpcds_tables(SCALE).items()}


@pytest.fixture(scope="module")
def connection(backend: str, fuse: str, tables: dict[str, Path]) -> Iterator[Any]:
    with connected(tables, backend, fuse=fuse) as connection:
        yield connection


@pytest.mark.parametrize("number", range(1, 100))
def test_tpcds(number: int, connection: Any, tables: dict[str, Path], backend: str) -> None:
    query = data.tpcds_queries(SCALE)[f"q{number:02}"]
    assert_same_as_duckdb(query, tables, backend=backend, connection=connection)


def test_most_queries_have_rows(connection: Any) -> None:
    texts = data.tpcds_queries(SCALE)
    assert len(texts) == 99
    assert sum(connection.sql(text).count() > 0 for text in texts.values()) >= 80


def test_the_generator_makes_the_tables_that_are_known(tables: dict[str, Path]) -> None:
    folder = next(iter(tables.values())).parent
    assert {path.stem for path in folder.glob("*.parquet")} == set(tpcds.TABLES)
