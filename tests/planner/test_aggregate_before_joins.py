"""Sums by attributes that a join looks up are made by its key first, where a file says that hardly any attribute comes twice."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.compare import assert_same_as_duckdb, connected

CUSTOMERS, SALES = 5_000, 40_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sales")
    numbers = range(CUSTOMERS)
    tables = {
        "customers": {
            "c": numbers,
            "id": [f"customer {n if n % 500 else 0:010}" for n in numbers],  # ten have one
            "city": [f"the city of {n % 300:010}" for n in numbers],
        },
        "sales": {
            "c": [n * n % CUSTOMERS if n % 9 else None for n in range(SALES)],
            "d": [n % 2 for n in range(SALES)],
            "v": [n % 101 for n in range(SALES)],
        },
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return {name: folder / f"{name}.parquet" for name in tables}


@pytest.mark.parametrize(("key", "passes"), [("id", 2), ("city", 1)])
def test_groups_are_made_before_a_lookup_of_texts_that_hardly_repeat(
    files: dict[str, Path], key: str, passes: int
) -> None:
    query = f"select {key}, d, sum(v) as total, count(*) as n from sales join customers using (c) group by {key}, d"
    with connected(files, "cpu") as connection:
        shown = connection.sql(query).explain()
        assert shown.count("HashAggregate") == passes, shown
    assert_same_as_duckdb(query, files)
