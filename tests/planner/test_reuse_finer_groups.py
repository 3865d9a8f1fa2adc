"""Totals made of groups: which, and that they are right with NULLs, no rows and exact sums."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fuseline.plan.node import walk
from fuseline.plan.physical import ConcatRows, HashAggregate, Physical
from tests.compare import assert_same_as_duckdb

TABLES = {
    "t": pa.table(
        {
            "k": [1, 1, 2, None, 2, 3],
            "g": ["a", "b", "a", "a", None, "b"],
            "v": [5, None, 2**62, 2**62, -1, 7],
            "d": [0.5, 0.25, None, 1.5, 2.5, 1.0],
        }
    ),
    "u": pa.table({"k": [1, 2, 2, None], "w": [1, 2, 3, 4]}),
}
CALLS = "sum(v) as s, min(v) as low, max(d) as high, count(*) as n, count(v) as m, avg(v) as mean"


SETTINGS = {"check": True}


def _aggregations_of_joins(connection: Any, query: str) -> int:
    """How many aggregations read joined rows, not groups; pipelines, which some devices prefer, would hide them."""

    def reads_groups(node: Physical) -> bool:
        return any(isinstance(n, HashAggregate | ConcatRows) for n in list(walk(node))[1:])

    connection.set_option("fuse", "never")
    plan = connection.physical(connection.sql(query).plan)
    connection.set_option("fuse", "auto")
    nodes = {id(n): n for n in walk(plan) if isinstance(n, HashAggregate)}
    return sum(not reads_groups(node) for node in nodes.values())


@pytest.mark.parametrize("total", ["sum(v)", "min(v)", "max(d)", "count(*)", "avg(v)"])
@pytest.mark.parametrize("where", ["w > 1", "w > 99"])
def test_a_total_reads_the_groups(total: str, where: str, connection: Any, backend: str) -> None:
    query = f"""
        select k, {CALLS}, (select {total} from t join u using (k) where {where}) as total
        from t join u using (k) where {where} group by k
    """
    assert _aggregations_of_joins(connection, query) == 1
    assert_same_as_duckdb(query, TABLES, backend=backend, connection=connection, ordered=False)


@pytest.mark.parametrize(
    "total", ["avg(d)", "count(w)", "sum(d)", "sum(distinct v)", "sum(v) filter (v > 5)", "max(v)"]
)
def test_what_the_groups_do_not_say(total: str, connection: Any, backend: str) -> None:
    query = f"""
        select k, {CALLS}, (select {total} from t join u using (k)) as total
        from t join u using (k) group by k
    """
    assert _aggregations_of_joins(connection, query) == 2
    assert_same_as_duckdb(query, TABLES, backend=backend, connection=connection, ordered=False)


def test_other_rows_are_not_those_of_the_groups(connection: Any, backend: str) -> None:
    query = f"""
        select k, {CALLS}, (select sum(v) from t join u using (k) where w > 2) as total
        from t join u using (k) where w > 1 group by k
    """
    assert _aggregations_of_joins(connection, query) == 2
    assert_same_as_duckdb(query, TABLES, backend=backend, connection=connection, ordered=False)


def test_coarser_groups_read_finer_ones(connection: Any, backend: str) -> None:
    for where in ("true", "w > 99"):  # the total of no rows is a row too
        query = f"select k, g, {CALLS} from t join u using (k) where {where} group by rollup (k, g)"
        assert _aggregations_of_joins(connection, query) == 1
        assert_same_as_duckdb(query, TABLES, backend=backend, connection=connection, ordered=False)
