"""Commas behind the last of several, stars in parentheses and with an alias, and rows without values: as DuckDB takes or refuses them."""

import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError, Unsupported
from tests.compare import assert_same_as_duckdb

TABLES = {"t": pa.table({"a": [1, 2, 2], "b": [3, None, 4]}), "u": pa.table({"a": [2], "c": ["x"]})}

SAME = [
    "with x as (select 1), select 2",
    "with x(a,) as (select 1,), select a, from x,",
    "with x as (select 1 as a), y as materialized (select 2 as b), (select a, b from x, y)",
    "with x as (select 1), from t",
    "with recursive x as (select 1 as n), select n from x",
    "select (with x as (select 1), select 2)",
    "select * from (with x as (select 1 as a), select a, from x,) y",
    "with x as (select (1) as a), y as (with z as (select 2 as b), select b from z), select (a), (b), from x, y,",
    "with x as (select 1 as a) select (a), from x",
    "with x as (select 1 as a) select * from x, (select 2 as b) y",
    "select (select 1,)", "select (values (1),)", "select (values (1,),)", "select (select 1, order by 1,)",
    "select a in (select 2,) from t", "select exists (select 1,)",
    "select sum(a,), coalesce(a, b,) from t group by a, b,",
    "select (*) from t", "select ((*)) from t", "select (*), 1, (*) from t", "select distinct (*) from t",
    "from t select (*)", "select (* exclude (a)), a from t", "select (* replace (a + 1 as a)) from t",
    "select (t.*), ((u.*)) from t, u", "select (t.* exclude (a)) from t", "select (*), a from t group by all",
    "select (*) as x from t", "select * as x, a from t", "select t.* as x, u.c from t, u",
    "select * exclude (a) as x from t", "select x: * from t", "select (*) x, 1 from t",
    "select count((*)), count(((*))) from t",
    "select () = (), () <> (), () < (), () >= (), () in (()), () is distinct from () from t",
]  # fmt: skip
REFUSED = [
    "with x as (select 1), , select 2", "with x as (select 1),, select 2", "with x as (select 1),",
    "with , x as (select 1) select 2", "select (, 1)", "select (select 1,,)", "select (from t select a limit 1,)",
    "select a from t limit 1,", "select (*) + 1 from t", "select -(*) from t", "select (*)::int from t",
    "select sum((*)) from t", "select count(distinct (*)) from t", "select coalesce((*)) from t", "select (*,) from t",
    "select ((*), 1) from t", "select a in (*) from t", "select * from t where (*)", "select a from t limit (*)",
    "select (*)", "values ((*))", "select () = (1,)",
]  # fmt: skip


@pytest.mark.parametrize("query", SAME)
def test_it_is_answered_as_by_duckdb(query):
    assert_same_as_duckdb(query, TABLES)


@pytest.mark.parametrize("query", REFUSED)
def test_it_is_refused_as_by_duckdb(query):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as theirs, fuseline.connect("cpu") as ours:
        for name, table in TABLES.items():
            theirs.register(name, table)
            ours.register(name, table)
        with pytest.raises(duckdb.Error):
            theirs.execute(query)
        with pytest.raises(FuselineError):
            ours.sql(query).fetchall()


@pytest.mark.parametrize("query", ["select ()", "select () from t", "select (), 1", "select row()"])
def test_rows_without_values_are_refused_with_their_place(query):
    with fuseline.connect("cpu") as connection:
        connection.register("t", TABLES["t"])
        with pytest.raises(Unsupported, match="A row without values") as raised:
            connection.sql(query)
        assert "^" in str(raised.value)
