"""Keys that follow from others: the groups are those of DuckDB, who keeps all keys."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from fuseline.errors import OutOfRange
from tests.compare import assert_same_as_duckdb, connected

N = 60
TABLES = {
    "t": pa.table({
        "a": pa.array([None if n % 7 == 0 else n % 11 - 5 for n in range(N)], pa.int32()),
        "b": pa.array([n % 5 for n in range(N)], pa.int64()),
        "d": [None if n % 9 == 0 else [0.0, -0.0, 1.5, float("nan")][n % 4] for n in range(N)],
        "s": [None if n % 8 == 0 else ["", "a", "A", "aa", "é", "x" * 50 + str(n % 3)][n % 6] for n in range(N)],
        "moment": [dt.datetime(2024, 1, 1 + n % 3, n % 5, n) for n in range(N)],
        "span": pa.array([[(1, 0, 0), (0, 30, 0), (0, 29, 86_400_000_000_000)][n % 3] for n in range(N)],
            pa.month_day_nano_interval()),
    })
}  # fmt: skip
QUERIES = [
    "select a, a - 1 as x, a - 2 as y, count(*) as c from t group by a, x, y order by c desc, a",
    "select x, y, count(*) from (select a + 1 as x, a % 2 = 0 as y, a from t) group by x, y, a",
    "select upper(s) as u, s, length(s) as n, upper(s) || s as w, sum(b) from t group by u, s, n, w",
    "select a, b, a + b as x, coalesce(a, b) as y, avg(b) from t where s <> 'a' group by x, a, y, b having count(*) > 1",
    "select moment, date_trunc('hour', moment) as h, moment::date as day, min(s) from t group by day, h, moment order by h desc, moment limit 7",
    "select 1 as one, s, 'x' as text, null as nothing, count(*) from t group by one, s, text, nothing",
    "select 1 as one, 2 as two, count(*) from t where a > 100 group by one, two",
    "select 1 as one, 2 as two, count(*) from t group by one, two",
    "select a, a as same, count(distinct s), list(b order by b) from t group by a, same",
    "select x.a, x.a * 2 as twice, count(*) from t x join t y on x.a = y.b group by twice, x.a",
    "select c, count(*) from (select a, -a as c, max(b) as m from t group by a, c) where c > 0 group by c",
    "select case when a > 0 then s end as label, a, s, count(*) from t group by label, a, s",
    # and what keeps all keys
    "select d, d::varchar as x, count(*) from t group by d, x",
    "select d, 1 / d as x, count(*) from t group by d, x",
    "select span, moment + span as x, count(*) from t where b = 1 and a = 1 group by span, x, moment",
    "select a, a - 1 as x, grouping(a), count(*) from t group by rollup (a, x)",
    "select a % 2 as x, a % 4 as y, count(*) from t group by x, y",
    "select a, count(*) from t group by a, a - 1",
]


@pytest.mark.parametrize("query", QUERIES)
def test_answers(query: str) -> None:
    assert_same_as_duckdb(query, TABLES, fuse=("never",))


def test_answers_of_kernels() -> None:
    for query in QUERIES[:2]:
        assert_same_as_duckdb(query, TABLES, fuse=("always",))


def test_a_key_that_raises_raises() -> None:
    table = {"t": pa.table({"a": pa.array([-(2**31), 5], pa.int32())})}
    for query in (
        "select a, a - 1::int as x from t group by a, x",
        "select a from t group by a, a - 1::int",
    ):
        with connected(table) as connection, pytest.raises(OutOfRange):
            connection.sql(query).fetchall()
