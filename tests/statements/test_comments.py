"""COMMENT ON, and where comments are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import CatalogError, ParseError, UnknownName, Unsupported

from .both_engines import assert_same_steps

TOLD = [
    "select table_name, comment, sql from duckdb_tables()",
    "select table_name, column_name, comment from duckdb_columns() where not internal and database_name in ('memory', 'temp')",
    "select view_name, comment from duckdb_views() where not internal",
    "select function_name, comment from duckdb_functions() where function_type like '%macro%' and not internal",
    "select type_name, comment from duckdb_types() where not internal and type_name in ('ty', 'en')",
    'select table_name, "TABLE_COMMENT" from information_schema.tables',
    "select table_name, column_name, \"COLUMN_COMMENT\" from information_schema.columns where table_name in ('t', 'u', 'v')",
]
STEPS = [
    "create table t (a int, b int)", "comment on table t is 'x'", "comment on column t.a is 'col'", "comment on column main.t.B is 'it''s'",
    "comment on column memory.main.t.b is 'whole'", "comment on table t is null", "create view v as from t", "comment on view v is 'vv'", "comment on column v.A is 'vc'",
    "comment on column v.nix is 'x'", "create macro m() as 1", "comment on macro m is 'mm'", "comment on function m is 'ff'", "create type ty as int",
    "comment on type ty is 'tt'", "create type en as enum ('a')", "comment on type en is null", "comment on table nix is 'x'", "comment on column t.nix is 'x'",
    "comment on column nix.a is 'x'", "comment on view t is 'as a view'", "comment on table v is 'as a table'", "comment on table t is 5",
    "comment on table t is 'a' || 'b'", "comment on column a is 'x'", "comment on schema main is 'x'", "comment on database memory is 'x'",
    "comment on table main.t is 'full'", "comment on table if exists nix is 'x'", "comment on macro nix is 'x'", "comment on type nix is 'x'",
    "alter view v rename to w", "drop view w", "create or replace table t (a int, b int)", "comment on table t is 'again'", "comment on column t.a is 'k'", "alter table t rename a to c",
    "alter table t rename to u", "insert into u values (1, 2)", "update u set c = 5", "delete from u", "alter table u alter b type bigint", "alter table u add column d int",
    "comment on column u.d is 'gone'", "alter table u drop column d", "alter table u add column d int", "begin", "comment on table u is 'tx'", "rollback", "begin",
    "comment on table u is 'kept'", "commit", "comment on table u is ''", "create table v as from u",
    "create temp table tt (a int)", "comment on table tt is 'temporary'", "comment on column tt.a is 'too'",
]  # fmt: skip


def test_comments_are_told_as_duckdb_tells_them() -> None:
    assert_same_steps(STEPS, TOLD, device="cpu", fuse="never")


def test_comments_last_in_a_folder(tmp_path: Path) -> None:
    with fuseline.connect(tmp_path / "shop") as connection:
        connection.execute("create table t (a int); create view v as from t; create macro m() as 1")
        connection.execute("create type ty as int; insert into t values (1)")
        connection.execute("comment on table t is 'a table'; comment on column t.a is 'a column'")
        connection.execute("comment on view v is 'a view'; comment on column v.a is 'its column'")
        connection.execute("comment on macro m is 'a macro'; comment on type ty is 'a type'")
        connection.execute("begin; comment on table t is 'never'; rollback")
        told = [connection.execute(text).fetchall() for text in TOLD[:5]]
    assert ("t", "a table", "CREATE TABLE t(a INTEGER);") in told[0]
    for _ in range(2):
        with fuseline.connect(tmp_path / "shop") as connection:
            assert [connection.execute(text).fetchall() for text in TOLD[:5]] == told
            assert connection.execute("from v").fetchall() == [(1,)]
            connection.execute("checkpoint")
    with (
        fuseline.connect(tmp_path / "shop", read_only=True) as connection,
        pytest.raises(CatalogError, match="only read"),
    ):
        connection.execute("comment on table t is 'x'")


def test_comments_that_cannot_be_are_refused(connection: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "f.parquet")
    connection.read_parquet(tmp_path / "f.parquet", "f")
    connection.execute("create or replace table bills (id int)")
    for text, kind, said in (
        ("comment on table f is 'x'", CatalogError, "made of files"),
        ("comment on table bill is 'x'", UnknownName, 'Did you mean "bills"'),
        ("comment on column bills.ix is 'x'", UnknownName, 'Did you mean "id"'),
        ("comment on column id is 'x'", ParseError, "the name of a table before that of the column"),
        ("comment on sequence s is 'x'", Unsupported, "COMMENT ON SEQUENCE is not supported"),
        ("comment on table bills 'x'", ParseError, "is written COMMENT ON"),
    ):  # fmt: skip
        with pytest.raises(kind, match=said):
            connection.execute(text)
