"""Workers that are killed at any moment of a query: the answer is right, and so is the next one."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import fuseline
from tests.compare import assert_same_as_duckdb
from tests.distributed.conftest import Opened
from tests.distributed.test_crew import TABLES
from tests.distributed.test_faults import until

KILLS = 40
QUERIES = [
    "select k, count(*), sum(n) from t group by k",
    "select count(*), sum(w) from t join u on t.k = u.k",
    "select g, count(distinct k) from t group by g",
    "select id from t where k not in (select k from u where k is not null) order by id limit 20",
]


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_answers_outlive_workers(client: Any, opened: Opened) -> None:
    connection = opened(TABLES)
    seed = random.randrange(1 << 30)
    print("seed", seed)
    draw = random.Random(seed)
    for number in range(KILLS):
        processes = client.run(os.getpid)
        victim, delay = draw.choice(sorted(processes.values())), draw.random() * 0.1

        def kill(victim: int = victim, delay: float = delay) -> None:
            time.sleep(delay)
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        for _ in range(3):
            query = QUERIES[number % len(QUERIES)]
            assert_same_as_duckdb(query, TABLES, connection=connection)
        killer.join()
        assert_same_as_duckdb(query, TABLES, connection=connection)


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
