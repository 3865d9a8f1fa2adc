"""Groups by what a small table's filter leaves few values of: that table's rows are stored first, and kernels have numbers for the groups."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.plan.node import walk
from fuseline.plan.physical import HashAggregate, Pipeline, Stored
from tests.compare import assert_same_as_duckdb, connected

DAYS, CUSTOMERS, ROWS = 73_000, 20_000, 400_000
GROUPED = "select year, customer, sum(v) as s, count(*) as n from fact, days where day = id {} group by year, customer"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A calendar of 200 years, of which the rows of `fact` are in five."""
    folder, random = tmp_path_factory.mktemp("tables"), np.random.default_rng(3)
    ids = np.arange(DAYS)
    days = pa.table({"id": ids, "year": 1900 + ids // 365, "month": 1 + ids % 365 // 31})
    customers = random.integers(1, CUSTOMERS, ROWS)
    fact = {
        "day": random.integers(98 * 365, 103 * 365, ROWS),
        "customer": pa.array(customers, mask=customers % 97 == 0),
        "v": random.integers(-9, 99, ROWS),
    }
    found = {"days": folder / "days.parquet", "fact": folder / "fact.parquet"}
    pq.write_table(days, found["days"])
    pq.write_table(pa.table(fact), found["fact"])
    return found


def _stores(query: str, tables: dict[str, Path], **settings: Any) -> bool:
    with connected(tables, "cpu", check=True, **settings) as connection:
        plan = connection.physical(connection.sql(query).plan)
    bodies = [node.body for node in walk(plan) if isinstance(node, Pipeline)]
    groups = [body for body in bodies if isinstance(body, HashAggregate)]
    return any(isinstance(n, Stored) and n.bounded for body in groups for n in walk(body))


@pytest.mark.parametrize(
    ("condition", "stores"),
    [
        ("and year in (1999, 2000)", True),
        ("and year = 2001", True),
        ("and year between 1999 and 2000", True),
        ("", False),  # nothing that leaves fewer
        ("and year in (1990, 2089)", False),  # as many numbers between them
        ("and year in (1999, 2000) and month = 2 and id % 7 = 1", False),  # few rows for the groups
    ],
)
def test_a_side_is_stored_where_its_keys_are_few_then(
    condition: str, stores: bool, tables: dict[str, Path]
) -> None:
    query = GROUPED.format(condition)
    assert _stores(query, tables, fuse="auto") is stores
    assert not _stores(query, tables, fuse="always")
    assert_same_as_duckdb(query, tables, backend="cpu", fuse=("auto",), ordered=False)


def test_kernels_made_for_some_years_are_not_run_over_others(tables: dict[str, Path]) -> None:
    with connected(tables, "cpu", fuse="auto", check=True) as connection:
        for years in ("(1999, 2000)", "(2001, 2002)", "(1903, 1904)"):
            query = GROUPED.format(f"and year in {years}")
            while "being compiled" in str(connection.sql(f"explain analyze {query}").fetchall()):
                time.sleep(0.1)
            assert_same_as_duckdb(
                query, tables, backend="cpu", connection=connection, ordered=False
            )
