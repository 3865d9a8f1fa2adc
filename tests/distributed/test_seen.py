"""What a cluster shows of itself: its workers, their columns, and what each did for a query."""

from __future__ import annotations

import gc
import os
from typing import Any

import pyarrow as pa
import pytest

import fuseline
from fuseline import errors
from fuseline.distributed.runner import ClusterRunner
from tests.compare import assert_same_as_duckdb
from tests.distributed.conftest import WORKERS, Opened
from tests.distributed.test_crew import TABLES
from tests.distributed.test_faults import until


def test_the_workers_are_a_table(client: Any, opened: Opened) -> None:
    connection = opened(TABLES)
    query = "select address, process_id, device, free_memory <= memory, runs_query from fuseline_workers() order by worker"
    rows = connection.sql(query).fetchall()
    assert {row[0]: row[1] for row in rows} == client.run(os.getpid)
    assert [row[2:] for row in rows] == [("cpu", True, False)] * WORKERS


def test_without_a_cluster_there_are_none() -> None:
    with fuseline.connect("cpu") as connection:
        assert connection.sql("select * from fuseline_workers()").fetchall() == []
        connection.register("t", TABLES["t"]).select("n").cache()
        assert connection.sql("select worker from fuseline_columns()").fetchall() == [(None,)] * 1


def test_columns_of_all_workers_are_shown(opened: Opened) -> None:
    connection = opened(TABLES)
    connection.register("mine", TABLES["u"])
    connection.sql("select sum(n) from t, mine where t.k = mine.k and w > 3").to_arrow()
    query = "select table_name, worker, max(rows) from fuseline_columns() group by all order by all"
    shown = connection.sql(query).fetchall()
    path = next(name for name, _, _ in shown if name != "mine")
    assert [(n, w) for n, w, _ in shown] == sorted(
        (name, worker) for name in ("mine", path) for worker in range(WORKERS)
    )
    assert sum(rows for name, _, rows in shown if name == path) == TABLES["t"].num_rows
    connection.unregister("mine")
    assert "mine" not in {row[0] for row in connection.sql(query).fetchall()}


def test_rows_of_the_client_are_sent_once(opened: Opened, monkeypatch: Any) -> None:
    from fuseline.distributed.crew import Crew

    connection, sent = opened(TABLES), []
    made = Crew._sent
    monkeypatch.setattr(Crew, "_sent", lambda *given: sent.append(made(*given)) or sent[-1])
    given = pa.table({"k": [1, 2, 2]})
    connection.register("mine", given)
    for aggregate in ("count(*)", "sum(t.n)", "max(t.id)"):
        query = f"select {aggregate} from t join mine on t.k = mine.k"
        assert_same_as_duckdb(query, {**TABLES, "mine": given}, connection=connection)
    assert [len(plan.tables) for plan in sent] == [1] * WORKERS + [0] * WORKERS * 2
    connection.unregister("mine")


def test_each_stage_is_told(opened: Opened) -> None:
    connection = opened(TABLES)
    for _ in range(2):  # workers agree on columns before the first run of a plan
        frame = connection.sql("select k, count(*) as c from t group by k order by c, k limit 5")
        frame.to_arrow()
    workers = frame.profile.workers
    assert [worker.worker for worker in workers] == list(range(WORKERS))
    for worker in workers:
        assert [meeting.number for meeting in worker.meetings] == [
            meeting.number for meeting in workers[0].meetings
        ]
        assert sum(worker.stages()) + worker.met_seconds == pytest.approx(worker.seconds)
    moved = [
        (sum(w.meetings[i].sent for w in workers), sum(w.meetings[i].received for w in workers))
        for i in range(len(workers[0].meetings))
    ]
    assert moved
    assert all(sent == received > 0 for sent, received in moved)
    text = frame.explain("analyze")
    told = [line for line in text.splitlines() if line.startswith("Stage ")]
    assert len(told) == len(moved) + 1
    assert "MB out" in told[0]
    assert "control and answers" in text


def test_explain_shows_the_plan_that_workers_run(opened: Opened, monkeypatch: Any) -> None:
    plans, plan = [], ClusterRunner._plan

    def planning(self: Any, logical: Any, observer: Any) -> Any:
        plans.append(logical)
        return plan(self, logical, observer)

    connection = opened(TABLES)
    query = "select k, count(*) as c from t where k > 1 group by k order by k"
    monkeypatch.setattr(ClusterRunner, "_plan", planning)
    ((_, shown),) = connection.execute(f"explain {query}").fetchall()
    assert shown.endswith("plan: made for this text")
    connection.execute(query).fetchall()
    ((_, ran),) = connection.execute(f"explain analyze {query}").fetchall()
    assert "plan: known of this text" in ran
    assert connection.sql(query).explain().splitlines()[:-1] == shown.splitlines()[:-1]
    assert len(plans) == 1


def test_dask_is_told_of_queries(client: Any, opened: Opened) -> None:
    connection = opened(TABLES)
    with pytest.raises(errors.ConversionError):
        connection.sql("select cast(g as integer) from t").to_arrow()

    def told() -> bool:
        # Until workers have met for its columns: on a busy machine they do not wait for the turn
        connection.sql("select g, count(*) from t group by g order by g").to_arrow()
        found = [event for _, event in client.get_events("fuseline")]
        return any(e["meets"] and e["meetings"] > 0 and e["sent"] > 0 for e in found) and any(
            "INTEGER" in (e["error"] or "") for e in found
        )

    until(told)


def test_a_query_makes_no_task(client: Any, opened: Opened) -> None:
    gc.collect()  # of earlier connections, whose actors Dask then lets go
    connection = opened(TABLES)
    query = "select g, count(*) from t group by g order by g"
    connection.sql(query).to_arrow()
    tasks = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.transition_log))
    for _ in range(3):
        connection.sql(query).to_arrow()
    again = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.transition_log))
    assert again == tasks
