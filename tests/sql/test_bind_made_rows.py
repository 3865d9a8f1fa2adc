"""repeat(), repeat_row(), query() and query_table() in FROM, and SHOW and SET of a setting, against DuckDB."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.errors import AccessDenied, FuselineError
from tests.compare import assert_same_as_duckdb

TABLES = {"t": {"a": [1, 2, None], "b": ["x", None, "y"]}, "u": {"b": ["z"], "c": [1.5]}}
SETUP = ["set variable v = 't'", "set variable s = 'select 7 as z'"]


@pytest.mark.parametrize(
    "query",
    [
        "from repeat(1, 3)",
        "from repeat('x', 2) r join repeat(null, 1 + 1) on true",
        "from repeat([1, null], 2) r(z)",
        "select * from repeat(2.5, 2), repeat(date '2024-01-01', 1), repeat(true, 2)",
        "from repeat(1, 0)",
        'select sum("1"), count(*) from repeat(1, 100000)',
        "select t.a, g, r.x from t, lateral generate_series(1, t.a) g join lateral range(t.a) r(x) on true order by all",
        "from repeat_row(1, 'a', num_rows = 3)",
        "select y, x + 1 from repeat_row(1, 2.5, num_rows := 2) r(x, y)",
        "from query('select 1 as a, 2 as b')",
        "select q.a, t.b from t join query('select a from t where a > 1') q using (a)",
        "with c as (select 5 as x) select * from c, query('from ' || 't') order by all",
        "from query(getvariable('s'))",
        "from query('with recursive r as (select 1 as n union all select n + 1 from r where n < 3) from r') order by n",
        "from query_table('t') order by all",
        "from query_table(['t', 't']) order by all",
        "from query_table(['t', 'u'], true) order by all",
        "from query_table(getvariable('v')) order by all",
    ],
)
def test_rows_are_made_as_in_duckdb(query):
    assert_same_as_duckdb(query, TABLES, setup=SETUP, fuse=("always", "never"))


@pytest.mark.parametrize(
    ("statements", "query"),
    [
        (["set time zone 'America/New_York'"], "show TimeZone"),
        (
            ["set time zone 'Asia/Tokyo'"],
            "select timestamptz '2024-01-01 00:00:00+00'::varchar as v",
        ),
        (["create table timezone (a integer)"], "show timezone"),
        (["set threads = 1"], "show threads"),
    ],
)
def test_settings_are_shown(statements, query):
    assert_same_as_duckdb(query, setup=statements)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from repeat(1, -1)", "0 or more"),
        ("from repeat(1, null)", "0 or more"),
        ("select * from t, repeat(t.a, 2)", "constants"),
        ("from repeat_row(1, 2)", "num_rows = 3"),
        ("from query('select 1; select 2')", "one query"),
        ("from query('create table z (a int)')", "one query"),
        ("from query(null)", "one query"),
        ("from query('from nope')", '"nope"'),
        ("from query_table('t; drop table t')", "no name of a table"),
        ("from query_table('t where a > 1')", "no name of a table"),
        ("from query_table([])", "name of a table"),
        ("from query_table(['t', 'u'])", "select the same number"),
        ("set time zone 'Nowhere/Land'", "Nowhere"),
        ("show nope", '"nope"'),
    ],
)
def test_what_is_no_such_row_is_refused(text, message):
    tables = (
        "create table t as select 1 as a, 2 as b, 3 as c; create table u as select 1 as a, 2 as b"
    )
    with fuseline.connect("cpu") as connection:
        connection.execute(tables)
        with pytest.raises(FuselineError, match=message):
            connection.sql(text)


def test_a_text_reads_no_file_that_its_query_may_not(tmp_path):
    path = f"''{tmp_path}/t.csv''"
    with fuseline.connect("cpu") as connection:
        connection.execute(f"copy (select 1 as a) to '{tmp_path}/t.csv'")
        assert connection.sql(f"from query('from {path}')").fetchall() == [(1,)]
        connection.execute("set enable_external_access = false")
        for text in (f"from query('from {path}')", f"from query('from read_csv({path})')"):
            with pytest.raises(AccessDenied):
                connection.sql(text)


def test_a_text_sees_what_changed_before_the_next_run():
    query = "from query(getvariable('s'))"
    with fuseline.connect("cpu") as connection:
        connection.execute("create table t as select 1 as a; set variable s = 'from t'")
        asked = [connection.sql(query).fetchall()]
        for change in ("insert into t values (2)", "set variable s = 'select 9 as b'"):
            connection.execute(change)
            asked.append(sorted(connection.sql(query).fetchall()))
        assert asked == [[(1,)], [(1,), (2,)], [(9,)]]
