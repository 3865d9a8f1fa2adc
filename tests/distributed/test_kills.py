"""Workers that are killed at any moment of a query: the answer is right, and so is the next one."""

from __future__ import annotations

import gc
import os
import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

import fuseline
from tests.compare import assert_same_as_duckdb
from tests.distributed.conftest import WORKERS, Opened
from tests.distributed.test_crew import TABLES
from tests.distributed.test_faults import LIMIT, until

SLICES, KILLS = 10, 10  # of the night: of each slice one more than one worker's, or for good
LATEST = 0.1  # seconds after a query has begun
QUERIES = [
    "select k, count(*), sum(n) from t group by k",
    "select count(*), sum(w) from t join u on t.k = u.k",
    "select g, count(distinct k) from t group by g",
    "select id from t where k not in (select k from u where k is not null) order by id limit 20",
]


class Killed:
    """A connection whose workers are killed while it is asked; notes when the survivors had ended what they did."""

    def __init__(self, connection: Any, draw: random.Random) -> None:
        self.connection, self.draw = connection, draw
        self.crew = connection._runner.crew
        self.back: list[float] = []  # seconds after the last kill
        self.at = 0.0
        stop = self.crew._stop

        def noted(*given: Any) -> None:
            stop(*given)
            self.back.append(time.monotonic() - self.at)

        self.crew._stop = noted

    def kill(self, victims: int = 1, for_good: bool = False, least: int = WORKERS) -> str:
        """Kill some, of at least so many, while a query runs; it is answered, and so are the next ones. Return what was seen."""
        there = self.there(least)
        chosen = self.draw.sample(sorted(there), victims)
        moments = sorted(self.draw.random() * LATEST for _ in chosen)
        if for_good:
            for nanny in self.crew.client.cluster.workers.values():
                if nanny.worker_address in chosen:
                    nanny.close_gracefully()
        self.back.clear()
        begun = time.monotonic()
        killer = threading.Thread(target=self._kill, args=[[there[c] for c in chosen], moments])
        killer.start()
        query = self.draw.choice(QUERIES)
        for _ in range(3):
            assert_same_as_duckdb(query, TABLES, connection=self.connection)
        killer.join()
        assert_same_as_duckdb(query, TABLES, connection=self.connection)
        took = time.monotonic() - begun
        assert max([0.0, *self.back]) < LIMIT, "what survivors did ended late"
        return f"{victims} killed{' for good' * for_good}: survivors back after {self.back}, answered after {took:.1f} s"

    def there(self, least: int = WORKERS) -> dict[str, int]:
        """The processes of the workers, when so many are there."""

        def are_there() -> bool:
            assert_same_as_duckdb(QUERIES[0], TABLES, connection=self.connection)
            return self.crew.size >= least

        until(are_there)
        return self.crew.client.run(os.getpid)

    def _kill(self, processes: list[int], moments: list[float]) -> None:
        begun = time.monotonic()
        for process, moment in zip(processes, moments, strict=True):
            time.sleep(max(0.0, begun + moment - time.monotonic()))
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            self.at = time.monotonic()


def test_answers_outlive_workers(opened: Opened) -> None:
    killed = Killed(opened(TABLES, worker_grace=1), random.Random(14))
    for _ in range(5):
        print(killed.kill(least=2))
    killed.there()


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", range(SLICES))
def test_answers_outlive_workers_by_night(number: int, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    seed = random.randrange(1 << 30)
    print("seed", seed)
    own, spilled = psutil.Process(), tmp_path / "spilled"
    spilled.mkdir()
    with fuseline.connect("cpu", cluster="local", workers=1):
        pass  # Dask and multiprocessing keep a thread and a process from then on
    processes = set(own.children(recursive=True))
    before = threading.active_count(), own.num_fds()

    def fewer_are_left_than_were_killed() -> bool:
        gc.collect()
        after = threading.active_count(), own.num_fds()
        return all(now < then + KILLS for now, then in zip(after, before, strict=True))

    with fuseline.connect(
        "cpu", cluster="local", workers=WORKERS, replicate_below=0, spill_dir=spilled
    ) as connection:
        for name, table in TABLES.items():
            pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=50)
            connection.read_parquet(tmp_path / f"{name}.parquet", name)
        killed = Killed(connection, random.Random(seed))
        for kill in range(KILLS):
            if kill < KILLS - 1:
                print(killed.kill())
            elif number % 2:
                connection.set_option("worker_grace", 1)
                print(killed.kill(for_good=True))
            else:
                print(killed.kill(victims=2))
    assert not list(spilled.iterdir())
    until(lambda: set(own.children(recursive=True)) == processes)
    until(fewer_are_left_than_were_killed)


@pytest.mark.nightly
def test_a_worker_that_dask_gives_up_comes_back(tmp_path: Path) -> None:
    dask = pytest.importorskip("dask", reason="the extra dask is not installed")
    path = tmp_path / "t.parquet"
    pq.write_table(TABLES["t"], path, row_group_size=50)
    # Each that dies, not only one that dies twice: none is there again so soon
    impatient = dask.config.set({"distributed.deploy.lost-worker-timeout": "10ms"})
    with (
        impatient,
        fuseline.connect("cpu", cluster="local", workers=2, replicate_below=0) as opened,
    ):
        opened.read_parquet(path, "t")
        crew = opened._runner.crew
        query = "select process_id from fuseline_workers() where worker = 1"
        os.kill(opened.sql(query).fetchall()[0][0], signal.SIGKILL)
        until(lambda: len(crew._cluster.own.workers) == 1)
        for _ in range(2):
            assert_same_as_duckdb("select k, sum(n) from t group by k", TABLES, connection=opened)
        assert crew.size == 2
