"""Limits that go below UNION ALL with their order, against DuckDB: ties, NULL, empty sides, unions in unions, and what stays above."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fuseline.plan.expr import ColumnRef
from fuseline.plan.node import walk
from fuseline.plan.physical import ComputeColumns, TopK
from tests.compare import assert_same_as_duckdb, connected

ROWS = 300
NAN = float("nan")
TABLES: dict[str, Any] = {
    "a": pa.table(
        {
            "k": [n * 77 % ROWS for n in range(ROWS)],
            "tie": [None if n % 5 == 0 else n % 3 for n in range(ROWS)],
            "d": [(None, NAN, n / 2, -0.0)[n % 4] for n in range(ROWS)],
            "s": [f"text {n % 40}" for n in range(ROWS)],
        }
    ),
    "b": pa.table({"k": list(range(0, 900, 9)), "d": [0.5] * 100, "s": ["text 7", None] * 50}),
    "none": pa.table({"k": pa.nulls(0, pa.int64())}),
}
QUERIES = (
    "select k from a union all select k from b order by k desc limit 7",
    "select k, 'a' as t from a union all select k, 'b' from b order by k, t limit 9 offset 4",
    "select tie from a union all select k from b where k > 880 order by tie nulls first limit 70",
    "select d, k from a union all select d, k from b order by d desc, k limit 90",
    "select s, k from a union all select s, k from b order by s desc nulls last, k limit 12",
    "select k from none union all select k from b order by k limit 3",
    "select k from none union all select k from none order by k limit 3",
    "select k from a union all select k from b order by k limit 0",
    "select k from a union all select k from b order by k limit 1000",
    "(select k from a union all select k from b) union all select k + 1 from a order by k limit 8",
    "select k from a union all (select k from b order by k desc limit 3) order by k desc limit 8",
    "select k + 1 as more, k from a union all select k, k from b order by more, k limit 8",
    "select k, s from a join b using (k, s) union all select k, s from b order by k, s limit 8",
    "select count(*) as k from a union all select k from b order by k desc limit 3",
    "select k from a union select k from b order by k desc limit 5",
    "select k * 2 as k from (select k from a union all select k from b) as u order by -k, k limit 6",
    "select 'x' as x, k, s is null as n from a order by x desc, k limit 5 offset 2",
    "select d is null as n, k, abs(tie) is null as m from a order by n, k desc limit 5",
    "select s is null as n, k % 7 as r, k is null as m, null as z from a order by r, z, n, k limit 9",
    "select 1 as one, coalesce(tie, -1) as c from (select k, tie from a order by k limit 5) as u order by one, k limit 3",
    "select null as x, k from a order by x limit 0",
)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", QUERIES)
def test_duckdbs_answers(query: str) -> None:
    assert_same_as_duckdb(query, TABLES, fuse=("never", "always"))


def test_what_orders_nothing_and_cannot_raise_is_computed_of_the_first_rows() -> None:
    query = "select 'x' as x, md5(s) as n, s::int as i, k from a order by x, k limit 5"
    with connected(TABLES, fuse="never") as connection:
        plan = connection.physical(connection.sql(query).plan)
    later, top, early = list(walk(plan))[:3]
    assert isinstance(later, ComputeColumns)
    assert isinstance(early, ComputeColumns)
    assert isinstance(top, TopK)
    assert [order.column.name for order in top.keys] == ["k"]
    assert [c.name for c, e in early.items if not isinstance(e, ColumnRef)] == ["i"]


def test_each_side_keeps_as_many_rows_as_may_be_read() -> None:
    query = "(select k from a union all select k from b) union all select k + 1 from a order by k limit 5 offset 3"
    with connected(TABLES) as connection:
        plan = connection.sql(query).explain()
    assert plan.count(TopK.__name__) == 4
    assert plan.count("  8") == 3
