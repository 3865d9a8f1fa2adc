"""EXPORT DATABASE and IMPORT DATABASE: what is written here is read in DuckDB, and the other way round."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

import fuseline
from fuseline.errors import AccessDenied, FileError, FuselineError, InvalidQuery, Unsupported

SETUP = """
create schema s;
create type mood as enum ('sad', 'fine');
create table t (a integer primary key, b varchar default 'none', c varchar not null, check (a < 100));
insert into t values (1, NULL, ''), (2, '', 'a,b'), (3, 'say "x"', 'line
break');
create table s.u as select range as i, range * 1.5 as d, date '2020-01-01' + range::integer as day from range(1000);
create table "odd name" ("a b" mood, "select" boolean);
insert into "odd name" values ('fine', true), (NULL, false);
create table nothing (a double);
create macro plus(x, y := 10) as x + y, (x varchar, y integer) as x || y;
create macro rows_of(n) as table select a from t where a <= n;
create unique index bc on t (b, c);
create index "i u" on s.u (d, (i + 1));
create view s.w as select count(*) as n from s.u;
create view v (twice) as select a * 2 from t
"""
QUESTIONS = (
    "select a, b, c from t order by a",
    "select count(*), sum(i), sum(d), max(day) from s.u",
    'select "a b", "select" from "odd name" order by 2',
    "from nothing",
    "select plus(1), plus(1, y := 2)",
    "select schema_name, index_name, is_unique from duckdb_indexes() order by 2",
    "from rows_of(2) order by a",
    "from s.w",
    "from v order by twice",
    "select column_name, data_type, is_nullable, column_default from duckdb_columns() where table_name = 't' order by column_index",
)


def answers(connection: Any) -> list[Any]:
    return [connection.sql(question).fetchall() for question in QUESTIONS]


def connect(**options: Any) -> fuseline.Connection:
    return fuseline.connect(device="cpu", fuse="never", **options)


@pytest.mark.parametrize("options", ["", "(format parquet)", "(format csv, delimiter '|')"])
@pytest.mark.parametrize(("writer", "reader"), [(0, 0), (0, 1), (1, 0)])
def test_an_export_is_imported(options: str, writer: int, reader: int, tmp_path: Path) -> None:
    makers: list[Any] = [connect, duckdb.connect]
    with makers[writer]() as connection:
        connection.execute(SETUP)
        expected = answers(connection)
        connection.execute(f"export database '{tmp_path}/out' {options}")
    (tmp_path / "out").rename(tmp_path / "moved")  # the paths in it are others
    if reader:  # which DuckDB follows as they are written
        (tmp_path / "moved").rename(tmp_path / "out")
    with makers[reader]() as connection:
        connection.execute(f"import database '{tmp_path}/{'out' if reader else 'moved'}'")
        assert answers(connection) == expected
        with pytest.raises((FuselineError, duckdb.Error)):
            connection.execute("insert into t (a, c) values (1, 'x')")


def test_one_of_several_databases_is_exported(tmp_path: Path) -> None:
    with connect() as connection:
        connection.execute(f"attach '{tmp_path}/db' as db; create table db.t as select 1 as a")
        connection.execute(
            f"create table other as select 2 as b; export database db to '{tmp_path}/out'"
        )
    with fuseline.connect(tmp_path / "new", device="cpu") as connection:
        connection.execute(f"import database '{tmp_path}/out'")
        assert connection.sql("show tables").fetchall() == [("t",)]
    with fuseline.connect(tmp_path / "new", device="cpu") as connection:
        assert connection.sql("from t").fetchall() == [(1,)]


def test_views_are_made_after_those_that_they_name(tmp_path: Path) -> None:
    (tmp_path / "schema.sql").write_text(
        "create view a as from b; create view b as from t; create table t (x integer);"
    )
    (tmp_path / "load.sql").write_text("")
    with connect() as connection:
        connection.execute(f"import database '{tmp_path}'")
        assert connection.sql("from a").fetchall() == []


@pytest.mark.parametrize(
    ("schema", "load", "kind", "message"),
    [
        ("drop table kept", "", InvalidQuery, "makes no part of a database"),
        ("create secret (type s3)", "", InvalidQuery, "makes no part of a database"),
        ("create table t (a integer)", "delete from kept", InvalidQuery, "no COPY of a file"),
        ("create table t (a integer)", "copy t to 'x'", InvalidQuery, "no COPY of a file"),
        ("create table t (a integer)", "copy t from '/etc/passwd'", FileError, "passwd"),
        ("create table t (a integer); create view v as from u", "", FuselineError, 'no table "u"'),
        ("create table kept (a integer)", "", FuselineError, "already"),
    ],
)
def test_an_import_changes_nothing_where_it_fails(
    schema: str, load: str, kind: type[Exception], message: str, tmp_path: Path
) -> None:
    (tmp_path / "schema.sql").write_text(schema)
    (tmp_path / "load.sql").write_text(load)
    with connect() as connection:
        connection.execute("create table kept as select 1 as a")
        with pytest.raises(kind, match=message):
            connection.execute(f"import database '{tmp_path}'")
        assert connection.sql("show tables").fetchall() == [("kept",)]
        assert connection.sql("from kept").fetchall() == [(1,)]


def test_what_cannot_be_exported_is_said(tmp_path: Path) -> None:
    with connect() as connection:
        connection.execute("create table t as select interval 1 day as i")
        for text, kind, message in (
            (f"export database '{tmp_path}/a' (format parquet)", Unsupported, "INTERVAL"),
            (f"export database '{tmp_path}/a' (format json)", Unsupported, "csv or parquet"),
            (f"export database no to '{tmp_path}/a'", FuselineError, 'no database "no"'),
            (f"import database '{tmp_path}/a'", FileError, "EXPORT DATABASE"),
        ):
            with pytest.raises(kind, match=message):
                connection.execute(text)
        assert list(tmp_path.iterdir()) == []


def test_access_holds(tmp_path: Path) -> None:
    with connect() as connection:
        connection.execute(f"create table t as select 1 as a; export database '{tmp_path}/out'")
    (tmp_path / "in").mkdir()
    with connect(external_access=False, allowed_paths=[tmp_path / "in"]) as connection:
        for text in (f"import database '{tmp_path}/out'", f"export database '{tmp_path}/new'"):
            with pytest.raises(AccessDenied, match=re.escape(str(tmp_path))):
                connection.execute(text)
        connection.execute(f"create table t as select 1 as a; export database '{tmp_path}/in/x'")
