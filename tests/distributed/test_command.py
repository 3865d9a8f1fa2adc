"""`fuseline cluster` and `fuseline doctor --cluster`, as a user runs them, and what becomes of a connection whose scheduler is gone."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import fuseline
from fuseline import errors
from tests.distributed.test_faults import LIMIT, until
from tests.test_cli import COMMAND, run

Started = Callable[[], tuple[subprocess.Popen[str], str]]


@pytest.fixture
def started() -> Iterator[Started]:
    made: list[subprocess.Popen[str]] = []

    def start() -> tuple[subprocess.Popen[str], str]:
        command = [*COMMAND, "cluster", "--workers", "2", "--port", "0", "--device", "cpu"]
        made.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert made[-1].stdout is not None
        (word, address) = made[-1].stdout.readline().split()
        assert word == "scheduler"
        return made[-1], address

    yield start
    for process in made:
        process.kill()
        process.communicate()


def is_there(process: int) -> bool:
    with suppress(FileNotFoundError):
        return ") Z" not in Path(f"/proc/{process}/stat").read_text()
    return False


def test_a_cluster_is_started_examined_and_ended(started: Started) -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    process, address = started()
    report = run("doctor", "--cluster", address, "--device", "cpu")
    said = [line for line in report.stdout.decode().splitlines() if line.startswith(" cluster:")]
    assert report.returncode == 0, report.stdout
    assert [" worker " in line and "free" in line for line in said] == [True, True, False]
    assert "GB/s out of each" in said[-1]
    with fuseline.connect("cpu", cluster=address) as connection:
        query = "select process_id from fuseline_workers()"
        workers = [row[0] for row in connection.sql(query).fetchall()]
    process.send_signal(signal.SIGINT)
    assert process.wait(LIMIT) == 0
    until(lambda: not any(map(is_there, workers)))


@pytest.mark.nightly  # Dask's client takes 10 s to give up
def test_a_scheduler_that_is_gone_is_an_error(started: Started) -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    process, address = started()
    # As long as a busy machine's scheduler may be silent while workers begin
    with fuseline.connect("cpu", cluster=address, worker_grace=20) as connection:
        query = "select process_id from fuseline_workers()"
        workers = [row[0] for row in connection.sql(query).fetchall()]
        os.kill(process.pid, signal.SIGKILL)
        until(lambda: not any(map(is_there, workers)))
        with pytest.raises(errors.ClusterError, match="scheduler"):
            connection.sql("select 1").to_arrow()


@pytest.mark.nightly  # as does its first try
def test_a_cluster_that_is_not_there_is_a_line() -> None:
    report = run("doctor", "--cluster", "tcp://127.0.0.1:1", "--device", "cpu")
    assert report.returncode == 1
    assert b"There is no Dask scheduler at tcp://127.0.0.1:1" in report.stdout
