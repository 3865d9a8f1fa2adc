"""One process that writes a folder, and others that read it; and processes that are forked with a folder open."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import fuseline
from fuseline.errors import CatalogError, FileError

READER = """
    import sys, fuseline
    from fuseline.errors import FileError
    connection = fuseline.connect(sys.argv[1], read_only=True, device="cpu", fuse="never")
    frame = connection.table("t")
    for line in sys.stdin:
        if line.strip() == "write":
            try:
                fuseline.connect(sys.argv[1], device="cpu")
            except FileError as error:
                print(error, flush=True)
        elif line.strip() == "frame":
            print(frame.fetchall(), flush=True)
        else:
            connection.execute(line)
            print(connection.sql("select count(*), max(a) from t").fetchall(), flush=True)
"""


class OtherProcess:
    """A process with a connection of its own, asked a line at a time."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", textwrap.dedent(READER), str(folder)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def ask(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "shop"


@pytest.fixture
def writer(folder: Path) -> Iterator[fuseline.Connection]:
    with fuseline.connect(folder, device="cpu", fuse="never") as made:
        made.execute("create table t as select range as a from range(50000)")
        yield made


@pytest.fixture
def reader(folder: Path, writer: fuseline.Connection) -> Iterator[OtherProcess]:
    made = OtherProcess(folder)
    yield made
    made.end()


def test_readers_see_what_is_committed_and_keep_their_files(
    folder: Path, writer: fuseline.Connection, reader: OtherProcess
) -> None:
    assert reader.ask("select 1") == "[(50000, 49999)]"
    writer.execute("begin; insert into t values (60000)")
    assert reader.ask("select 1") == "[(50000, 49999)]"
    writer.execute("commit")
    assert reader.ask("begin") == "[(50001, 60000)]"
    writer.execute("insert into t values (70000)")
    assert (
        reader.ask("select 1") == "[(50001, 60000)]"
    )  # a transaction has the rows that it began with
    assert reader.ask("rollback") == "[(50002, 70000)]"
    assert "open to write in the process" in reader.ask("write")
    writer.execute("delete from t where a > 3; checkpoint; checkpoint")
    assert reader.ask("select 1") == "[(4, 3)]"
    assert len(list((folder / "data").iterdir())) == 1  # of the table that the frame has
    assert reader.ask("frame").startswith("[(0,), (1,), (2,), (3,), (4,), (5,)")
    reader.end()
    writer.execute("checkpoint")
    assert list((folder / "data").iterdir()) == []


def test_a_second_writer_is_told_what_to_do(folder: Path, writer: fuseline.Connection) -> None:
    """In another process: `flock` is of the open file, which a second one of this process stands for."""
    from fuseline.database.folder_locks import lock_to_write

    with pytest.raises(
        FileError, match=rf"in the process {os.getpid()}: open it with read_only=True"
    ):
        lock_to_write(folder)


def test_one_that_reads_refuses_to_write(folder: Path, writer: fuseline.Connection) -> None:
    writer.execute("create view v as from t; create macro m() as 1")
    with fuseline.connect(folder, read_only=True, device="cpu") as connection:
        for text in (
            "insert into t values (1)",
            "delete from t",
            "create table u (a integer)",
            "create or replace view v as select 1",
            "drop view v",
            "drop macro m",
            "alter table t rename to u",
            "create schema s",
            "begin; update t set a = 1; commit",
        ):
            with pytest.raises(CatalogError, match='The database "shop" is only read'):
                connection.execute(text)
            if connection.catalog.in_transaction:
                connection.rollback()
        connection.execute("create temp table mine as from t limit 1; checkpoint")
        assert connection.sql("from mine").fetchall() == [(0,)]


def test_a_forked_process_cannot_commit(folder: Path, writer: fuseline.Connection) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "committed"
        try:
            folder_database = writer.catalog.databases["shop"].folder
            assert folder_database is not None
            folder_database.commit(folder_database.version, {})
        except FileError as error:
            said = str(error)
        try:
            fuseline.database.open_folders.open_folder(  # type: ignore[attr-defined]
                str(folder),
                False,
                folder,
                fuseline.storage.tables.access.EVERYTHING,  # type: ignore[attr-defined]
            )
        except FileError as error:
            said += str(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.waitpid(child, 0)
    said = os.read(reading, 10_000).decode()
    assert "before this process was forked" in said
    assert "open to write in the process" in said
    writer.execute("insert into t values (1)")


def test_a_process_that_was_forked_does_not_hold_the_lock(folder: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with fuseline.connect(folder, device="cpu"):
        child = os.fork()
        if child == 0:
            os.read(reading, 1)
            os._exit(0)
    try:
        with fuseline.connect(folder, device="cpu") as again:
            again.execute("create table t (a integer)")
    finally:
        os.write(writing, b"x")
        os.waitpid(child, 0)
