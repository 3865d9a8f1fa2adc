"""Texts that mostly differ are tested, and computed with, in the rows that filters and joins leave, against DuckDB."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fuseline.plan.node import walk
from fuseline.plan.physical import ComputeColumns, FilterRows, HashAggregate, Pipeline, Stored
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits

ROWS = 9000
TEXTS = [None if n % 50 == 3 else f"{n * 7919 % ROWS} of text {n % 11}" for n in range(ROWS)]
T = pa.table(
    {"k": [n % 600 for n in range(ROWS)], "v": range(ROWS), "t": TEXTS, "f": ["a", "b", "c"] * 3000}
)
U = pa.table({"j": range(600), "w": [n * 7 % 600 for n in range(600)]})
TABLES = {"t": T, "u": U}


@pytest.fixture(autouse=True)
def small_tables(limits: SetLimits) -> None:
    limits(TEXT_ROWS=1)


def _late(connection: Any, query: str) -> int:
    """How many filters of a plan test stored rows."""
    plan = connection.physical(connection.sql(query).plan)
    bodies = [node.body for node in walk(plan) if isinstance(node, Pipeline)]
    found = (node for body in bodies for node in walk(body))
    return sum(isinstance(n, FilterRows) and isinstance(n.input, Stored) for n in found)


@pytest.mark.parametrize("query", [
    "select f, count(*), sum(v) from t where v < 900 and t like '%1 of%' group by f",
    "select f, max(t), count(*) from t join u on k = j where w < 50 and t not like '%7%' group by f",
    "select w % 3 as x, count(t) from t left join u on k = j and w < 9 where v < 900 and length(t) > 13 group by x",
    "select left(t, 1) as x, count(*) from t where v < 900 and regexp_matches(t, '[13] of') and f <> 'a' group by x",
    "select count(*) from t where v < 900 and (t like '%9' or t is null)",
    "select sum(w) from u where j in (select k from t where v < 60 and t like '%text%')",
    "select sum(w) from u where not exists (select * from t where k = j and v < 900 and t like '%5%')",
    "select sum(a.v) from t a join t b on a.k = b.v where a.v < 900 and a.t like '%3%' and b.v < 99 and b.t like '%1%'",
])  # fmt: skip
def test_in_few_rows(query: str) -> None:
    with connected(TABLES, fuse="always", check=True) as connection:
        assert _late(connection, query)
        assert_same_as_duckdb(query, TABLES, connection=connection)


@pytest.mark.parametrize("query", [
    "select f, count(*) from t where v < 8000 and t like '%1 of%' group by f",
    "select f, count(*) from t where v < 900 and f like '%a%' group by f",
    "select t, v from t where v < 900 and t like '%1 of%'",
    "select count(*) from t where t like '%1 of%' and 100 // (v % 8 - 7) < 0 and v < 900 and v % 8 <> 7",
])  # fmt: skip
def test_in_all_rows(query: str) -> None:
    with connected(TABLES, fuse="always", check=True) as connection:
        assert not _late(connection, query)


def _computed(connection: Any, query: str) -> int:
    """How many nodes of a plan compute with stored rows of a table before these are grouped."""
    plan = connection.physical(connection.sql(query).plan)
    pipelines = [node for node in walk(plan) if isinstance(node, Pipeline)]
    found = ((node, pipeline) for pipeline in pipelines for node in walk(pipeline.body))
    return sum(
        isinstance(n, ComputeColumns)
        and isinstance(n.input, Stored)
        and not any(isinstance(below, HashAggregate) for below in walk(pipeline.inputs[0]))
        for n, pipeline in found
    )


EMPTY = {"t": T.slice(0, 0), "u": U}


@pytest.mark.parametrize("query", [
    "select length(t) % 5 as x, count(*), sum(v) from t where v < 900 group by x",
    "select case when t like '%1 of%' then 'yes' else 'no' end as x, k, count(*) from t join u on k = j where w < 50 group by x, k",
    "select f, count(distinct left(t, 1)), max(upper(t)) from t where v < 3000 group by f",
    "select w % 3 as x, sum(length(t)) from t left join u on k = j where v < 900 group by x",
    "select distinct length(t) % 7, left(f, 1) from t where v between 100 and 130",
    "select sum(length(t)), count(*) filter (where t like '%7%') from t where v < 0",
])  # fmt: skip
def test_computed_for_few_rows(query: str) -> None:
    for tables in (TABLES, EMPTY):
        with connected(tables, fuse="always", check=True) as connection:
            assert _computed(connection, query) or tables is EMPTY
            assert_same_as_duckdb(query, tables, connection=connection)


@pytest.mark.parametrize("query", [
    "select length(t) % 5 as x, count(*), sum(v) from t where v < 8000 group by x",
    "select t, count(*) from t where v < 900 group by t",
    "select left(f, 1) as x, count(*) from t where v < 900 group by x",
    "select length(t) % 5 as x, count(*) from t where t like '%1 of%' group by x",
])  # fmt: skip
def test_computed_for_all_rows(query: str) -> None:
    with connected(TABLES, fuse="always", check=True) as connection:
        assert not _computed(connection, query)
        assert_same_as_duckdb(query, TABLES, connection=connection)
