"""One cluster of three CPU workers for all tests of the folder; skipped, with a reason, where Dask is not installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline

WORKERS = 3


@pytest.fixture(scope="package")  # idle workers take 4 % of a core each
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    options = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(**options, memory_limit=None, silence_logs=50) as cluster,
        distributed.Client(cluster, direct_to_workers=True) as client,
    ):
        yield client


Opened = Callable[..., Any]


@pytest.fixture
def opened(client: Any, tmp_path: Path) -> Iterator[Opened]:
    """Open a connection to the cluster over tables that lie in files of small row groups, each worker with a share of them."""
    made: list[Any] = []

    def connect(tables: dict[str, pa.Table], group_rows: int = 50, **settings: Any) -> Any:
        connection = fuseline.connect("cpu", cluster=client, **{"replicate_below": 0, **settings})
        made.append(connection)
        for name, table in tables.items():
            path = tmp_path / f"{name}{len(made)}.parquet"
            pq.write_table(table, path, row_group_size=group_rows)
            connection.read_parquet(path, name)
        return connection

    yield connect
    for connection in made:
        connection.close()
