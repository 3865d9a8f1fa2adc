"""Sequences, as DuckDB counts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import fuseline
from fuseline.errors import (
    CatalogError,
    FileError,
    InvalidQuery,
    ParseError,
    SequenceError,
    UnknownName,
    Unsupported,
)
from fuseline.plan.changes.sequences import LEAST, MOST, Sequence, SequenceValues

from .both_engines import assert_same_steps

OPTIONS = [
    "", "start 5", "start with 5 increment by 2 minvalue 1 maxvalue 10 cycle", "increment -1", "increment by -3 minvalue 1 maxvalue 10 start 10",
    "increment 0", "start 0", "start -1", "maxvalue 0", "minvalue 5", "minvalue 5 maxvalue 3", "minvalue 5 maxvalue 5", "start 3 maxvalue 2",
    "start 3 minvalue 4", "increment -1 start 5", "no minvalue", "no maxvalue", "no cycle", "cycle", "cache 5", "owned by none", "as integer",
    "start 9223372036854775807", "start 9223372036854775808", "minvalue -9223372036854775808", "increment 5 increment 6", "start 1 start 2",
    "cycle no cycle", "start = 5", "start with 1.5", "increment by 'a'", "minvalue 1 no minvalue", "increment -1 no maxvalue no minvalue",
    "start -5 minvalue -10", "increment 9223372036854775807", "increment -2 minvalue -5 maxvalue -1 cycle", "start 1 + 1", "start with +3",
    "maxvalue 3 minvalue 2", "maxvalue 3 minvalue 2 cycle", "increment 4 maxvalue 3 cycle",
]  # fmt: skip
TOLD = (
    "select sequence_name, database_name, schema_name, temporary, start_value, min_value, max_value, increment_by, cycle, last_value, sql "
    "from duckdb_sequences()"
)
SCRIPTS: dict[str, list[str]] = {
    "values": [
        "create sequence s", "select nextval('s')", "select nextval('s'), currval('s')", "select nextval('s') from range(3)", "select currval('s')",
        "select nextval('s'), nextval('S') as n, nextval('main.s') as m", "select nextval('memory.main.s') as n, nextval('\"s\"') as m", "select nextval(null)",
        "select typeof(nextval('s')) as t", "select nextval('s') + 1 as y where nextval('s') > 0", "select nextval('s') limit 0", "select currval('s')",
        "select nextval('s') from range(3) order by 1 desc limit 1", "select sum(nextval('s')) as n from range(3)",
        "select i, nextval('s') as n from range(4) r(i) where i % 2 = 1", "values (nextval('s')), (nextval('s'))",
        "select case when i = 1 then nextval('s') end as n from range(3) r(i)", "select (select nextval('s')) as n, i from range(3) r(i)",
        "with q as (select nextval('s') as n) select a.n, b.n as m from q a, q b", "select list(nextval('s')) as l from range(2)",
        "select n - i as d, count(*) as c from (select nextval('s') as n, i from range(140000) r(i)) group by 1",
        "select max(n) over () as m from (select nextval('s') as n from range(3))",
        "create table big as select nextval('s') as n, i from range(3) r(i)", "from big", "update big set n = nextval('s')", "from big",
        "select currval('s') as c, nextval('s') as n from range(2)", "set variable v = nextval('s')", "select getvariable('v') as v",
        "create macro m() as nextval('s')", "select m() as a", "select m() as a", "create view w as select nextval('s') as n", "from w", "from w",
        "prepare p as select nextval('s') as n", "execute p", "execute p", TOLD,
    ],
    "names": [
        "select nextval('s')", "create sequence s", "select currval('s')", "select currval('nope')", "select nextval(x) from (values ('s')) t(x)",
        "select nextval(1)", "select nextval()", "select nextval('s', 's')", "select nextval('a.b.c.d')", "select nextval('nix.s')", "select nextval('')",
        "create sequence s", "create sequence if not exists s start 100", "select nextval('s')", "create or replace sequence s start 3",
        "select nextval('s')", "create or replace sequence if not exists s", "create table s (a int)", "select nextval('s')", "drop table s",
        "drop sequence s restrict", "drop sequence s", "drop sequence if exists s", "create sequence nope.s", "drop sequence nope.s",
        "create schema z", "create sequence z.s start 7", "select nextval('z.s')", "select nextval('s')", "create temp sequence s",
        "select nextval('s')", "create temporary sequence if not exists s", TOLD, "drop sequence z.s", "drop schema z", "select nextval('s') over ()",
        "select nextval(distinct 's')", "describe s", "from s", "create view v as select nextval('s') as n", "drop sequence s", "from v",
    ],
    "defaults": [
        "create sequence s", "create table t (id integer default nextval('s'), w varchar)", "insert into t (w) values ('a'), ('b')",
        "insert into t values (default, 'c'), (10, 'd')", "insert into t (w) select 'x' from range(3)", "insert into t (w) values ('r') returning id",
        "update t set id = default where w = 'x'", "describe t", "select column_default from duckdb_columns() where table_name = 't'", "drop sequence s",
        "create or replace sequence s", "alter table t add column b integer default nextval('s')", "insert into t (w) values ('k')",
        "alter table t alter id drop default", "alter table t rename to u", "insert into u (w) values ('l')", "from u", "drop sequence s",
        "alter table u alter b drop default", "drop sequence s", "drop table u",
        "create sequence s", "create table t (id integer primary key default (nextval('s') * 10 + 1), b integer check (b < 5))",
        "insert into t (b) values (1)", "insert into t (b) values (10)", "insert into t (b) values (1)",
        "insert into t (b) values (2) on conflict do nothing", "insert into t values (11, 3) on conflict (id) do update set id = default returning *",
        "merge into t using range(3) q(i) on false when not matched then insert (b) values (i) returning *", "drop sequence s cascade", "from t", TOLD,
    ],
    "ends": [
        "create sequence s maxvalue 2", "create table t (a integer default nextval('s'), b integer)", "insert into t (b) values (1), (2), (3)",
        "select currval('s')", "insert into t (b) values (1)", TOLD, "create sequence c maxvalue 2 cycle", "select nextval('c') as n from range(5)", TOLD,
        "select 1 as one from range(2) order by nextval('c')", "select count(*) as n from range(5) where nextval('c') = 1",
    ],
    "transactions": [
        "create sequence s", "begin", "select nextval('s')", "select nextval('s')", "rollback", "select nextval('s')", "begin", "create sequence u",
        "select nextval('u')", "rollback", "select nextval('u')", "begin", "drop sequence s", "rollback", "select nextval('s')", "begin", "select nextval('s')",
        "commit", "select nextval('s')", TOLD,
    ],
    "setval": [
        "create sequence s", "select setval('s', 5)", "select nextval('s')", "select setval('s', 5, false)", "select nextval('s')",
        "select setval('s', 5, true)", "select nextval('s')", "select setval('s', 0)", "select setval('s', null)", "select currval('s')", TOLD,
        "select setval('nope', 1)", "select setval('s')", "create sequence q maxvalue 3", "select nextval('q') from range(3)", "select nextval('q')",
        "select setval('q', 2)", "select nextval('q')", "select nextval('q')", "select setval('q', 9)", TOLD,
    ],
    "views of the catalog": [
        "create sequence s start 4", "select nextval('s')", "from pg_catalog.pg_sequences",
        "select seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle from pg_catalog.pg_sequence",
        "select relname, relkind from pg_catalog.pg_class where relkind = 'S'", "select count(*) as n from duckdb_sequences()",
    ],
}  # fmt: skip


@pytest.mark.parametrize("steps", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_sequences_give_duckdbs_values(steps: list[str]) -> None:
    assert_same_steps(steps, [TOLD], device="cpu", fuse="never")


def test_options_are_duckdbs() -> None:
    steps = []
    for option in OPTIONS:
        steps += [f"create sequence q {option}", TOLD]
        steps += ["select nextval('q') as n from range(2)", "select nextval('q') as n"]
        # DuckDB takes a value whose successor is no BIGINT, and raises
        steps += [*([] if "9223372036854775807" in option else [TOLD]), "drop sequence if exists q"]
    assert_same_steps(steps, device="cpu", fuse="never")


def test_ranges_are_the_values_one_by_one() -> None:
    for values in (
        SequenceValues(1, 3, -4, 9, cycle=True),
        SequenceValues(2, -3, -4, 9, cycle=True),
        SequenceValues(MOST - 4, 2, 1, MOST),
        SequenceValues(LEAST + 4, -2, LEAST, -1),
        SequenceValues(1, 20, 1, 9, cycle=True),
    ):
        whole, single = Sequence.new("w", values), Sequence.new("s", values)
        found: list[int] = []
        for count in (1, 2, 1, 7):
            try:
                expected = [single.take(1)[0][0] for _ in range(count)]
            except SequenceError:
                with pytest.raises(SequenceError):
                    whole.take(count)
            else:
                found = [value for part in whole.take(count) for value in part]
                assert found == expected
            assert whole.position == single.position
        assert found


def test_sequences_last_in_a_folder(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    with fuseline.connect(shop) as connection:
        connection.execute("create sequence s start 10 increment 5; create sequence gone")
        connection.execute("create table t (a integer default nextval('s'), b integer)")
        connection.execute("insert into t (b) values (1), (2); drop sequence gone")
        assert connection.execute("select nextval('s')").fetchall() == [(20,)]
        connection.execute("begin; insert into t (b) values (3); rollback")
        told = connection.execute(TOLD).fetchall()
    for _ in range(2):
        with fuseline.connect(shop) as connection:
            assert connection.execute(TOLD).fetchall() == told
            connection.execute("checkpoint")
    with fuseline.connect(shop, read_only=True) as connection:
        assert connection.execute("select currval('s')").fetchall() == [(25,)]
        with pytest.raises(CatalogError, match="only read"):
            connection.execute("select nextval('s')")
    with fuseline.connect(shop) as connection:
        connection.execute("insert into t (b) values (4)")
        rows = connection.execute("from t order by all").fetchall()
        assert rows == [(10, 1), (15, 2), (30, 4)]
        other = fuseline.connect(shop)
        assert other.execute("select nextval('s')").fetchall() == [(35,)]
        assert connection.execute("select nextval('s'), currval('s')").fetchall() == [(40, 40)]
        other.close()
        connection.execute("begin; create sequence late; select nextval('late'); commit")
        connection.execute(f"export database '{tmp_path}/copy'")
    with fuseline.connect(shop) as connection:
        assert connection.execute("select nextval('late')").fetchall() == [(2,)]
    for imported in (fuseline.connect(tmp_path / "again"), duckdb.connect()):
        imported.execute(f"import database '{tmp_path}/copy'")
        assert imported.execute("select nextval('s')").fetchall() == [(45,)]
        imported.execute("insert into t (b) values (5)")
        assert imported.execute("select max(a) from t").fetchall() == [(50,)]
        imported.close()


def test_a_process_that_ends_without_close_gives_no_value_twice(tmp_path: Path) -> None:
    connection = fuseline.connect(tmp_path / "shop")
    connection.execute("create sequence s")
    connection.execute("select nextval('s') from range(7)")
    log = next((tmp_path / "shop").glob("catalog-*.log")).read_bytes()
    connection.execute("select nextval('s')")
    connection.close()
    next((tmp_path / "shop").glob("catalog-*.log")).write_bytes(log)
    with fuseline.connect(tmp_path / "shop") as again:
        assert again.execute("select nextval('s')").fetchall() == [(8,)]


def test_damaged_records_of_sequences_are_refused(tmp_path: Path) -> None:
    from fuseline.database.log_records import Objects, carry_out
    from fuseline.database.stored_table import RowsPlace

    place = RowsPlace(tmp_path, lambda: tmp_path)
    for record in (
        {"moved": "s", "schema": "main", "following": 1, "last": None},
        {"sequence": "s", "schema": "main"},
    ):
        with pytest.raises(FileError, match="restore it"):
            carry_out([record], Objects(), place)  # fmt: skip


def test_what_is_wrong_with_sequences_is_said_at_its_place(connection: Any) -> None:
    connection.execute("create or replace sequence orders maxvalue 2")
    connection.execute("select nextval('orders') from range(2)")
    for text, kind, said in (
        ("select nextval('order')", UnknownName, 'no sequence "order". Did you mean "orders"'),
        ("drop sequence order1", UnknownName, 'Did you mean "orders"'),
        ("select nextval('orders')", SequenceError, "has no further value: 2 is its greatest one"),
        ("select setval('orders', 4)", SequenceError, "counts from 1 to 2"),
        ("create sequence orders", CatalogError, "already"),
        ("create sequence q minvalue 5 maxvalue 3", InvalidQuery, "not less than MAXVALUE"),
        ("create sequence q start 1 start 2", ParseError, "START is given twice"),
        ("create sequence q cache 3", ParseError, "is written CREATE"),
        ("select list_transform([1], lambda x: nextval('orders'))", Unsupported, "in a lambda"),
        ("create table q (a integer check (a < nextval('orders')))", Unsupported, "in CHECK"),
    ):
        with pytest.raises(kind, match=said):
            connection.execute(text)
    connection.execute("create or replace sequence orders maxvalue 2")
    connection.execute("create or replace table bills (id integer default nextval('orders'))")
    with pytest.raises(CatalogError, match='"bills" needs the sequence "orders"'):
        connection.execute("drop sequence orders")
    connection.execute("drop sequence orders cascade")
