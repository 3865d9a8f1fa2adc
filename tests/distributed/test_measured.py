"""The benchmarks of clusters: they ask, compare and write down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import run
from benchmarks.micro.exchange import STEP, control, exchanges
from tests.distributed.conftest import WORKERS, Opened
from tests.distributed.test_crew import TABLES


def test_a_suite_runs_on_a_cluster(
    client: Any, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("FUSELINE_REPLICATE_BELOW", "1kB")
    path, address = tmp_path / "out.json", client.scheduler.address
    options = ["--sf", "0.01", "--repeat", "2", "--queries", "q01,q13", "--json", str(path)]
    assert run.main(["tpch", "--cluster", address, "--workers", str(WORKERS), *options]) == 0
    (size,) = json.loads(path.read_text())["sizes"]
    assert size["workers"] == WORKERS
    assert size["failed"] == {}
    assert size["total"] == sum(query["hot"] for query in size["queries"].values()) > 0
    assert all(len(query["runs"]) == 2 for query in size["queries"].values())
    assert f"{WORKERS} workers: " in capsys.readouterr().out


@pytest.mark.nightly
def test_control_and_exchanges_are_measured(opened: Opened) -> None:
    connection = opened(TABLES)
    crew = connection._runner.crew
    each = crew.each
    crew.each = lambda what, *given: (
        [1e9] * WORKERS if what == "copy_bandwidth" else each(what, *given)
    )  # which takes seconds
    told = control(connection, 2)
    assert all(0 < found["min"] <= found["median"] for found in told.values())
    found = exchanges(connection, 8 * STEP, 1)
    assert [(row["kind"], row["bytes"]) for row in found] == [
        (kind, size) for kind in ("gather", "broadcast", "hash") for size in (8, 8 * STEP)
    ]
    assert all(row["rate"] > 0 for row in found)
