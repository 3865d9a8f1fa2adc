"""What a user sees of pipelines and columns on the GPU: EXPLAIN ANALYZE, fuseline_columns(), frame.cache(), warmup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline.cli.warmup import warm_up
from tests.compare import connected

pytestmark = pytest.mark.gpu

ROWS = 1_000_000
QUERY = "select k, sum(v) as total from t where v < 500 group by k"


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.table(
        {
            "k": np.arange(ROWS) % 3,
            "v": pa.array(np.arange(ROWS) % 1000, mask=np.arange(ROWS) == 7),
            "s": pa.array(np.array(["a", "bb", "c"])[np.arange(ROWS) % 3]),
            "long": [f"text {i}" for i in range(ROWS)],
        }
    )


@pytest.fixture
def connection(table: pa.Table, tmp_path: Path) -> Iterator[fuseline.Connection]:
    with connected({"t": table}, "gpu", fuse="always", cache_dir=str(tmp_path)) as opened:
        yield opened


def test_a_pipeline_shows_what_its_kernel_reached(connection: fuseline.Connection) -> None:
    frame = connection.sql(QUERY)
    assert "kernel compiled in" in frame.explain("analyze")
    text = frame.explain("analyze")
    assert re.search(
        r"1,000,000 rows, 3\.1 MB encoded in [\d.]+ ms: [\d.]+ [GT]B/s, \d+ % of the gpu's", text
    )
    assert "warm: columns and kernel were in memory" in text


def test_the_bandwidth_is_that_of_device_memory(connection: fuseline.Connection) -> None:
    frame = connection.sql(QUERY)
    profile = connection.run(frame.plan, timed=True).profile
    assert profile.bandwidth["gpu"] > 100e9


def test_cached_columns_are_described(connection: fuseline.Connection) -> None:
    connection.table("t").cache()
    query = """select column_name, encoding, rows, nulls, min, max, bytes < 2 * rows as narrow
        from fuseline_columns() where device = 'gpu' and encoding not in ('cudf', 'arrow') order by all"""
    assert connection.execute(query).fetchall() == [
        ("k", "narrow base=0 step=1 width=1", ROWS, 0, "0", "2", True),
        ("s", "dictionary values=3 width=1", ROWS, 0, "a", "c", True),
        ("v", "narrow base=0 step=1 width=2", ROWS, 1, "0", "999", False),
    ]
    plain = "select encoding, rows from fuseline_columns() where column_name = 'long'"
    assert connection.execute(plain).fetchall() == [("cudf", ROWS)]


def test_a_cached_table_is_warm(connection: fuseline.Connection) -> None:
    connection.table("t").select("k", "v").cache()
    frame = connection.sql(QUERY)
    frame.to_arrow()
    (node,) = frame.profile.pipelines
    assert node.receipt is not None
    assert (node.receipt.fused, node.receipt.load_seconds) == (True, 0)


def test_warmup_compiles_each_kernel_once(connection: fuseline.Connection) -> None:
    (first,), (second,) = (list(warm_up(connection, QUERY)) for _ in range(2))
    assert (first.found, first.compiled) == (0, 1)
    assert (second.found, second.compiled) == (1, 0)
