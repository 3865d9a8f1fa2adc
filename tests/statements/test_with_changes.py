"""INSERT, UPDATE and DELETE as entries of WITH, against DuckDB."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

SETUP = [
    "create table t (id integer, v varchar)",
    "create table u (id integer, v varchar)",
    "insert into t values (1, 'a'), (2, 'b'), (3, null)",
]
INSERT = "with i as (insert into t values (4, 'd'), (5, 'e') returning *)"


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "query",
    [
        f"{INSERT} select * from i order by id",
        f"{INSERT} select a.id, b.v from i a, i b order by all",
        f"{INSERT} select count(*), (select count(*) from t) from i",
        f"{INSERT} select v, sum(id) over (order by id) from i union all select 'z', 1 order by all limit 2",
        "with x as (select 7 as n), i(k) as (insert into t select n, 'x' from x returning id + 1), y as (select k * 2 as z from i) from y, i",
        "with d as (delete from t where id < 3 returning *), i as (insert into u from d returning *) select * from i, (select count(*) from t) order by all",
        "with c as (update t set v = 'q' where id < 3) select 1 as one, count(*) over () from c",
        "with c as (insert into u from t) from c, u order by id",
        "with c as (update t set v = u.v from u where u.id = t.id returning t.v) select count(*) from c",
        f"{INSERT}, j as (update t set v = 'n' where id in (select id from i) returning *) select * from j order by id",
        f"{INSERT} insert into u select id, v || v from i returning v",
        f"{INSERT} update t set v = i.v from i where t.id + 3 = i.id returning t.*",
        f"{INSERT} delete from t where id in (select id - 3 from i) returning id",
    ],
)
def test_rows_are_duckdbs(query: str) -> None:
    assert_same_as_duckdb(query, setup=SETUP, fuse=("always", "never"))


@pytest.mark.parametrize("then", ["select 1", "select * from i", "insert into u from i"])
def test_entries_are_carried_out_whoever_reads_them(then: str) -> None:
    tables = "select 't' as w, * from t union all select 'u', * from u order by all"
    assert_same_as_duckdb(f"{INSERT} {then}; {tables}", setup=SETUP)


def test_values_of_a_prepared_statement() -> None:
    prepared = "prepare p as with i as (insert into t values ($1, $2) returning *) from i"
    executed = "execute p(8, 'p'); execute p(9, 'q'); from t order by id"
    assert_same_as_duckdb(executed, setup=[*SETUP, prepared])


@pytest.mark.parametrize("within", [False, True])
def test_an_error_undoes_all_of_it(within: bool) -> None:
    with fuseline.connect("cpu") as connection:
        for statement in SETUP:
            connection.execute(statement)
        if within:
            connection.execute("begin")
        with pytest.raises(FuselineError, match="to INTEGER"):
            connection.sql(f"{INSERT} select (v || 'x')::integer from i")
        if within:
            connection.execute("rollback")
        assert connection.sql("select count(*) from t").fetchall() == [(3,)]
        connection.sql(f"{INSERT} merge into u using i on false when not matched then insert")
        assert connection.sql("select count(*) from u").fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (f"select * from ({INSERT} from i)", "a statement of its own"),
        (f"create view w as {INSERT} from i", "a statement of its own"),
        ("with recursive i as (delete from t returning *) from i", "WITH RECURSIVE"),
        (f"explain {INSERT} from i", "EXPLAIN takes a query"),
        ("with i as (drop table t) select 1", "Syntax error"),
        ("with i as (delete from t returning *) select nowhere from i", "nowhere"),
    ],
)
def test_where_with_changes_nothing(query: str, message: str) -> None:
    with fuseline.connect("cpu") as connection:
        for statement in SETUP:
            connection.execute(statement)
        with pytest.raises(FuselineError, match=message):
            connection.sql(query)
        assert connection.sql("select count(*) from t").fetchall() == [(3,)]
