"""Aggregations that a kernel begins and operators finish."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.plan.node import walk
from fuseline.plan.physical import HashAggregate, Pipeline
from fuseline.planner.pipelines.group_keys import SMALL_TABLE
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits

KEYS = 2 * SMALL_TABLE


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A dimension of as many names as rows, without a dictionary; some names come twice."""
    directory = tmp_path_factory.mktemp("tables")
    numbers = np.arange(KEYS)
    names = [f"name {n // 2 if n < 10 else n}" for n in numbers]
    few = np.where(numbers % 7 == 0, None, numbers % 5)
    dimension = pa.table({"id": numbers, "name": names, "few": few.tolist()})
    rows = np.random.default_rng(1).integers(-5, KEYS + 5, 3 * KEYS)
    values = np.where(rows % 11 == 0, None, rows * 3).tolist()
    fact = pa.table({"k": rows, "v": values, "d": (rows / 8).tolist()})
    paths = {"dimension": directory / "dimension.parquet", "fact": directory / "fact.parquet"}
    pq.write_table(dimension, paths["dimension"], use_dictionary=False)
    pq.write_table(fact, paths["fact"])
    return paths


@pytest.fixture(scope="module")
def connection(tables: dict[str, Path], backend: str) -> Iterator[Any]:
    with connected(tables, backend, fuse="always", check=True) as opened:
        yield opened


def _keys(connection: Any, query: str) -> list[list[str]]:
    """The group keys of the pipelines of a query."""
    plan = connection.physical(connection.sql(query).plan)
    bodies = [node.body for node in walk(plan) if isinstance(node, Pipeline)]
    return [[c.name for c in body.keys] for body in bodies if isinstance(body, HashAggregate)]


def _same(query: str, tables: dict[str, Path], connection: Any, backend: str) -> None:
    assert_same_as_duckdb(query, tables, backend=backend, connection=connection, ordered=False)


@pytest.mark.parametrize(
    "calls", ["count(*)", "sum(v), min(v), max(k), count(v)", "bool_or(v > 3), bit_xor(k)"]
)
def test_names_are_grouped_by_the_row_that_has_them(
    calls: str, tables: dict[str, Path], connection: Any, backend: str
) -> None:
    query = f"select name, {calls} from fact join dimension on k = id where v <> 6 group by name"
    assert _keys(connection, query) == [["name", "k"]]
    _same(query, tables, connection, backend)


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        # the keys of the join are there already
        ("select id, name, sum(v) from fact join dimension on k = id group by id, name", ["id", "name"]),
        # numbers
        ("select few, sum(v) from fact join dimension on k = id group by few", ["few"]),
    ],
)  # fmt: skip
def test_one_step_where_keys_have_numbers(
    query: str, keys: list[str], tables: dict[str, Path], connection: Any, backend: str
) -> None:
    assert _keys(connection, query) == [keys]
    _same(query, tables, connection, backend)


@pytest.mark.parametrize(
    "query",
    [
        # no row of the dimension decides d
        "select name, d, sum(v) from fact join dimension on k = id group by name, d",
        "select name, v, count(*) from fact join dimension on k = id group by name, v",
        # averages of parts are no average
        "select name, avg(v) from fact join dimension on k = id group by name",
    ],
)
def test_the_rows_of_a_pipeline_where_no_step_can_be_its_own(
    query: str, tables: dict[str, Path], connection: Any, backend: str
) -> None:
    assert _keys(connection, query) == []
    _same(query, tables, connection, backend)


@pytest.mark.parametrize(
    "calls", ["count(distinct v)", "count(distinct v), sum(distinct v)", "sum(distinct k)"]
)
@pytest.mark.parametrize("keys", ["few", "few, k % 3"])
def test_distinct_values_are_grouped_by_first(
    calls: str,
    keys: str,
    tables: dict[str, Path],
    connection: Any,
    backend: str,
    limits: SetLimits,
) -> None:
    limits(DISTINCT_GROUPS=1)
    query = f"select {keys}, {calls} from fact join dimension on k = id group by {keys}"
    (early,) = _keys(connection, query)
    assert len(early) == keys.count(",") + 2
    _same(query, tables, connection, backend)


@pytest.mark.parametrize("calls", ["count(distinct v), count(*)", "count(distinct v), sum(v)"])
def test_distinct_values_beside_others(
    calls: str, tables: dict[str, Path], connection: Any, backend: str
) -> None:
    query = f"select few, {calls} from fact join dimension on k = id group by few"
    _same(query, tables, connection, backend)


LETTERS = "chr((65 + k % 5)::integer)"


@pytest.mark.parametrize(
    "calls",
    [
        "sum(distinct k % 7), quantile_disc(distinct k % 7, 0.5), max(distinct k % 7)",
        "list(distinct k % 7 order by k % 7 desc), count(distinct k % 7)",
        f"string_agg(distinct {LETTERS}, '|' order by {LETTERS} desc nulls first)",
    ],
)
@pytest.mark.parametrize("keys", ["", "few, "])
def test_few_distinct_values_of_what_kernels_do_not_fold(
    calls: str, keys: str, tables: dict[str, Path], connection: Any, backend: str
) -> None:
    group = f" group by {keys[:-2]}" if keys else ""
    query = f"select {keys}{calls} from fact join dimension on k = id{group}"
    if backend == "cpu":  # no GPU makes lists, or letters of numbers
        (early,) = _keys(connection, query)
        assert len(early) == keys.count(",") + 1
    _same(query, tables, connection, backend)
