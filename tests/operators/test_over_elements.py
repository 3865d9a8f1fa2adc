"""Lambdas over lists answer as DuckDB: in list_transform, list_filter, list_reduce, and as list comprehensions."""

from __future__ import annotations

import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

TABLE = pa.table(
    {
        "a": pa.array([1, 0, None, 3, 2, 1], pa.int32()),
        "g": ["x", None, "y", "x", "é", "y"],
        "l": pa.array([[3, 1, None, 2], None, [], [5], [None], [7, 7, 0]], pa.list_(pa.int32())),
        "m": [[[1, 2], None], [], None, [[], [3]], [[None]], [[4, 5, 6]]],
        "w": [["b", "a"], [None], [], None, ["x", "", "y"], ["b"]],
        "s": [[{"p": 1, "q": "u"}], [], None, [{"p": None, "q": "v"}], [None], [{"p": 9, "q": None}]],
    }
)  # fmt: skip
QUERIES = (
    "select list_transform(l, lambda x: x + 1), apply(l, lambda x, i: x * i), list_apply(l, lambda y: a) from t",
    "select array_transform(l, lambda x: null), array_apply(l, lambda x: 'a'), list_transform(w, lambda x: x || g) from t",
    "select list_filter(l, lambda x: x > 1), filter(l, lambda x, i: i > a), array_filter(l, lambda x: x), list_filter(w, lambda x: null) from t",
    "select list_reduce(l, lambda x, y: x + y, 10), reduce(l, lambda x, y, i: x * 10 + i + a, 0), array_reduce(w, lambda x, y: x || coalesce(y, '-'), g) from t",
    "select list_reduce(l, lambda x, y: coalesce(x, y) - coalesce(y, 0)), list_reduce(l, lambda x, y, i: x + i) from t where len(l) > 0 or l is null",
    "select [x * 2 for x in l if x > 1], [x * i + a for x, i in l], [a for x in w], [i for x, i in l if x is null] from t",
    "select list_transform(m, lambda x: list_transform(x, lambda y: y + len(x) + a)), [[y for y in x if y > a] for x in m] from t",
    "select list_transform(m, lambda x: list_reduce(x, lambda x, y: x + y, a)), list_transform(m, lambda l: list_filter(l, lambda l: l > 1)) from t",
    "select list_transform(s, lambda e: e.p + a), list_filter(s, lambda e: e['q'] = 'v'), list_transform(l, lambda x: {'v': x, 'w': [x, a]}) from t",
    "select list_transform(l, lambda a: a + t.a), list_transform(l, lambda x: 6 // a) from t where a <> 0",
    "select a, list_transform(l, lambda x: case when x > 1 then 6 // x else 0 end) v from t order by list_sum(list_transform(l, lambda x: -x)), a",
    "select list_transform([1, 2], lambda x: x + sum(a)), list_sum(list_transform(list(a), lambda x: x * max(a))) from t",
    "select a, list_transform([1, 2], lambda x: x + row_number() over (order by a)) from t order by a",
    "select list_filter(l, lambda x: x > 1), list_sum(l), count(*) from t group by list_filter(l, lambda x: x > 1), list_sum(l)",
    "select a, unnest(list_transform(l, lambda x: x * 2)) from t",
    "select (select list_transform([1, 2], lambda x: x + t.a)) v, a from t order by a",
    "select list_transform(null, lambda x: x + 1), list_transform([], lambda x: x + 1), list_filter([1], lambda x: 'true'), list_reduce([1.5, 2.25, 3.35], lambda x, y: x * y)",
    "select list_reduce([1, 2]::tinyint[], lambda x, y: x + y, 1000), list_reduce([2147483647, 0, 0], lambda x, y, i: x + i), list_reduce([[1], [2]], lambda x, y: x || y, [])",
    "select a as x, list_transform([10], lambda x: x), list_transform([1], lambda y: y + x) from t",
)  # fmt: skip
WRONG = (
    "list_transform([1], x -> x + 1)", "list_transform([1], (x, i) -> x)", "list_transform([1], 5)", "list_transform([1])",
    "list_transform([1], lambda x, i, j: x)", "list_transform([1], lambda x, x: 1)", "list_transform(5, lambda x: x)",
    "list_transform(lambda x: x, [1])", "list_reduce([1], lambda x: x)", "list_filter([1], lambda x: x, 2)", "abs(lambda x: x)",
    "list_transform([1], lambda x: (select x))", "list_transform([1], lambda x: sum(x))", "list_transform([1], lambda x: z)",
    "list_transform([1], lambda x: unnest([x]))", "list_reduce([1], lambda x, y: 'a')", "list_reduce([1], lambda x, y: x + y, 'a')",
    "list_reduce([]::int[], lambda x, y: x)", "list_transform([0], lambda x: 1 // x)", "list_transform(['a'], lambda x: x::int)",
    "list_filter(['a'], lambda x: x)", "[x for x, x in [1]]", "[x for y in [1]]",
)  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_lambdas_answer_as_duckdb(query: str) -> None:
    assert_same_as_duckdb(query, {"t": TABLE}, backend="cpu", fuse=("always", "never"))


def test_few_rows() -> None:
    query = "select list_transform(l, lambda x: x + a), list_filter(w, lambda x: x = g), list_reduce(l, lambda x, y: x + y, a) from t"
    for rows in (TABLE.slice(0, 0), TABLE.slice(1, 1), TABLE.slice(2, 1)):
        assert_same_as_duckdb(query, {"t": rows}, backend="cpu")


def test_what_is_wrong_is_refused_at_its_place() -> None:
    with fuseline.connect("cpu") as connection:
        for call in WRONG:
            with pytest.raises(FuselineError) as caught:
                connection.sql(f"select {call}").fetchall()
            assert caught.value.span is not None or "[x for" in call, call
        assert connection.sql("select 1").fetchall() == [(1,)]


def test_plans_show_lambdas() -> None:
    with fuseline.connect("cpu") as connection:
        connection.register("t", TABLE)
        query = "select [x + a for x, i in l if i > 1] v, list_reduce(l, lambda p, q: p + q, a) r from t"
        plan = str(connection.sql(query).explain())
    assert "[x + a for x, i in l if i > 1]" in plan
    assert "list_reduce(l, lambda p, q: p + q, a)" in plan
