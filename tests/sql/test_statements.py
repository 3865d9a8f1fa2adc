"""Statements around queries: tables, views, settings, EXPLAIN, scripts."""

from __future__ import annotations

from typing import Any

import pytest

import fuseline
from fuseline.errors import CatalogError, InvalidQuery, UnknownName
from tests.compare import assert_same_as_duckdb
from tests.sql.tables import TABLES

pytestmark = pytest.mark.usefixtures("backend")

TYPES = (
    "a int, b decimal(5, 2) not null, c varchar(10) primary key, d double, e text, f int4, g numeric, h real, "
    "i float8, j int64, k string, l timestamp, m bool, n date, o tinyint, p ubigint, q smallint default null"
)
SCRIPTS = {
    "create and insert": ["create table n (a int, b varchar)", "insert into n values (1, 'x'), (null, 'y')"],
    "empty table": ["create table n (a int, b decimal(5, 2))"],
    "every type": [f"create table n ({TYPES})", "insert into n (b, c) values (1.5, 'k')"],
    "column list": ["create table n (a int, b int, c int)", "insert into n (c, a) values (1, 2)"],
    "from a query": ["create table n (a bigint, b varchar)", "insert into n select x, s from t"],
    "casts": ["create table n (a int, b varchar)", "insert into n values ('5', 2.5), (1.5, date '2024-01-01')"],
    "by name": ["create table n (a int, b int)", "insert into n by name select 1 as b"],
    "twice": ["create table n as select x from t", "insert into n from n", "insert into n values (7)"],
    "with a WITH": ["create table n (a int)", "insert into n with q as (select 3) select * from q"],
    "as query": ["create table n as select x, count(*) as n from t group by x"],
    "as values": ["create table n as values (1, 'a'), (2, null)"],
    "as query with names": ["create table n (p, q) as select x, y from t"],
    "repeated names": ["create table n as select x, x, x + 1 from t"],
    "replace": ["create table n as select 1 as a", "create or replace table n as select 'b' as b"],
    "if not exists": ["create table n as select 1 as a", "create table if not exists n as select 2 as a"],
    "temp": ["create temp table n as select x from t where x > 1"],
    "drop and create": ["create table n as select 1", "drop table n", "create table n as select 2 as b"],
    "drop if exists": ["drop table if exists n", "create table n as select 1 as a"],
    "view": ["create view n as select x, sum(y) as total from t group by x"],
    "view with names": ["create view n(p, q) as select x, y from t"],
    "view of a view": ["create view m as select x + 1 as k from t", "create view n as select k from m where k > 2"],
    "replaced view": ["create view n as select 1 as a", "create or replace view n as select 2 as b"],
    "view sees later rows": [
        "create table m (a int)", "create view n as select count(*) as c from m", "insert into m values (1), (2)",
    ],
    "index": ["create table n as select x from t", "create index i on n (x)"],
    "quoted names": ['create table "n" ("A b" int, "select" int)', 'insert into "n" values (1, 2)'],
    "schema": ["create table main.n as select x from main.t", "insert into main.n values (9)"],
    "transaction": ["begin", "create table n as select 1 as a", "commit"],
}  # fmt: skip


@pytest.mark.parametrize("setup", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_tables_and_views(setup: list[str], backend: str) -> None:
    assert_same_as_duckdb("select * from n", TABLES, backend=backend, setup=setup)


def test_a_script_gives_the_last_answer(connection: Any) -> None:
    script = (
        "create table n (a int); -- one; two\ninsert into n values (1), (2); select sum(a) from n;"
    )
    assert connection.execute(script).fetchall() == [(3,)]


def test_describe(connection: Any) -> None:
    rows = connection.execute("describe select x, p from u").fetchall()
    assert [row[:2] for row in rows] == [("x", "INTEGER"), ("p", "DECIMAL(3,2)")]
    assert connection.execute("describe t").fetchall() == connection.execute("show t").fetchall()


def test_show_tables(connection: Any) -> None:
    connection.execute("create view v as select 1")
    assert connection.execute("show tables").fetchall() == [("empty",), ("t",), ("u",), ("v",)]


def test_set_and_reset(connection: Any) -> None:
    connection.execute("set threads = 1; set threads to 1; reset threads; pragma threads=1")
    with pytest.raises(UnknownName, match="thread"):
        connection.execute("set thread = 1")


@pytest.mark.parametrize("statement", [
    "pragma enable_progress_bar", "analyze", "vacuum", "checkpoint", "drop index if exists i",
])  # fmt: skip
def test_accepted_without_effect(statement: str, connection: Any) -> None:
    connection.execute(statement)
    assert connection.execute("select 1").fetchall() == [(1,)]


def test_explain_shows_the_plan_and_analyze_its_run(connection: Any) -> None:
    plan = connection.execute("explain select x from t where x > 1").fetchall()
    assert "x > 1" in str(plan)
    run = connection.execute("explain analyze select x from t where x > 1").fetchall()
    assert "rows" in str(run)


def test_a_table_that_exists(connection: Any) -> None:
    connection.execute("create table n (a int)")
    with pytest.raises(CatalogError, match="n"):
        connection.execute("create table n (a int)")
    with pytest.raises(CatalogError, match="n"):
        connection.execute("drop view n")
    with pytest.raises(UnknownName, match="nn"):
        connection.execute("drop table nn")


def test_a_view_takes_no_rows(connection: Any) -> None:
    connection.execute("create view w as select 1 as a")
    with pytest.raises(CatalogError, match="is a view"):
        connection.execute("insert into w values (1)")


def test_a_failed_insert_leaves_the_table_as_it_was(connection: Any) -> None:
    connection.execute("create table n (a int); insert into n values (1)")
    with pytest.raises(InvalidQuery, match="takes 1 column"):
        connection.execute("insert into n values (1, 2)")
    with pytest.raises(fuseline.errors.ConversionError):
        connection.execute("insert into n select s from t")
    assert connection.execute("select * from n").fetchall() == [(1,)]
