"""Joins whose sides do not fit into device memory: in parts, from host memory and files, with DuckDB's answer."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import MemoryLimitError
from fuseline.operators import gpu, spilling
from fuseline.plan import physical as p
from tests.compare import assert_same_as_duckdb
from tests.operators.test_join_parts import (
    LIMITED,
    QUERIES,
    SHAPES,
    T,
    U,
    fail_whole_joins,
    remarks,
)

pytestmark = pytest.mark.gpu

# By the place where parts lie, what they may take of the host's memory
PLACES = {"pinned host memory": 1 << 40, "host memory": 1 << 40, "disk": 0}


def connect(folder: Path, tables: dict[str, pa.Table], **settings: Any) -> Any:
    connection = fuseline.connect("gpu", fuse="never", spill_dir=folder, **settings)
    for name, table in tables.items():
        connection.register(name, table)
    return connection


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where parts lie; pieces have few rows."""
    monkeypatch.setattr("fuseline.operators.gpu.join.join_parts.PIECE_BYTES", 100_000)
    monkeypatch.setattr("fuseline.operators.spill_area.host_memory", lambda: PLACES[request.param])
    if request.param == "host memory":
        refuse_to_lock(monkeypatch)
    return str(request.param)


def refuse_to_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuseline.operators.gpu.memory.link.POOL._locked", lambda size: None)
    monkeypatch.setattr("fuseline.operators.gpu.memory.link.POOL.free", [])


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory limit is that of tables alone, so small that RMM's would leave operators no room."""
    gpu.prepare()
    monkeypatch.setattr(gpu, "prepare", lambda *_, **__: None)


@pytest.mark.by_day(3)
@pytest.mark.parametrize(("kind", "shape"), list(product(QUERIES, SHAPES)))
def test_every_kind_of_join_in_parts(
    kind: str, shape: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = dict(zip("tu", SHAPES[shape], strict=True))
    fail_whole_joins(monkeypatch, gpu)
    with connect(tmp_path, tables) as connection:
        assert_same_as_duckdb(QUERIES[kind], tables, connection=connection)
        frame = connection.sql(QUERIES[kind])
        frame.to_arrow()
        joins = [n for n in frame.profile.nodes if isinstance(n.node, p.HashJoin)]
        assert joins
        empty = " part, nothing spilled"
        assert all(f" to {place}" in str(n.remark) or empty in str(n.remark) for n in joins)
        assert list(frame.profile.spilled) == [place] or "empty" in shape
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", LIMITED)
@pytest.mark.usefixtures("counted")
def test_a_small_limit_makes_parts(kind: str, place: str, tmp_path: Path) -> None:
    tables = {"t": T, "u": U}
    with connect(tmp_path, tables, memory_limit="700kB") as connection:
        assert_same_as_duckdb(LIMITED[kind], tables, connection=connection)
        frame = connection.sql(LIMITED[kind])
        frame.to_arrow()
        assert any(re.search(f"parts, spilled .*B to {place}", r) for r in remarks(frame))
        assert f"B to {place}" in str(connection.sql(LIMITED[kind]).explain("analyze"))
    assert not list(tmp_path.iterdir())


def test_a_device_without_memory_for_the_whole_join(tmp_path: Path) -> None:
    """Allocations fail beyond a limit that holds either side and the result, but not both sides and pairs of them all."""
    rows = 4_000_000
    random = np.random.default_rng(5)
    tables = {
        "t": pa.table({"k": random.permutation(rows), "v": random.integers(0, 9, rows)}),
        "u": pa.table({"k": random.permutation(rows), "w": random.integers(0, 9, rows)}),
    }
    query = "select k, v from t where exists (select * from u where u.k = t.k and u.w < t.v)"
    with connect(tmp_path, tables, column_cache_limit="1kB") as connection:
        gpu.prepare(150 << 20)
        try:
            assert_same_as_duckdb(query, tables, connection=connection)
            frame = connection.sql(query)
            frame.to_arrow()
            assert any(" to pinned host memory" in r for r in remarks(frame)), remarks(frame)
        finally:
            gpu.prepare()


@pytest.mark.usefixtures("counted")
def test_a_part_that_does_not_fit(tmp_path: Path) -> None:
    """All rows have one key, so that one part holds them."""
    text = pa.array([f"{i:0100}" for i in range(20_000)])
    tables = {
        "t": pa.table({"k": pa.array([1] * 20_000), "v": text}),
        "u": pa.table({"k": pa.array([1, 2] * 10_000), "w": text}),
    }
    query = "select min(v), max(w) from (select * from t join u on t.k = u.k and v < w)"
    with connect(tmp_path, tables, memory_limit="3MB") as connection:
        message = r"made .* on the gpu.*memory_limit = 2\.9 MiB"
        with pytest.raises(MemoryLimitError, match=message):
            connection.sql(query).to_arrow()
        assert connection.execute("select count(*) from t").fetchone() == (20_000,)


def test_an_interrupt_leaves_the_connection_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    tables = {"t": T, "u": U}
    with connect(tmp_path, tables) as connection:
        with monkeypatch.context() as patch:
            fail_whole_joins(patch, gpu)
            patch.setattr(spilling, "_worked", stop)
            patch.setattr("fuseline.operators.spill_area.host_memory", lambda: 0)
            with pytest.raises(KeyboardInterrupt):
                connection.sql(QUERIES["inner"]).to_arrow()
        assert not list(tmp_path.iterdir())
        assert_same_as_duckdb(QUERIES["inner"], tables, connection=connection)
