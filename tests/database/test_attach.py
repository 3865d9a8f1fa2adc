"""Several databases and schemas of a connection, as in DuckDB where it has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import fuseline
from fuseline.errors import (
    AccessDenied,
    AmbiguousName,
    CatalogError,
    FileError,
    FuselineError,
    ParseError,
    TransactionError,
    UnknownName,
    Unsupported,
    WrongArguments,
)
from tests.compare import assert_same_as_duckdb

SETUP = (
    "create table t as select 1 as a",
    "create schema s",
    "create table s.t as select 2 as a, 'x' as b",
    "create view s.v as select a + 1 as c from t",
    "create table s.keyed (k integer primary key, d varchar default 'none', check (k < 10))",
    "attach ':memory:' as m",
    "create schema m.s",
    "create table m.t (a integer)",
    "insert into m.t values (3)",
    "create or replace table m.s.u as select 4 as a",
    "create view m.v as select a * 10 as c from t",
    "create temp table passing as select 5 as a",
)


@pytest.mark.parametrize(
    ("query", "statements"),
    [
        ("select * from t, s.t as st, memory.main.t as mt, m.t as other, m.s.u", ()),
        ("select s.t.a, t.b, memory.s.t.a from s.t", ()),
        ("select m.s.u.a, u.a from m.s.u", ()),
        ("from m.v", ()),
        ("from t", ("use m",)),
        ("from s.u, v, memory.t as mt", ("use m",)),
        ("from u", ("use m.s",)),
        ("from t", ("use s",)),
        ("from passing, temp.passing as p", ("use m",)),
        ("select current_database(), current_schema()", ("use m.s",)),
        ("select current_database(), current_schema()", ("use s",)),
        ("show tables", ("use s",)),
        ("show tables", ()),
        ("show all tables", ()),
        ("from (show databases)", ()),
        ("describe s.keyed", ()),
        ("from pragma_table_info('s.keyed')", ()),
        ("from (describe m.t)", ()),
        ("from t, memory.s.t as x", ("insert into s.t values (7, 'y')", "update m.t set a = 8", "use m")),
        ("from s.t", ("delete from s.t where t.a = 2", "insert into s.t (a) values (1)")),
        ("from s.w", ("alter table s.t rename to w", "alter table s.w add column z integer")),
        ("from s.x", ("alter view s.v rename to x",)),
        ("from s.keyed", ("insert into s.keyed (k) values (1), (2)",)),
        ("from u", ("use s", "create table u as select 9 as q", "use memory.main", "use s")),
        ("select count(*) from duckdb_tables()", ("drop schema s cascade", "drop table m.t")),
        ("show databases", ("detach m",)),
        ("show databases", ("attach if not exists ':memory:' as m", "detach if exists none")),
        ("select schema_name from duckdb_schemas() where not internal order by 1", ()),
        (
            "select database_name, schema_name, table_name, temporary, sql from duckdb_tables() order by all",
            (),
        ),
        ("select table_catalog, table_schema, table_name, table_type from information_schema.tables order by all", ()),
        ("select database_name, readonly, internal, type from duckdb_databases() order by all", ()),
        ("select catalog_name, schema_name from information_schema.schemata order by all", ()),
        ("from m.s.u", ("begin", "update m.s.u set a = 0", "rollback")),
        ("from s.t", ("begin", "drop table s.t", "rollback")),
        ("from n.t", ("create schema if not exists s", "create schema n", "create table n.t as select 1 as x")),
    ],
)  # fmt: skip
def test_names_of_schemas_and_databases(query: str, statements: tuple[str, ...]) -> None:
    assert_same_as_duckdb(query, setup=(*SETUP, *statements), fuse=("never",), backend="cpu")


@pytest.fixture
def connection() -> Iterator[fuseline.Connection]:
    with fuseline.connect(device="cpu", fuse="never") as made:
        for statement in SETUP:
            made.execute(statement)
        yield made


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("from nothing.t", UnknownName, 'no table "nothing.t"'),
        ("create table nothing.t (a integer)", UnknownName, 'no schema "nothing"'),
        ("insert into nothing.t values (1)", UnknownName, 'no schema "nothing"'),
        ("use nothing", UnknownName, 'no database or schema "nothing"'),
        ("use a.b.c", UnknownName, "no database or schema"),
        ("detach nothing", UnknownName, 'no database "nothing"'),
        ("detach memory", CatalogError, "USE another database first"),
        ("detach temp", CatalogError, "USE another database first"),
        ("begin; detach m", TransactionError, "DETACH within a transaction"),
        ("attach ':memory:' as m", CatalogError, 'a database "m" already'),
        ("attach ':memory:' as m (read_only)", FuselineError, "READ_ONLY goes with a folder"),
        ("attach ':memory:' as temp", CatalogError, "cannot be called"),
        ("attach ':memory:' as main", CatalogError, "cannot be called"),
        ("attach 'x.db' as x (type sqlite)", Unsupported, "EXPORT DATABASE"),
        ("attach 'x.db' as x (block_size 1)", Unsupported, "no option BLOCK_SIZE"),
        ("attach x", ParseError, "ATTACH .DATABASE."),
        ("attach 'x' as", ParseError, "ATTACH .DATABASE."),
        ("attach 'x' as y z", ParseError, "ATTACH .DATABASE."),
        ("checkpoint nothing", UnknownName, 'no database "nothing"'),
        ("begin; checkpoint", TransactionError, "CHECKPOINT within a transaction"),
        ("create schema s", CatalogError, 'a schema "s" already'),
        ("create schema main", CatalogError, "already"),
        ("create schema nothing.s", UnknownName, 'no database "nothing"'),
        ("create or replace schema s", Unsupported, "DROP SCHEMA"),
        ("drop schema s", CatalogError, "CASCADE"),
        ("drop schema main", CatalogError, "part of each database"),
        ("drop schema nothing", UnknownName, 'no schema "nothing"'),
        ("create temp table s.x (a integer)", CatalogError, "in the database temp"),
        ("attach ':memory:' as s; from s.t", AmbiguousName, "a database and a schema"),
        ("alter table s.t rename to m.t", Unsupported, "without a schema"),
        ("install spatial", Unsupported, "is not built in"),
        ("load 'x.so'", Unsupported, "is not built in"),
        ("load", ParseError, "INSTALL name"),
    ],
)
def test_what_cannot_be_is_said(
    text: str, kind: type[FuselineError], message: str, connection: fuseline.Connection
) -> None:
    with pytest.raises(kind, match=message):
        connection.execute(text)


def test_what_is_built_in_is_loaded(connection: fuseline.Connection) -> None:
    for text in ("install json", "load httpfs", "install 'parquet' from core", "force install icu"):
        connection.execute(text)


def test_folders_are_attached_and_left(tmp_path: Path) -> None:
    with fuseline.connect(tmp_path / "one", device="cpu", fuse="never") as connection:
        connection.execute("create table t as select 1 as a")
        connection.execute(f"attach '{tmp_path}/two.db'; create table two.t as from t")
        connection.execute("use two; insert into t values (2); create macro twice(x) as x * 2")
        assert connection.sql("select twice(a) from t").fetchall() == [(2,), (4,)]
        connection.execute("begin; insert into t values (3)")
        with pytest.raises(TransactionError, match='This transaction has changed "two"'):
            connection.execute("insert into one.t values (3)")
        connection.execute("rollback; use one; detach two")
        with pytest.raises(CatalogError, match="is attached already"):
            connection.execute(f"attach '{tmp_path}/one' as again")
        connection.execute(f"attach '{tmp_path}/two.db' as other (read_only)")
        assert connection.sql("select sum(a) from other.t").fetchall() == [(3,)]
        with pytest.raises(CatalogError, match="only read"):
            connection.execute("insert into other.t values (1)")
        path = connection.sql(
            "select path from duckdb_databases() where database_name = 'other'"
        ).fetchall()
        assert path == [(str(tmp_path / "two.db"),)]


def test_access_holds_for_attach(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    for path in ("a", "inside/db"):
        fuseline.connect(tmp_path / path, device="cpu").close()
    settings = {"allowed_paths": [tmp_path / "inside"], "external_access": False}
    with fuseline.connect(tmp_path / "home", device="cpu", **settings) as connection:
        connection.execute("create table t as select range as a from range(50000)")
        assert connection.sql("select count(*) from t").fetchall() == [(50000,)]
        connection.execute(f"attach '{tmp_path}/inside/db' as x")
        for path in ("a", "inside/../a", "not there", "inside/db/../../a"):
            with pytest.raises(AccessDenied):
                connection.execute(f"attach '{tmp_path}/{path}' as y")
        (tmp_path / "inside" / "link").symlink_to(tmp_path / "a")
        with pytest.raises(AccessDenied):
            connection.execute(f"attach '{tmp_path}/inside/link' as y")
    with (
        fuseline.connect(device="cpu", external_access=False) as connection,
        pytest.raises(AccessDenied),
    ):
        connection.execute(f"attach '{tmp_path}/a' as y")


@pytest.mark.parametrize("path", ["/etc/passwd", "s3://bucket/db", "a\0b", b"bytes", 7])
def test_paths_of_no_folder_are_refused(path: object) -> None:
    with pytest.raises((FileError, Unsupported, WrongArguments)):
        fuseline.connect(path, device="cpu")  # type: ignore[arg-type]
