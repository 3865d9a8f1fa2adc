"""Workers that are not as the others: other files, versions or memory, and several in one process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline import errors
from tests.compare import assert_same_as_duckdb
from tests.distributed.conftest import Opened
from tests.distributed.test_crew import TABLES
from tests.distributed.test_hard_rows import HARD, HEAVY_KEYS, JOINS, QUERIES

ROWS = 3000
OLD, NEW = ({"t": pa.table({"id": range(first, first + ROWS)})} for first in (0, 10**6))
QUERY = "select count(*), sum(id), min(id), max(id) from t"


@contextmanager
def in_folder(client: Any, worker: str, folder: Path) -> Iterator[None]:
    """A worker for which relative paths are in another folder, as if it were another host."""
    before = client.run(os.getcwd, workers=[worker])[worker]
    client.run(os.chdir, str(folder), workers=[worker])
    try:
        yield
    finally:
        client.run(os.chdir, before, workers=[worker])


@pytest.mark.parametrize("there", [None, NEW["t"]], ids=["no file", "another file"])
def test_a_file_that_only_some_hosts_see(
    there: pa.Table | None, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in ("ours", "theirs")]
    for folder in folders:
        folder.mkdir()
    pq.write_table(OLD["t"], folders[0] / "t.parquet", row_group_size=100)
    if there is not None:
        pq.write_table(there, folders[1] / "t.parquet", row_group_size=100)
    workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
    path = "/proc/self/cwd/t.parquet"
    monkeypatch.chdir(folders[0])
    with (
        fuseline.connect("cpu", cluster=client, replicate_below=0) as connection,
        in_folder(client, workers[0], folders[0]),
        in_folder(client, workers[1], folders[1]),
        in_folder(client, workers[2], folders[0]),
    ):
        connection.read_parquet(path, "t")
        with pytest.raises(errors.FuselineError, match="not the same on all workers"):
            connection.sql(QUERY).to_arrow()
        with in_folder(client, workers[1], folders[0]):
            assert_same_as_duckdb(QUERY, OLD, connection=connection)


def test_a_file_that_changes_on_one_workers_turn(client: Any, tmp_path: Path) -> None:
    """The answer is of one version of the file, or an error, and the next one is of what is there then."""
    path, new = tmp_path / "t.parquet", tmp_path / "new.parquet"
    pq.write_table(OLD["t"], path, row_group_size=100)
    pq.write_table(NEW["t"], new, row_group_size=100)
    last = max(client.scheduler_info(n_workers=-1)["workers"])
    with fuseline.connect("cpu", cluster=client, replicate_below=0) as connection:
        connection.read_parquet(path, "t")
        client.run(_change_first, str(new), str(path), workers=[last])
        try:
            found = connection.sql(QUERY).fetchall()
        except errors.FuselineError as error:
            assert "t.parquet" in str(error) or "not the same" in str(error)  # noqa: PT017 - or an answer
        else:
            sums = [sum(rows["t"]["id"].to_pylist()) for rows in (OLD, NEW)]
            assert found[0][1] in sums
        assert not new.exists()
        assert_same_as_duckdb(QUERY, NEW, connection=connection)


def _change_first(new: str, path: str) -> None:
    """Have this worker put another file in the place of one before it runs its next query."""
    from fuseline.distributed.session import WorkerSession

    run = WorkerSession._part

    def changed(self: Any, *given: Any) -> Any:
        WorkerSession._part = run  # type: ignore[method-assign]
        shutil.move(new, path)
        return run(self, *given)

    WorkerSession._part = changed  # type: ignore[method-assign]


def test_a_worker_of_another_version_is_named(client: Any) -> None:
    odd = max(client.scheduler_info(n_workers=-1)["workers"])
    client.run(_say_version, "0.0.1", workers=[odd])
    try:
        with pytest.raises(errors.ClusterError, match="All workers must be") as raised:
            fuseline.connect("cpu", cluster=client)
    finally:
        client.run(_say_version, None, workers=[odd])
    said = str(raised.value)
    assert f"{odd} has fuseline 0.0.1, the client" in said
    assert said.count("has fuseline") == said.count("tcp://") == 1
    with fuseline.connect("cpu", cluster=client) as connection:
        assert connection.sql("select 1").fetchall() == [(1,)]


def _say_version(wrong: str | None) -> None:
    from importlib.metadata import version

    from fuseline.distributed import versions

    def found(package: str) -> str:
        return wrong if wrong and package == "fuseline" else version(package)

    versions.version = found  # type: ignore[assignment]


def test_one_worker_without_memory_ends_the_query(opened: Opened) -> None:
    """The last third of the rows is some MB, which is more than its worker may take, the others a few kB."""
    long = {
        "t": pa.table(
            {"id": range(600), "s": [f"{i}" * (2500 if i > 400 else 1) for i in range(600)]}
        )
    }
    connection = opened(long, memory_limit="300kB", column_cache_limit="1kB")
    grouped = "select s, count(*) from t group by s"
    with pytest.raises(errors.MemoryLimitError, match="SET memory_limit"):
        connection.sql(grouped).to_arrow()
    assert_same_as_duckdb(
        "select id % 7 as g, count(*) from t where id < 400 group by g", long, connection=connection
    )
    connection.set_option("memory_limit", "1GB")
    assert_same_as_duckdb(grouped, long, connection=connection)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.nightly)])
def test_eight_workers_in_one_process(every: int, tmp_path: Path) -> None:
    """More than there are row groups, and with one engine's state among them."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    options = {
        "n_workers": 8,
        "threads_per_worker": 1,
        "processes": False,
        "dashboard_address": "127.0.0.1:0",
    }
    with (
        distributed.LocalCluster(**options, memory_limit=None, silence_logs=50) as cluster,
        distributed.Client(cluster, direct_to_workers=True) as client,
    ):
        for tables, queries in (
            (HARD, QUERIES),
            (HEAVY_KEYS, JOINS),
            (TABLES, ["select * from t order by n, id"]),
        ):
            with fuseline.connect(
                "cpu", cluster=client, replicate_below=0, one_worker_below=0
            ) as connection:
                assert connection._runner.crew.size == 8
                for name, table in tables.items():
                    pq.write_table(
                        table, tmp_path / f"{name}.parquet", row_group_size=len(table) // 3 + 1
                    )
                    connection.read_parquet(tmp_path / f"{name}.parquet", name)
                for query in queries[::every]:
                    assert_same_as_duckdb(query, tables, connection=connection)


@pytest.mark.nightly
@pytest.mark.skipif(
    find_spec("distributed_ucxx") is None, reason="distributed-ucxx-cu12 is not installed"
)
def test_rows_go_over_ucx(tmp_path: Path) -> None:
    """In a process of its own: UCX's settings and progress thread stay as long as it does."""
    script = tmp_path / "over_ucx.py"
    pq.write_table(OLD["t"], tmp_path / "t.parquet", row_group_size=100)
    script.write_text(OVER_UCX)
    found = subprocess.run(
        [sys.executable, script, tmp_path / "t.parquet"],
        check=False,
        capture_output=True,
        text=True,
    )
    told = found.stdout.splitlines()[-1:]  # below what UCX says
    assert told == [f"{ROWS} 50 {sum(range(ROWS))}"], found.stderr[-2000:]


OVER_UCX = """
import sys

import distributed

import fuseline

if __name__ == "__main__":
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "memory_limit": None, "protocol": "ucx"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster, direct_to_workers=True) as client:
        assert client.scheduler.address.startswith("ucx")
        with fuseline.connect("cpu", cluster=client, replicate_below=0, one_worker_below=0) as connection:
            connection.read_parquet(sys.argv[1], "t")
            rows = connection.sql("select * from t order by id % 50, id").fetchall()
            groups = connection.sql("select id % 50 as g, sum(id) as s from t group by g").fetchall()
            print(len(rows), len(groups), sum(s for _, s in groups))
"""


@pytest.mark.nightly
def test_a_result_of_two_gigabytes(client: Any, tmp_path: Path) -> None:
    """Which comes from all workers, in the order that is asked for, more than one message of 32 bits could say."""
    rows, path = 90_000_000, tmp_path / "t.parquet"
    with pq.ParquetWriter(
        path, pa.schema({"n": pa.int64(), "x": pa.float64(), "y": pa.int64()})
    ) as writer:
        for begin in range(0, rows, 10_000_000):
            numbers = pa.array(range(begin, begin + 10_000_000), pa.int64())
            writer.write_table(
                pa.table([numbers, numbers.cast(pa.float64()), numbers], ["n", "x", "y"])
            )
    with fuseline.connect("cpu", cluster=client) as connection:
        connection.read_parquet(path, "t")
        found = connection.sql("select n, x, y from t").to_arrow()
        assert found.nbytes > 2 << 30
        assert found["n"].equals(pa.chunked_array([range(rows)], pa.int64()))
