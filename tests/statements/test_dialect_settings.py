"""Settings that give text another meaning: `->` as a lambda, `/` as `//`, a subquery of several rows as its first one."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.errors import InvalidQuery, UnknownName
from tests.compare import assert_same_as_duckdb

TABLES = {"t": {"a": [1, 2, None, 7], "l": [[1, 2], [], None, [3, None]], "j": ['{"a": [1]}'] * 4}}
ARROWS = """
select list_transform(l, x -> x + a), list_filter(l, x -> x > 1 and x < 3), [1, 2].list_transform(x -> x || 'a') from t
select list_reduce([1, 2, 3], (x, y) -> x + y), list_reduce(['a'], (x, y) -> x || y, 'b'), list_transform([1], (x) -> x)
select list_transform([[1], [2]], x -> list_transform(x, y -> y + x[1])), list_filter([1, 2], x -> not x = 1)
select list_filter(list_transform(l, x -> x * a), y -> y > 2 or y is null), list_transform(l, lambda x: x) from t
select columns(c -> c = 'a' or c = 'l') from t
select j::json -> 'a', list_transform([j], x -> json_extract(x, 'a')), upper(j -> 'a') from t
""".strip().splitlines()


@pytest.mark.parametrize("query", ARROWS)
def test_arrows_make_lambdas(query: str) -> None:
    setup = ["set lambda_syntax = 'ENABLE_SINGLE_ARROW'"]
    assert_same_as_duckdb(query, TABLES, setup=setup, fuse=("always", "never"))


@pytest.mark.parametrize(
    "query", ["select list_transform([1], x -> x + 1)", "select columns(c -> c = 'a') from t"]
)
def test_arrows_are_refused_where_no_setting_asks_for_them(query: str) -> None:
    with fuseline.connect(device="cpu") as connection:
        connection.execute("create table t as select 1 as a")
        with pytest.raises(InvalidQuery, match="lambda x: x") as caught:
            connection.sql(query)
    assert caught.value.span is not None
    assert query[caught.value.span.start : caught.value.span.end] in ("x ->", "c ->")


@pytest.mark.parametrize(
    "query",
    [
        "select 7 / 2, 7 // 2, a / 2 as h, 7.5 / 2, 7 / a, -7 / 2 from t",
        "select sum(a) / count(*), a / 2 from t group by a / 2 order by all",
    ],
)
def test_slashes_divide_whole(query: str) -> None:
    setup = ["set integer_division = true"]
    assert_same_as_duckdb(query, TABLES, setup=setup, fuse=("always", "never"))


def test_the_setting_holds_for_later_plans_alone() -> None:
    with fuseline.connect(device="cpu") as connection:
        assert connection.sql("select 7 / 2").fetchall() == [(3.5,)]
        connection.execute("set integer_division = true")
        assert connection.sql("select 7 / 2").fetchall() == [(3,)]
        connection.execute("reset integer_division")
        assert connection.sql("select 7 / 2").fetchall() == [(3.5,)]


@pytest.mark.parametrize("name", ["enable_profiling", "profiling_output", "profiling_mode"])
def test_a_profile_that_nobody_writes_is_refused(name: str) -> None:
    with fuseline.connect(device="cpu") as connection:
        with pytest.raises(UnknownName, match="EXPLAIN ANALYZE"):
            connection.execute(f"set {name} = 'profile.json'")
        assert connection.sql("select 1").fetchall() == [(1,)]


def test_of_several_rows_the_first_is_the_value() -> None:
    setup = ["set scalar_subquery_error_on_multiple_rows = false"]
    query = "select (select a from t order by a desc), (select a from t where false)"
    assert_same_as_duckdb(query, TABLES, setup=setup, fuse=("always", "never"))
