"""Answers larger than memory_limit on a GPU: batches that are made there while they are read."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import Interrupted
from fuseline.operators import gpu

pytestmark = pytest.mark.gpu

LIMIT = 60_000_000
N = 4_000_000
ROWS = f"select x, x * 7919 % {N} as k, x % 1000 / 4.0 as d, 'text ' || x % 100000 as s from range({N}) t(x)"
QUERIES = {
    "rows": ROWS,
    "order": f"{ROWS} order by k desc",
    "groups": f"select k, count(*) as n, min(s) as s from ({ROWS}) group by k order by k",
}


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    gpu.prepare()  # the limit is that of tables alone: RMM's would leave operators no room
    monkeypatch.setattr(gpu, "prepare", lambda *_, **__: None)
    with fuseline.connect(
        "gpu", memory_limit=LIMIT, column_cache_limit=LIMIT, spill_dir=tmp_path, spill_memory=0
    ) as connection:
        yield connection
    assert list(tmp_path.glob("fuseline-spill-*")) == []


@pytest.mark.parametrize("name", QUERIES)
def test_an_answer_larger_than_memory(connection, name):
    frame = connection.sql(QUERIES[name])
    found = pa.Table.from_batches(list(frame.to_batches(100_000)))
    expected = duckdb.sql(QUERIES[name]).to_arrow_table().cast(found.schema)
    assert found.equals(expected)
    assert frame.profile.devices == {"gpu"}


def test_a_whole_table_comes_in_parts():
    with fuseline.connect("gpu") as roomy:
        found = pa.Table.from_batches(list(roomy.sql(ROWS).to_batches(100_000)))
    assert found.equals(duckdb.sql(ROWS).to_arrow_table().cast(found.schema))


def test_a_reader_that_ends_half_way(connection, tmp_path):
    batches = connection.sql(QUERIES["order"]).to_batches()
    next(batches)
    connection.interrupt()
    with pytest.raises(Interrupted):
        list(batches)
    rows = iter(connection.sql(QUERIES["order"]))
    assert next(rows)[1] == N - 1
    del rows
    assert list(tmp_path.glob("fuseline-spill-*")) == []
    assert connection.sql("select 42").fetchall() == [(42,)]
