"""PREPARE and EXECUTE, variables and macros answer as in DuckDB."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.errors import CatalogError, FuselineError, InvalidQuery, ParseError, UnknownName
from tests.compare import assert_same_as_duckdb

TABLE = (
    "create table t as select * from (values (1, 'x', 1.5), (2, 'y', 2.5), (3, 'x', 7)) v(i, s, d)"
)
EXECUTED = {
    "by place": ("prepare p as select i, ? as q from t where i > $1", "execute p(1)"),
    "by name": ("prepare p as select i from t where s = $name", "execute p(name := 'x')"),
    "without values": ("prepare p as from t", "execute p"),
    "of an expression": ("prepare p as select $1 + $2 as n", "execute p(1 + 1, -2.5)"),
    "of dates": ("prepare p as select $1 + interval 1 day as n", "execute p(date '2024-01-31')"),
    "that insert": ("prepare w as insert into t values ($1, $2, 0); execute w(9, 'new'); execute w(10, null)", "from t"),
    "that were prepared again": ("prepare p as select 1 as a; execute p; deallocate p; prepare p as select 2 as b", "execute p"),
    "variable": ("set variable x = (select max(i) from t) + 1", "select getvariable('x') as v, i from t where i < getvariable('x')"),
    "variable of a text": ("set variable x = 'a' || 'b'; set variable y = date '2024-02-01'", "select getvariable('x') as x, getvariable('Y') as y"),
    "variable of a list": ("set variable x = (select list(i order by i) from t)", "select i, getvariable('x') as x, i in getvariable('x')[2:] as y from t"),
    "variable of a struct": ("set variable x = {'a': [1, null], 'b': 'c', 'd': date '2024-02-01'}; set variable y = []; set variable z = '\\xAA'::blob", "select getvariable('x') as x, getvariable('x').a[1] as a, getvariable('y') as y, getvariable('z') as z, (select list(value order by name) from duckdb_variables() where name <> 'z') as shown"),
    "variable of a map": ("set variable x = map {'a': [1, null], 'b': null}; set variable y = {'m': map {1: 'x'}}; set variable z = (1, 'a')", "select getvariable('x') as x, getvariable('x')['a'][1] as a, getvariable('y').m[1] as m, getvariable('z') as z"),
    "variable of a time": ("set variable x = time '10:00:00.5'; set variable y = timestamptz '2024-01-01 00:00:00+02'", "select getvariable('x') as x, getvariable('y') as y"),
    "variable that is reset": ("set variable x = 1; reset variable x", "select getvariable('x') is null as gone"),
    "macro": ("create macro twice(a, b := 2) as a * b", "select i, twice(i) as x, twice(i + 1, b := 5) as y from t"),
    "macro with a subquery": ("create macro before(a) as (select max(i) from t where i < a)", "select before(3) as b"),
    "macro of an aggregate": ("create function spread(x) as max(x) - min(x)", "select s, spread(i) as r from t group by s"),
    "macro of macros": ("create macro one(a) as a + 1; create macro two(a) as one(one(a))", "select two(i) as r from t where two(i) > 3"),
    "macro in temp": ("create or replace temp macro one(a) as a + 1", "select one(2) as r"),
    "table macro": ("create macro above(n) as table select * from t where i > n", "select r.i from above(1) r join t using (i)"),
    "macro dropped and made": ("create macro f(a) as a; drop macro f; create macro f(a) as -a", "select f(3) as f"),
}  # fmt: skip


@pytest.mark.parametrize(("setup", "query"), EXECUTED.values(), ids=EXECUTED.keys())
def test_session_statements(setup: str, query: str, backend: str) -> None:
    assert_same_as_duckdb(query, backend=backend, setup=[TABLE, *setup.split("; ")])


def test_a_macro_belongs_to_its_transaction(connection: Any) -> None:
    connection.execute("begin; create macro f(a) as a + 1; rollback")
    with pytest.raises(UnknownName, match='"f"'):
        connection.execute("select f(1)")


def test_a_prepared_statement_reads_later_versions(connection: Any) -> None:
    connection.execute(
        "create table n as select 1 as a; prepare p as select sum(a)::int as s from n"
    )
    assert connection.execute("execute p").fetchall() == [(1,)]
    connection.execute("insert into n values (5)")
    assert connection.execute("execute p").fetchall() == [(6,)]
    connection.execute("set variable v = 1")
    assert connection.execute("select getvariable('v')").fetchall() == [(1,)]
    connection.execute("set variable v = 2")
    assert connection.execute("select getvariable('v')").fetchall() == [(2,)]


@pytest.mark.parametrize(("text", "kind", "said"), [
    ("execute nope", UnknownName, 'no prepared statement "nope"'),
    ("prepare p as selct 1", ParseError, "selct"),
    ("prepare p as select ?; execute p(1, 2)", InvalidQuery, "value for"),
    ("prepare p as select ?; execute p", InvalidQuery, "has no value"),
    ("prepare p as execute p; execute p", FuselineError, "executes itself"),
    ("deallocate nope", UnknownName, 'no prepared statement "nope"'),
    ("set variable x = nope", UnknownName, '"nope"'),
    ("set variable x", ParseError, "SET VARIABLE name = value"),
    ("create macro f(a, a) as a", InvalidQuery, "two parameters"),
    ("create macro f(a) as a +", ParseError, "end"),
    ("create macro f(a) as a from t", ParseError, "an expression"),
    ("create macro upper(a) as a", FuselineError, "is a function"),
    ("create macro f(a) as a; create macro f(a) as a", CatalogError, "already"),
    ("create macro f(a) as a; select f()", InvalidQuery, "which takes \\(a\\)"),
    ("create macro f(a) as a; select f(1, 2)", InvalidQuery, "do not fit"),
    ("create macro f(a) as a; select f(b := 1)", InvalidQuery, "do not fit"),
    ("create macro f(a) as a over nothing; select f(1)", ParseError, "over"),
    ("create macro f(a) as f(a) + 1; select f(1)", InvalidQuery, "itself|too deep"),
    ("create macro f() as table select 1; select f()", UnknownName, '"f"'),
    ("drop macro nope", UnknownName, 'no macro "nope"'),
])  # fmt: skip
def test_what_is_wrong_is_said(text: str, kind: type, said: str, connection: Any) -> None:
    with pytest.raises(kind, match=said):
        connection.execute(text)
    assert connection.execute("select 1").fetchall() == [(1,)]
