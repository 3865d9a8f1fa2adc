"""unnest() in FROM and in SELECT answers as DuckDB's, also of the lists of outer rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb, connected

TABLE = pa.table(
    {
        "i": [1, 2, 3, 4],
        "l": pa.array([[1, 2], None, [], [5, None, 7]], pa.list_(pa.int32())),
        "m": [["a"], ["x", "y"], [], ["z"]],
        "s": [
            {"a": 1, "b": {"c": 2, "d": "u"}},
            None,
            {"a": 3, "b": None},
            {"a": None, "b": {"c": 4, "d": None}},
        ],
        "n": [[[1], [2, 3]], None, [None, []], [[4, None]]],
    }
)
QUERIES = (
    "select * from unnest([1,2]) with ordinality",
    "select i, u.* from t, unnest(l) u",
    "select i,a from t left join unnest(l) u(a) on true",
    "select i,a,b from t, lateral unnest(l) with ordinality as u(a,b)",
    "select * from unnest([{'a':1}])",
    "select * from unnest([{'a':1}]) x",
    "select unnest(s), i from t",
    "select unnest([s]) x, i from t",
    "select unnest([s,s], recursive := true) x, i from t",
    "select unnest(s, recursive := true), i from t",
    "select unnest(s, recursive := true, keep_parent_names := true), i from t",
    "select unnest([[s]], keep_parent_names := true, max_depth := 4) from t",
    "select unnest(l), unnest(m), i from t",
    "select unnest(l)+1 as x from t order by x desc",
    "select unnest(n), i from t",
    "select unnest(n, recursive := true) x, i from t",
    "select unnest([[[1]],[[2],[3,4]]], max_depth := 2)",
    "select i, (select sum(x) from unnest(l) u(x)) from t",
    "select i, (select sum(x) from (select unnest(l) x)) from t",
    "select distinct unnest(m) from t",
    "select unnest(n, recursive := true) x, unnest(l) y, i from t",
    "select unnest(n, recursive := true) x, unnest(n) y, unnest([[1], [2, 3], []], recursive := true) z, i from t",
    "select unnest([[[1], [2]], [[3, 4, 5]]], recursive := true) a, unnest([[10, 20], [30]], recursive := true) b, unnest([7]) c",
    "select unnest([[[1], [2]], [[3]]], max_depth := 2) a, unnest(['x', 'y', 'z']) b, count(*) from t group by a, b",
    "select regexp_split_to_table('a b', ' ') a, unnest([[1, 2], [3]], recursive := true) b",
    "select unnest(null)",
    "select unnest(l) x from t order by i, x limit 2",
    "select i, unnest from t, unnest(m)",
    "select u.unnest, unnest from unnest([1]) u",
    "select unnest(l) x, row_number() over (order by i) from t",
    "select case when i=1 then unnest(l) end from t",
    "select 1 in (select unnest([1,2]))",
    "select count(*), sum(x) from t, unnest(l) u(x) where x > 1 and i < 4",
    "select i, x, y from t, unnest(n) u(x), unnest(x) v(y)",
    "select a.i, x from t a, unnest(a.l) u(x) join t b on b.i = x",
    "select i from t where exists (select 1 from unnest(l) u(x) where x > 4)",
    "select i from t where 2 in (select unnest(l))",
    "select i, x, count(*) from t, unnest(m) u(x) group by all",
    "select i, (select max(x) from unnest(l) u(x) where x > i) from t",
    "select sum(c) from (select i, unnest(l) c from t) where i > 1",
    "select unnest(['a','b']) x, unnest([1]) y, 5 z",
    "select i, x from t left join unnest(l) u(x) on x > 1",
    "select unnest(l) as x, count(*), sum(i) from t where i <> 2 group by x order by all",
    "select unnest(l) % 2 as x, i % 2 as y, max(i) from t group by 1, y having unnest(l) % 2 = 1 order by all",
    "select unnest(l) as x, rank() over (order by count(*)) from t group by rollup (x) order by all",
    "select count(*) from t group by unnest(l)",
)


@pytest.mark.parametrize("query", QUERIES)
def test_unnest_answers_as_duckdb(query: str) -> None:
    assert_same_as_duckdb(query, {"t": TABLE}, backend="cpu", fuse=("always", "never"))


@pytest.mark.parametrize("rows", [TABLE.slice(0, 0), TABLE.slice(2, 1), TABLE.slice(3, 1)])
def test_few_rows(rows: pa.Table) -> None:
    query = "select i, x, unnest(m) y from t left join unnest(l) u(x) on true"
    assert_same_as_duckdb(query, {"t": rows}, backend="cpu", fuse=("always", "never"))


@pytest.mark.parametrize(
    "query",
    [
        "select x, count(*), sum(k) from t, unnest(l) u(x) group by x",
        "select l, count(*), min(k) from t group by l",
        "select distinct l from t",
    ],
)
def test_many_elements_in_little_memory(query: str) -> None:
    rows = pa.table({"k": range(3000), "l": [list(range(i % 50)) for i in range(3000)]})
    with connected({"t": rows}, memory_limit=1_500_000) as tight:
        assert_same_as_duckdb(query, {"t": rows}, connection=tight)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select unnest(5)", "takes a list or a struct"),
        ("select 1 where unnest([true])", "not allowed in WHERE"),
        ("select sum(unnest([1]))", "not allowed in the arguments of an aggregate"),
        ("select unnest(unnest([[1]]))", "not stand inside of itself"),
        ("select count(*) having unnest([true])", "unnest.. in HAVING is a key"),
        ("select unnest([1]) x, unnest([2]) y, count(*) group by x", "GROUP BY"),
        ("select unnest([1], depth := 2)", "recursive := true"),
        ("select * from unnest(3)", "takes a list"),
        ("select * from unnest([1], [2])", "takes one list"),
        ("select unnest({'a': 1}) + 1", "an item of SELECT of its own"),
        ("select * from unnest([1]) u(a, b)", "has 1 columns"),
    ],
)
def test_what_is_wrong_is_refused(query: str, message: str) -> None:
    with fuseline.connect("cpu") as connection, pytest.raises(FuselineError, match=message):
        connection.sql(query)
