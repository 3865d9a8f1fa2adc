"""The thread that writes columns, and several processes over one folder."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import fuseline
from fuseline.storage.column_store import column_store
from fuseline.storage.column_store.store_writer import Check, StoreWriter

if TYPE_CHECKING:
    from pathlib import Path

from .runs import QUERIES, ROWS, answers, files

# Other processes

SCRIPT = """
import sys, time, fuseline
from fuseline.storage.tables import footers
from fuseline.storage.column_store import column_file
footers.SECONDS, footers.WRITE_RATE = 0.0, float("inf")
source, store, how = sys.argv[1:]
if how == "slow":
    written = column_file._Blocks.write
    def write(self, data):
        done = written(self, data)
        if self.count > 1000:
            print("writing", flush=True)
            time.sleep(60)
        return done
    column_file._Blocks.write = write
with fuseline.connect("cpu", column_store=store) as c:
    c.read_parquet(source, "t")
    for query in sys.stdin.read().split(";"):
        found = c.sql(query).fetchall()
        if how != "slow":  # in which another thread prints
            print(found, flush=True)
"""


def started(source: Path, store: Path, how: str = "") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(source), str(store), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(";".join(QUERIES))
    process.stdin.close()
    return process


def test_a_process_that_is_killed_while_it_writes(source: Path, store: Path) -> None:
    process = started(source, store, "slow")
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert files(store) == []
    assert len(list(store.iterdir())) == 1
    assert answers(source, store) == answers(source, None)


def test_two_processes_at_once(source: Path, store: Path, without_parquet: Any) -> None:
    expected = answers(source, None)
    processes = [started(source, store) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        with process.stdout as out:
            assert out.read().splitlines() == [str(rows) for rows in expected]
        assert process.wait() == 0
    without_parquet()
    assert answers(source, store) == expected


# The thread that writes


def test_a_writer_that_is_closed_has_written(tmp_path: Path) -> None:
    done: list[str] = []
    writer = StoreWriter()
    for name in "abc":
        assert writer.submit(name, 1, lambda check, name=name: done.append(name))  # type: ignore[misc]
    writer.close()
    assert done == ["a", "b", "c"]
    assert not writer.submit("d", 1, lambda check: done.append("d"))


def test_a_writer_ends_in_the_middle_where_there_is_no_time(tmp_path: Path) -> None:
    begun, ended = threading.Event(), []

    def work(check: Check) -> None:
        begun.set()
        try:
            while True:
                check()
                time.sleep(0.001)
        finally:
            ended.append(True)

    writer = StoreWriter()
    writer.submit("a", 1, work)
    writer.submit("b", 1, work)
    begun.wait()
    writer.close(0.01)
    assert ended == [True]
    assert not [t for t in threading.enumerate() if t.name == "fuseline-column-store"]


def test_what_waits_is_bounded() -> None:
    free = threading.Event()
    writer = StoreWriter(100)
    assert writer.submit("a", 1000, lambda check: bool(free.wait()))
    assert not writer.submit("b", 10, lambda check: None)
    free.set()
    writer.close()


def test_a_failure_of_the_writer_is_told(
    source: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the encoder has failed")

    monkeypatch.setattr(column_store, "encode", fail)
    with fuseline.connect("cpu", column_store=store, fuse="never") as connection:
        connection.read_parquet(str(source), "t")
        connection.sql("select sum(n) from t").fetchall()
        connection.cache.store.close()  # type: ignore[union-attr]
        assert connection.cache.store.refusal == "nothing can be written: the encoder has failed"  # type: ignore[union-attr]
        assert connection.sql("select sum(n) from t").fetchall() == [(ROWS * (ROWS - 1) // 2,)]
