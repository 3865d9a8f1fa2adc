"""Generated columns: the values of others, in each row that is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import fuseline
from fuseline.errors import CatalogError, InvalidQuery, UnknownName, Unsupported

from .both_engines import assert_same_steps

TOLD = [
    "from t", "describe t", "select table_name, sql, column_count from duckdb_tables()", "pragma table_info('t')",
    "select table_name, column_name, column_default, is_nullable from duckdb_columns() where not internal and database_name = 'memory' order by all",
    "select column_name, is_generated, generation_expression from information_schema.columns where table_name = 't' order by all",
]  # fmt: skip
SCRIPTS: dict[str, list[str]] = {
    "rows": [
        "create table t (a int, b int generated always as (a + 1) virtual, c as (a * 2), d int as (b + 1), w varchar default 'q')",
        "insert into t values (1, 'x')", "insert into t (a) values (2)", "insert into t (a, b) values (3, 4)", "insert into t values (1, 2, 3, 4, 'x')",
        "insert into t values (default, 'k')", "insert into t (a, b) values (1, default)", "insert into t default values", "insert into t by name select 5 as a",
        "insert into t by name select 5 as a, 6 as b", "insert into t select 7, 'w'", "select b, d from t where c > 4", "update t set a = a + 1 where d > 3 returning *",
        "update t set b = 5", "update t set b = default", "insert into t (a) values (9) returning b, d", "delete from t where b = 10 returning *",
        "create table k as from t", "describe k", "create view v as select b from t", "from v", "create index i on t (b)",
        "select x.b, y.b as z from t x join t y on x.b = y.a + 1", "select * exclude (b) from t", "truncate t",
    ],
    "with keys": [
        "create table t (a int primary key, b int as (a * 10), w varchar, n as (upper(w)))", "insert into t values (1, 'x'), (2, 'y')",
        "insert into t values (1, 'z') on conflict do nothing", "insert into t values (1, 'z') on conflict do update set a = 5, w = excluded.w || 'k'",
        "insert or replace into t values (2, 'r')", "insert into t values (5, 'q') on conflict do update set b = 5", "insert into t values (2, 'r')",
        "merge into t using (select 2 as a, 'm' as w) s using (a) when matched then update set w = s.w returning merge_action, *",
        "merge into t using (select 8 as a, 'n' as w) s using (a) when not matched then insert by name returning *",
        "merge into t using (select 8 as a, 'o' as w) s using (a) when matched then update", "update t set w = null where a = 8 returning n", "delete from t where b > 20",
        "begin", "insert into t values (20, 't')", "rollback", "insert into t select i, i::varchar from range(30, 33) r(i)",
    ],
    "alter": [
        "create table t (a int, b int as (a + 1), c varchar, d int as (b * 2))", "insert into t values (1, 'x'), (2, 'y')", "alter table t drop column a",
        "alter table t rename a to z", "alter table t rename b to \"b b\"", "insert into t values (5, 'k')", "alter table t alter \"b b\" set default 3",
        "alter table t alter d type bigint", "alter table t alter z type bigint", "alter table t alter d set not null", "alter table t alter d drop default",
        "alter table t add column e int as (z)", "alter table t add column e int generated always as (z)", "alter table t drop column \"b b\"",
        "alter table t drop column d", "alter table t drop column \"b b\"", "alter table t alter z type bigint", "alter table t drop column c", "insert into t values (9)",
        "alter table t add column f int default 4", "alter table t drop column z",
    ],
    "creation": [
        "create table t (a int, b int generated always as (a + 1) stored)", "create table t (a int, b int as (b + 1))", "create table t (b int as (a + 1), a int)",
        "insert into t values (3)", "create or replace table t (a int, b int as (c + 1), c int as (b))", "create or replace table t (a int, b int as (d + 1), d int as (a))",
        "insert into t values (3)", "create table q (b int as (1))", "create table q (a int, b int as (nix))", "create table q (a int, b int as (sum(a)))",
        "create table q (a int, b int as (a) default 3)", "create table q (a int, b int as (a) not null)", "create table q (a int, b int as (a) unique)",
        "create table q (a int, b int as (a) primary key)", "create table q (a int, b int as (a), check (b > 1))", "create table q (a int, b int as (a), unique (b))",
        "create table q (a int, b int generated as (a))", "create table q (a int, b int as (q.a + 1))",
        "create or replace table t (a int, b varchar as (a + 1))", "insert into t values (4)", "create or replace table t (a varchar, b int as (a))",
        "insert into t values ('x')", "insert into t values ('4')", "create or replace table t (a int, b int as (a / 0), c as (a > 1))",
        "insert into t values (2)", "create or replace table t (a int, \"B c\" int as (a), d int as (\"B c\" + 1))", "insert into t values (1)",
        "create or replace table t (a int, b as (case when a > 1 then 'x' else 'y' end), c int[] as ([a, a + 1]))", "insert into t values (1), (2), (null)",
        "create or replace temp table t (a int, b int as (a))", "insert into t values (1)",
    ],
}  # fmt: skip


@pytest.mark.parametrize("steps", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_generated_columns_are_duckdbs(steps: list[str]) -> None:
    assert_same_steps(steps, TOLD, device="cpu", fuse="never")


def test_they_last_in_a_folder_and_in_an_export(tmp_path: Path) -> None:
    made = "create table t (a integer, b integer as (a + 1), c varchar, d as (b * 2)); insert into t values (1, 'x')"
    with fuseline.connect(tmp_path / "shop") as connection:
        connection.execute(made)
        connection.execute("begin; insert into t values (7, 'no'); rollback; checkpoint")
    with fuseline.connect(tmp_path / "shop") as connection:
        connection.execute("insert into t values (2, 'y'); update t set a = 3 where b = 2")
        rows = connection.execute("from t order by a").fetchall()
        connection.execute(f"export database '{tmp_path}/copy' (format parquet)")
        connection.execute(f"copy (select a, c from t) to '{tmp_path}/rows.csv'; truncate t")
        connection.execute(f"copy t from '{tmp_path}/rows.csv'")
        assert connection.execute("from t order by a").fetchall() == rows
    assert rows == [(2, 3, "y", 6), (3, 4, "x", 8)]
    for other in (fuseline.connect(tmp_path / "again"), duckdb.connect()):
        other.execute(f"import database '{tmp_path}/copy'")
        other.execute("insert into t values (5, 'z')")
        assert other.execute("from t order by a").fetchall() == [*rows, (5, 6, "z", 12)]
        other.close()


def test_what_is_wrong_with_them_is_said_at_its_place(connection: Any) -> None:
    connection.execute("create or replace table t (a int, b int as (a + 1))")
    for text, kind, said in (
        ("insert into t (b) values (1)", InvalidQuery, "is given no values"),
        ("update t set b = 1", InvalidQuery, "change the columns that it is made of"),
        ("create table q (a int, b int as (c), c int as (b))", InvalidQuery, 'made of itself: "b" -> "c" -> "b"'),
        ("create table q (a int, b int as (aa + 1))", UnknownName, 'Did you mean "a"'),
        ("create table q (a int, b int as (a) stored)", Unsupported, "write VIRTUAL"),
        ("create table q (a int, b timestamptz as (now()))", Unsupported, "depend on the time"),
        ("create table q (a int, b date as (current_date))", Unsupported, "depend on the time"),
        ("create table q (a int, b double as (random()))", Unsupported, "in a generated column"),
        ("create table q (a int, b int as ((select max(a) from t)))", InvalidQuery, "no subquery"),
        ("create table q (a int, b int as (a) not null)", Unsupported, "takes no constraint"),
        ("create table q (a int, b int as (a), primary key (b))", Unsupported, "part of a key"),
        ("create table q (b int as (1))", InvalidQuery, "generated columns alone"),
        ("alter table t add column c int as (a)", Unsupported, "create it anew"),
        ("alter table t drop column a", CatalogError, 'column "b" is made of "a"'),
        ("alter table t alter b type bigint", CatalogError, "renamed and dropped alone"),
    ):  # fmt: skip
        with pytest.raises(kind, match=said) as raised:
            connection.execute(text)
        assert raised.value.span is not None or "key" in said or "current_date" in text, text
