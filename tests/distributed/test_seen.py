"""What a cluster shows of itself: its workers, their columns, and what each did for a query."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

import fuseline
from tests.compare import assert_same_as_duckdb
from tests.distributed.conftest import WORKERS, Opened
from tests.distributed.test_crew import TABLES


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
    assert [len(order.tables) for order in sent] == [1] * WORKERS + [0] * WORKERS * 2
    connection.unregister("mine")
