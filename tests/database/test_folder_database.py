"""Tables, views and macros of a folder: that they last, and what a commit that fails leaves."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fuseline
from fuseline.database import commit_log, folder_database
from fuseline.errors import (
    CatalogError,
    ConstraintError,
    FileError,
    FuselineError,
    TransactionError,
)

CALLS = ("fsync", "replace", "pwrite")


def connect(folder: Path, **options: Any) -> fuseline.Connection:
    return fuseline.connect(folder, device="cpu", fuse="never", **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "shop"


@pytest.fixture
def connection(folder: Path) -> Iterator[fuseline.Connection]:
    with connect(folder) as made:
        yield made


def rows(connection: fuseline.Connection, query: str) -> list[Any]:
    return connection.sql(query).fetchall()


EVERYTHING = """
create schema s;
create table t (a integer primary key, b varchar default 'none', c decimal(5,2) not null, check (a < 100));
insert into t values (1, 'one', 1.5), (2, NULL, 2.25);
insert into t (a, c) values (3, 3);
create table s.u as select range as i, 'v' || range as v from range(200000);
delete from s.u where i % 2 = 1;
insert into s.u values (-1, 'last');
create view v (twice) as select a * 2 from t;
create macro plus(x, y := 10) as x + y, (x varchar, y integer) as x || y;
create macro first_rows(n) as table select a from t where a <= n;
create table nested as select [1, 2] as l, {'a': 1, 'b': [{'c': 'x'}]} as st, map {'k': 1} as m;
create table moments as select interval '1 month 2 days' as i, timestamp_s '2020-02-03 04:05:06' as s,
    timestamptz '2020-01-01 00:00:00+00' as z, 170141183460469231731687303715884105 ::hugeint as h, 'a\\x00b'::blob as bytes;
create table nothing (a integer, "odd name" double);
create unique index bc on t (b, c);
create index odd on nothing (("odd name" + 1), a);
alter table t add column d date default date '2020-01-01'
"""
QUESTIONS = (
    "from t order by a",
    "select count(*), sum(i), min(v), max(v) from s.u",
    "from v order by 1",
    "select plus(1), plus(1, y := 2)",
    "from first_rows(2)",
    "from nested",
    "from moments",
    "from nothing",
    "describe t",
    "select index_name, table_name, is_unique, expressions, sql from duckdb_indexes() order by 1",
    "describe moments",
    "select database_name, schema_name, table_name, sql from duckdb_tables() order by all",
)


def test_what_statements_make_lasts(folder: Path) -> None:
    with connect(folder) as connection:
        connection.execute(EVERYTHING)
        before = [rows(connection, question) for question in QUESTIONS]
    for options in ({}, {"read_only": True}):
        with connect(folder, **options) as connection:
            assert [rows(connection, question) for question in QUESTIONS] == before


def test_rules_last(folder: Path) -> None:
    with connect(folder) as connection:
        connection.execute(EVERYTHING)
    with connect(folder) as connection:
        for values in ("(1, 'a', 1)", "(200, 'a', 1)", "(4, 'a', NULL)"):
            with pytest.raises(ConstraintError):
                connection.execute(f"insert into t (a, b, c) values {values}")
        connection.execute("insert into t (a, c) values (4, 4) returning b")
        assert rows(connection, "select b from t where a = 4") == [("none",)]


def test_a_folder_is_for_its_owner_alone(connection: fuseline.Connection, folder: Path) -> None:
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_process_that_ends_without_close_loses_nothing(folder: Path, tmp_path: Path) -> None:
    with connect(folder) as connection:
        connection.execute("create table t as select 1 as a; insert into t values (2)")
        shutil.copytree(folder, tmp_path / "copy")
    with connect(tmp_path / "copy") as connection:
        assert rows(connection, "from t") == [(1,), (2,)]


def test_what_is_temporary_or_registered_ends(folder: Path) -> None:
    with connect(folder) as connection:
        connection.execute("create temp table t as select 1 as a; create temp view v as select 1")
        connection.execute("create temp macro m() as 1")
        connection.register("r", {"a": [1]})
        assert rows(connection, "show tables") == [("r",), ("t",), ("v",)]
    with connect(folder) as connection:
        assert rows(connection, "show tables") == []
        assert connection.catalog.objects("macro") == []


def test_a_transaction_is_there_whole_or_not_at_all(folder: Path) -> None:
    with connect(folder) as connection:
        connection.execute("create table t (a integer); begin; insert into t values (1)")
        connection.execute("create table u as select 1 as b; create macro m() as 1; rollback")
        assert rows(connection, "show tables") == [("t",)]
        connection.execute("begin; insert into t values (2); create table u as select 2 as b")
        connection.execute("drop table u; create view u as from t; commit")
    with connect(folder) as connection:
        assert rows(connection, "from u") == [(2,)]
        assert connection.catalog.objects("macro") == []


def test_a_transaction_that_is_open_at_the_end_is_lost(folder: Path) -> None:
    with connect(folder) as connection:
        connection.execute("create table t (a integer); begin; insert into t values (1)")
    with connect(folder) as connection:
        assert rows(connection, "from t") == []


def states(folder: Path, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return copies of a folder as a process leaves it that is killed before each of the calls that write, and in each write."""
    copies: list[Path] = []

    def keep() -> Path:
        copies.append(folder.with_name(f"copy{len(copies)}"))
        return Path(shutil.copytree(folder, copies[-1]))

    def kept(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            keep()
            return function(*args, **options)

        return call

    def half_written(handle: int, data: bytes, place: int) -> int:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        for length in (0, 1, len(data) // 2, len(data) - 1):
            with (keep() / path.name).open("ab") as file:
                file.write(data[:length])
        return write(handle, data, place)

    write = os.pwrite
    with monkeypatch.context() as patched:
        for name in ("fsync", "replace"):
            patched.setattr(commit_log.os, name, kept(getattr(os, name)))
        patched.setattr(commit_log.os, "pwrite", half_written)
        work()
    keep()
    return copies


def test_a_commit_that_is_cut_off_anywhere_is_whole_or_not_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tables, of which one gets a file of rows and one rows in the log."""
    with connect(folder) as connection:
        connection.execute("create table a (n bigint); create table b (n bigint)")
        connection.execute("begin; insert into a from range(50000); insert into b values (1)")
        copies = states(folder, connection.commit, monkeypatch)
    seen = []
    for copy in copies:
        with connect(copy) as connection:
            seen.append(
                rows(connection, "select (select count(*) from a), (select count(*) from b)")
            )
            connection.execute("insert into b values (7)")
        with connect(copy) as connection:
            assert rows(connection, "select max(n) from b") == [(7,)]
            assert len(list((copy / "data").iterdir())) == (seen[-1] == [(50000, 1)])
    assert seen[-1] == [(50000, 1)]
    assert len(seen) > 8
    assert {*map(tuple, seen)} == {((0, 0),), ((50000, 1),)}


def test_a_checkpoint_that_is_cut_off_anywhere_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(folder) as connection:
        connection.execute("create table a as select range as n from range(50000)")
        connection.execute("insert into a values (-1); create view v as select count(*) from a")
        copies = states(folder, lambda: connection.execute("checkpoint"), monkeypatch)
    assert len(copies) > 5
    for copy in copies:
        with connect(copy) as connection:
            assert rows(connection, "from v") == [(50001,)]


@pytest.mark.parametrize("name", CALLS)
def test_a_full_disk_leaves_the_database_as_it_was(
    name: str, connection: fuseline.Connection, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.execute("create table a (n bigint); insert into a values (1)")
    whole = sorted(path.name for path in folder.rglob("*"))
    size = (folder / "catalog-00000001.log").stat().st_size

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    connection.execute("begin; insert into a from range(50000); create table b as select 1 as x")
    with monkeypatch.context() as patched:
        patched.setattr(commit_log.os, name, full)
        if name == "pwrite":
            patched.setattr(folder_database, "INLINE_BYTES", 1 << 30)
        with pytest.raises(FileError, match="cannot be written: No space left"):
            connection.commit()
    if name != "fsync":  # without it the log could not be put right
        assert sorted(path.name for path in folder.rglob("*")) == whole
        assert (folder / "catalog-00000001.log").stat().st_size == size
        connection.execute("insert into a values (2)")
        assert rows(connection, "from a") == [(1,), (2,)]
    assert rows(connection, "show tables") == [("a",)]


def test_small_inserts_make_few_files(
    connection: fuseline.Connection, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_database, "TAIL_BYTES", 200)
    monkeypatch.setattr(folder_database, "LOG_BYTES", 3000)
    monkeypatch.setattr(folder_database, "MOST_SMALL_FILES", 3)
    monkeypatch.setattr(folder_database, "MOST_UNUSED", 2)
    connection.execute("create table a (n bigint)")
    for n in range(150):
        connection.execute("insert into a values (?)", [n])
    assert len(list((folder / "data").iterdir())) <= 8
    assert [path.name for path in folder.glob("catalog*")] != ["catalog-00000001.log"]
    assert rows(connection, "select count(*), sum(n) from a") == [(150, 11175)]
    connection.execute("checkpoint; checkpoint")
    rows(connection, "select 1")
    gc.collect()  # the plan of the query above has files until then
    connection.execute("checkpoint")
    assert len(list((folder / "data").iterdir())) == 1
    with connect(folder) as again:
        assert rows(again, "select count(*), sum(n), first(n), last(n) from a") == [
            (150, 11175, 0, 149)
        ]


def test_connections_of_a_process_share_a_folder(folder: Path) -> None:
    with connect(folder) as one, connect(folder) as other:
        one.execute("create table t as select 1 as a")
        assert rows(other, "from t") == [(1,)]
        other.execute("insert into t values (2)")
        assert rows(one, "from t") == [(1,), (2,)]
        one.execute("begin; insert into t values (3)")
        assert rows(other, "from t") == [(1,), (2,)]
        other.execute("insert into t values (4)")
        with pytest.raises(TransactionError, match='Another transaction has changed "t"'):
            one.execute("commit")
        assert rows(one, "from t") == [(1,), (2,), (4,)]
    with connect(folder, read_only=True) as one, connect(folder) as other:
        other.execute("insert into t values (5)")
        assert rows(one, "select max(a) from t") == [(5,)]
        with pytest.raises(CatalogError, match="only read"):
            one.execute("drop table t")


def test_a_query_keeps_the_rows_that_it_began_with(
    connection: fuseline.Connection, folder: Path
) -> None:
    connection.execute("create table t as select range as a from range(50000)")
    frame = connection.table("t")
    connection.execute("delete from t where a > 10; checkpoint")
    assert len(frame.fetchall()) == 50000
    del frame
    connection.execute("checkpoint")
    assert rows(connection, "select count(*) from t") == [(11,)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_bytes(b"\0" * 8 + b"DUCK" + b"\0" * 99), "EXPORT DATABASE"),
        (lambda path: None, "is named as a database file of DuckDB"),
        (lambda path: path.write_text("a,b"), "is a file, and a database is a folder"),
        (lambda path: (path / "inner").mkdir(parents=True), 'has other files \\("inner"\\)'),
        (lambda path: (path.parent / "no").mkdir() or shutil.rmtree(path.parent), "no folder"),
    ],
)
def test_what_is_no_database_is_refused(
    make: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "below" / "x.duckdb"
    path.parent.mkdir()
    make(path)
    with pytest.raises(FileError, match=message):
        connect(path)


def test_reading_needs_a_database(folder: Path) -> None:
    with pytest.raises(FileError, match="There is no database"):
        connect(folder, read_only=True)
    folder.mkdir()
    with pytest.raises(FileError, match="is no database"):
        connect(folder, read_only=True)
    with pytest.raises(FuselineError, match="goes with a folder"):
        fuseline.connect(read_only=True)


def test_a_thousand_tables_are_opened_when_they_are_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_database, "INLINE_BYTES", 0)
    with connect(folder) as connection:
        connection.execute("create table t0 as select 1 as a")
        first = connection.catalog.entry("t0")
        database = connection.catalog.databases["shop"]
        changes = {
            key._replace(database="", name=f"t{i}"): first.renamed(f"t{i}")
            for key, _ in connection.catalog.objects("relation")
            for i in range(1, 1000)
        }
        assert database.folder is not None
        database.folder.commit(database.folder.version, changes)
    opened: list[str] = []
    look = os.open

    def counted(path: Any, *args: Any, **options: Any) -> int:
        opened.append(str(path))
        return look(path, *args, **options)

    monkeypatch.setattr(os, "open", counted)
    with connect(folder, read_only=True) as connection:
        assert len(rows(connection, "show tables")) == 1000
        assert rows(connection, "select count(*) from duckdb_columns()") == [(1000,)]
        assert [path for path in opened if "parquet" in path] == []
        assert rows(connection, "select a from t999") == [(1,)]
        assert {path for path in opened if "parquet" in path} != set()
