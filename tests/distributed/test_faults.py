"""Workers that come, stop, or never return, and queries that do not wait for each other: the answer is right, or the error clear."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline import errors
from fuseline.distributed.crew import Crew
from fuseline.distributed.members import Member, Members, Team
from fuseline.settings import Settings
from tests.compare import assert_same_as_duckdb
from tests.distributed.conftest import WORKERS, Opened
from tests.distributed.test_crew import TABLES

LIMIT = 60.0  # seconds; a quiet machine takes one or two
QUERY = "select k, count(*), sum(n) from t group by k"
HEAVY = "select count(*) from range(100000) a(i), range(100000) b(j) where a.i * b.j = 7"


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def busy(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, list[list[int]]]]:
    """A connection of which one worker has a query that takes long, and the ranks that ran each of its queries."""
    connection, asked = opened(TABLES), []
    crew = connection._runner.crew
    chosen = Team.chosen
    monkeypatch.setattr(Team, "chosen", lambda *given: asked.append(chosen(*given)) or asked[-1])
    found: list[BaseException] = []

    def run() -> None:
        try:
            connection.sql(HEAVY).to_arrow()
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: any(member.busy for member in crew._members.team.members))
    yield connection, asked
    while thread.is_alive():
        connection.interrupt()
        time.sleep(0.05)
    assert [type(error) for error in found] == [errors.Interrupted]


def test_a_query_of_one_worker_keeps_the_others_free(busy: tuple[Any, list[list[int]]]) -> None:
    connection, asked = busy
    for _ in range(4):
        assert connection.sql("select 1").fetchall() == [(1,)]
    assert all(ranks != asked[0] and len(ranks) == 1 for ranks in asked[1:])


def test_a_query_of_one_worker_takes_no_turn(opened: Opened) -> None:
    connection = opened(TABLES)
    with connection._runner._cluster.turn.held(lambda: None):
        assert connection.sql("select 1").fetchall() == [(1,)]
        # Each worker answers its own rows, and nobody meets
        assert_same_as_duckdb("select id, n from t where n > 0", TABLES, connection=connection)


def test_rows_come_from_all_workers(opened: Opened) -> None:
    connection = opened(TABLES)
    answered: list[list[int]] = []
    crew = connection._runner.crew
    run = crew.run

    def noted(*given: Any) -> Any:
        answer = run(*given)
        answered.append([part.table().num_rows for part in answer.parts if part.rows is not None])
        return answer

    crew.run = noted
    assert_same_as_duckdb("select * from t", TABLES, connection=connection)
    assert_same_as_duckdb("select id from t order by id limit 9", TABLES, connection=connection)
    whole, first = answered
    assert len(whole) == WORKERS
    assert sum(whole) == TABLES["t"].num_rows
    assert min(whole) > 0
    assert first == [9] * WORKERS, "the client takes the first of each worker's first"


def test_threads_that_change_settings_get_right_answers(opened: Opened) -> None:
    connection = opened(TABLES)

    def run(number: int) -> None:
        if number % 5 == 0:
            connection.set_option("deterministic", number % 2 == 0)
        query = (
            f"select g, count(*), sum(n) + {number % 3} from t where id >= {number % 4} group by g"
        )
        for text in (query, "select count(*) from range(10)", "select id from t where n > 50"):
            assert_same_as_duckdb(text, TABLES, connection=connection)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(24)))


def test_each_connection_calls_by_its_own_client(client: Any) -> None:
    """A call by that of another one would come back when its loop happens to wake up, and never after that is closed."""
    given = {"cluster": client.scheduler.address}
    with fuseline.connect("cpu", **given) as one, fuseline.connect("cpu", **given) as other:
        for crew in (one._runner.crew, other._runner.crew):
            assert {m.actor.client for m in crew._members.team.members} == {crew.client}
        one.close()
        assert other.sql("select 1").fetchall() == [(1,)]


class Fragile:
    """A scheduler here, and workers that nobody starts again."""

    def __init__(self, cluster: Any, client: Any) -> None:
        self.cluster, self.client = cluster, client
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            self.cluster.scheduler_address,
        ]
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--memory-limit", "0"]
        self.workers.append(subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL))
        self.client.wait_for_workers(len(self.workers), timeout=LIMIT)


@pytest.fixture(scope="module")
def fragile() -> Iterator[Fragile]:
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    with (
        distributed.LocalCluster(
            n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, direct_to_workers=True) as client,
    ):
        made = Fragile(cluster, client)
        made.start()
        yield made
        for worker in made.workers:
            worker.send_signal(signal.SIGCONT)
            worker.kill()
            worker.wait()


def test_workers_come_stop_and_never_return(fragile: Fragile, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(TABLES["t"], path, row_group_size=50)
    with fuseline.connect(
        "cpu", cluster=fragile.client, replicate_below=0, worker_grace=1
    ) as connection:
        connection.read_parquet(path, "t")
        crew = connection._runner.crew

        def answered_by(workers: int) -> bool:
            assert_same_as_duckdb(QUERY, TABLES, connection=connection)
            return crew.size == workers

        assert answered_by(1)
        fragile.start()
        until(lambda: answered_by(2))  # one that joins is used

        second = fragile.workers[1]
        os.kill(second.pid, signal.SIGSTOP)
        until(lambda: answered_by(1))  # one that is silent counts as lost
        os.kill(second.pid, signal.SIGCONT)
        until(lambda: answered_by(2))  # and is used again when it speaks

        second.kill()
        second.wait()
        assert answered_by(1)  # one that never returns is not waited for twice
        assert_same_as_duckdb(QUERY, TABLES, connection=connection)

        fragile.workers[0].kill()
        fragile.workers[0].wait()
        with pytest.raises(errors.ClusterError, match="no worker"):
            connection.sql(QUERY).to_arrow()
        fragile.workers.clear()
        fragile.start()
        assert answered_by(1)  # and the connection goes on


def test_a_worker_that_goes_while_it_is_started_is_not_waited_for() -> None:
    class WithoutWorkers:
        def addresses(self, _: float) -> list[str]:
            return []

    members = Members(WithoutWorkers(), Settings(), "cpu")  # type: ignore[arg-type]
    with pytest.raises(OSError, match="was lost while it was started"):
        members._wait(Future(), "tcp://127.0.0.1:1")


class Lost:
    """An actor of which Dask knows that its worker is gone."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("Worker holding Actor was lost.  Status: error")


def test_a_worker_that_dask_knows_to_be_lost_is_no_fault_of_ours() -> None:
    """The scheduler's list of workers, of a moment ago, may have it yet."""
    cluster: Any = SimpleNamespace(there=lambda _: {"tcp://127.0.0.1:1"}, begun=None)
    members = Members(cluster, Settings(), "cpu")
    member: Any = Member("tcp://127.0.0.1:1", Lost(), None)
    with pytest.raises(errors.ClusterError, match=r"Worker 0 .* was lost"):
        members.check(Team(1, (member,)), [0])
    gone: Any = Member("tcp://127.0.0.1:1", Lost(), SimpleNamespace(status="lost"))
    cluster.client = None
    with pytest.raises(errors.ClusterError, match=r"Worker 0 .* was lost"):
        members.begin_query(Team(1, (gone,)), [0], [])
    crew: Any = object.__new__(Crew)
    crew._cluster, crew._members = cluster, members
    crew._tables = SimpleNamespace(take_gone=lambda: {1})
    members.team = Team(1, (member,))
    member.tables = {1}
    crew._forget()
    assert not member.tables
