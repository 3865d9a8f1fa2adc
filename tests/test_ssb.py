"""The 13 queries of the Star Schema Benchmark on every backend, and the data that it derives from TPC-H's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from benchmarks import data, ssb
from tests.compare import assert_same_as_duckdb, connected

SCALE = 0.05  # 300,000 facts: below, most cities have neither customers nor suppliers
QUERIES = ssb.queries(SCALE)
EMPTY = {"q3.3", "q3.4"}  # two cities of 250 on both sides, too rare among so few facts


@pytest.fixture(scope="module")
def tables() -> dict[str, Path]:
    return {name: Path(path) for name, path in data.ssb_tables(SCALE).items()}


@pytest.fixture(scope="module")
def connection(backend: str, fuse: str, tables: dict[str, Path]) -> Iterator[Any]:
    with connected(tables, backend, fuse=fuse) as connection:
        yield connection


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", QUERIES)
def test_ssb(name: str, connection: Any, tables: dict[str, Path], backend: str) -> None:
    answer = assert_same_as_duckdb(QUERIES[name], tables, backend=backend, connection=connection)
    assert answer.num_rows > 0 or name in EMPTY


def test_there_are_thirteen_queries() -> None:
    flights = {"q1": 3, "q2": 3, "q3": 4, "q4": 3}
    assert {f: sum(n.startswith(f) for n in QUERIES) for f in flights} == flights


def test_each_fact_has_its_dimensions(tables: dict[str, Path]) -> None:
    keys = {"customer": "c_custkey", "supplier": "s_suppkey", "part": "p_partkey"}
    joins = " ".join(f"join '{tables[t]}' {t} on lo_{k[2:]} = {k}" for t, k in keys.items())
    dates = f"join '{tables['date']}' d on lo_orderdate = d_datekey join '{tables['date']}' c on lo_commitdate = c.d_datekey"
    query = f"select count(*) from '{tables['lineorder']}' {joins} {dates}"
    assert duckdb.sql(query).fetchall() == [(pq.read_metadata(tables["lineorder"]).num_rows,)]


@pytest.mark.parametrize(("table", "column", "distinct"), [
    ("customer", "c_city", 250), ("part", "p_mfgr", 5), ("part", "p_category", 25), ("part", "p_brand1", 1000),
    ("date", "d_datekey", 2557), ("date", "d_yearmonth", 84),
    ("lineorder", "lo_discount", 11),
])  # fmt: skip
def test_domains_are_those_of_the_paper(
    table: str, column: str, distinct: int, tables: dict[str, Path]
) -> None:
    query = f"select count(distinct {column}) from '{tables[table]}'"
    assert duckdb.sql(query).fetchall() == [(distinct,)]


def test_dimensions_grow_as_in_the_paper() -> None:
    assert ssb.sizes(1) == {"customers": 30_000, "suppliers": 2_000, "parts": 200_000}
    assert ssb.sizes(10) == {"customers": 300_000, "suppliers": 20_000, "parts": 800_000}
    assert ssb.sizes(0.01) == {"customers": 300, "suppliers": 20, "parts": 2_000}


def test_the_same_data_come_out_again(tables: dict[str, Path], tmp_path: Path) -> None:
    again = data.make_ssb(SCALE, tmp_path / "again")
    for name, path in tables.items():
        assert pq.read_table(again / f"{name}.parquet").equals(pq.read_table(path)), name
