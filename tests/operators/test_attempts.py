"""TRY(x): NULL in the rows alone in which x raises, and the same errors as before around it."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.errors import ExecutionError, InvalidQuery
from tests.compare import assert_same_as_duckdb

TABLES = {
    "t": {
        "a": [1, 2, 3, None, 2],
        "b": ["7", "x", None, "", "-3"],
        "l": [[0], [], [2, 1], None, [4]],
    }
}


@pytest.mark.parametrize(
    "query",
    [
        "select try(1 // 0), try('x'::int), try(null), try(5), typeof(try('1'::smallint))",
        "select a, try(10 // (a - 2)) as q from t order by a, q",
        "select try(b::int) as n, count(*) from t group by try(b::int) order by all",
        "select a from t where try(10 // (a - 2)) > 3 order by a",
        "select a, try(l[1] // (a - 1)) as q, try(l)[1] as f from t order by all",
        "select sum(try(10 // (a - 2))), count(try(b::int)) from t",
        "select list_transform([0, 1, 2], lambda x: try(4 // x)), try(list_transform(l, lambda x: 4 // x)) as m from t order by m",
        "select try(try(1 // 0) + 1 // 0), try(coalesce(try(a // 0), a)) as c from t order by c",
        "select a // 2 as h, try(10 // (a // 2)) as q, 10 // (a // 2 + 5) as r from t order by all",
        "select try('2024-13-01'::date), try('x'::json), try(make_date(2024, 13, 1)), try(127::tinyint + 1::tinyint)",
        "select try(10 // nullif(a - 2, 0)) as q, row_number() over (order by a) from t where a < 2 qualify q < 0",
        "select t.a from t left join (values (4)) u(k) on try(8 // (t.a - 2)) = u.k + 4 order by all",
    ],
)
def test_try_is_duckdbs(query):
    assert_same_as_duckdb(query, TABLES, fuse=("always", "never"))


def test_one_row_of_a_chunk_in_many_is_found():
    query = "select sum(q), count(*) - count(q) as n from (select try(1000000 // (i % 4999)) as q from range(30000) r(i))"
    assert_same_as_duckdb(query, fuse=("always", "never"))


@pytest.mark.parametrize("raised", ["1 // a", "a + 'z'::int", "a + (b || 'z')::int"])
def test_no_row_raises_nothing(raised):
    """Also where a constant raises, whatever the rows."""
    query = f"select try({raised}) as q from t where a > 9"
    assert_same_as_duckdb(query, TABLES, fuse=("always", "never"))


@pytest.mark.parametrize(
    "text",
    [
        "select try(sum(a)) from t",
        "select try((select 1))",
        "select try(random())",
        "select try(unnest(l)) from t",
        "select try(row_number() over ()) from t",
    ],
)
def test_what_is_no_value_of_the_row_is_refused(text):
    with fuseline.connect("cpu") as connection:
        connection.sql("create table t as select 1 as a, [1] as l")
        with pytest.raises(InvalidQuery, match=r"TRY\(\)"):
            connection.sql(text)


def test_an_error_of_a_subquery_stays_one():
    with fuseline.connect("cpu") as connection, pytest.raises(ExecutionError):
        connection.sql("select try(y) from (select 1 // x as y from (values (0)) t(x))").to_arrow()


def test_another_constant_has_a_value_of_its_own():
    with fuseline.connect("cpu") as connection:
        texts = [f"select try(i // {n}) as q from range(3, 4) r(i)" for n in (1, 0, 3)]
        assert [connection.sql(text).fetchall() for text in texts] == [[(3,)], [(None,)], [(1,)]]
