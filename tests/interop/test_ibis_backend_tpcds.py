"""TPC-DS as Ibis's own tests write it, on our backend and on Ibis's DuckDB backend; its tables are generated, so all of it is for the night."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import fuseline
from benchmarks.data import tpcds_tables

ibis = pytest.importorskip("ibis")

from fuseline.interop.ibis_backend import Backend  # noqa: E402
from tests.interop.test_ibis_backend import queries_of_ibis, same_query  # noqa: E402

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
]

SCALE = 0.45  # Ibis's own tests take it, so that all queries but few have rows
QUERIES = queries_of_ibis("ds")


@pytest.fixture(scope="module")
def tpcds() -> Iterator[tuple[Any, Any]]:
    ours, theirs = Backend.from_connection(fuseline.connect()), ibis.duckdb.connect()
    for name, path in tpcds_tables(SCALE).items():
        for connection in (ours, theirs):
            connection.read_parquet(path, table_name=name)
    yield ours, theirs
    ours.disconnect()
    theirs.disconnect()


def test_ibis_has_all_but_those_with_rollup() -> None:
    assert len(QUERIES) == 90


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_of_ibis(tpcds: tuple[Any, Any], name: str) -> None:
    same_query(tpcds, QUERIES[name])
