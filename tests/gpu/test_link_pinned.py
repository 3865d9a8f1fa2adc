"""Pieces of joins in pinned memory: the pool of blocks, copies of columns of all types, and what happens without room."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.errors import ExecutionError
from fuseline.operators import gpu, spilling
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits
from tests.operators.test_join_parts import QUERIES, T, U, fail_whole_joins

pytestmark = pytest.mark.gpu

KILO = 1 << 10


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from fuseline.operators.gpu.memory import link

    made = link.Pool()
    monkeypatch.setattr(link, "POOL", made)
    yield made
    gc.collect()
    made.clear()


def test_a_block_is_used_again(pool: Any) -> None:
    first = pool.take(300 * KILO)
    block = first.block
    assert block.pinned
    assert block.size >= 300 * KILO
    second = pool.take(300 * KILO)
    assert second.block.address != block.address
    del first
    assert pool.free == [block]
    assert pool.take(280 * KILO).block is block
    assert pool.free == [block]  # nobody refers to that lease
    assert pool.take(1000 * KILO).block is not block  # too small
    assert pool.take(1).block is not block  # by far too large


def test_pages_of_large_blocks_are_made_by_threads(pool: Any, limits: SetLimits) -> None:
    limits(link__LEAST_TOUCHED=1000 * KILO)
    small, large = pool.take(300 * KILO), pool.take(5000 * KILO)
    assert small.block.pinned
    assert large.block.pinned
    assert small.block.owner is None
    assert large.block.owner is not None
    array = np.asarray(large)
    array[:] = np.arange(len(array), dtype=np.uint8)
    del small, large
    assert len(pool.free) == 1  # the array keeps its block
    assert (array == np.arange(len(array), dtype=np.uint8)).all()
    del array
    assert len(pool.free) == 2
    pool.clear()


def test_a_buffer_keeps_its_block(pool: Any) -> None:
    lease = pool.take(KILO)
    block, buffer = lease.block, lease.buffer().slice(64, 8)
    del lease
    assert pool.free == []
    del buffer
    assert pool.free == [block]


def test_no_more_blocks_are_kept_than_agreed(pool: Any, limits: SetLimits) -> None:
    limits(link__KEPT_BYTES=300 * KILO)
    leases = [pool.take(128 * KILO) for _ in range(3)]
    last = leases[-1].block
    while leases:
        del leases[0]
    assert len(pool.free) == 2
    assert pool.free[-1] is last


@pytest.mark.parametrize("size", [0, 1, 1 << 16, (1 << 16) + 1, 5 << 20, (256 << 20) + 12345])
def test_sizes_of_blocks_are_few_and_near(size: int) -> None:
    from fuseline.operators.gpu.memory.link import rounded

    assert size <= rounded(size) <= max(size + (1 << 16), size * 9 // 8)
    assert rounded(rounded(size)) == rounded(size)


def test_where_the_system_refuses_memory_is_of_the_usual_kind(
    pool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.take(KILO)
    monkeypatch.setattr(pool, "_locked", lambda size: None)
    lease = pool.take(1000 * KILO)
    assert not lease.block.pinned
    assert lease.buffer().size >= 1000 * KILO
    kept = len(pool.free)
    del lease
    assert len(pool.free) == kept
    monkeypatch.setattr("fuseline.operators.gpu.memory.link.np.empty", no_memory)
    with pytest.raises(ExecutionError, match=r"no memory for 1,024,000 bytes.*SET spill_memory"):
        pool.take(1000 * KILO)


def no_memory(*_: Any) -> Any:
    raise MemoryError


def test_blocks_serve_the_next_query(pool: Any, tmp_path: Path, monkeypatch: Any) -> None:
    fail_whole_joins(monkeypatch, gpu)
    asked: list[int] = []
    locked = pool._locked
    monkeypatch.setattr(pool, "_locked", lambda size: asked.append(size) or locked(size))
    with connected({"t": T, "u": U}, "gpu", fuse="never", spill_dir=tmp_path) as connection:
        for _ in range(3):
            connection.sql(QUERIES["left"]).to_arrow()
            gc.collect()
            assert pool.free
    assert len(asked) <= 4


def column(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([values[i % len(values)] for i in range(3000)], kind)


VALUES = {
    "bool": column([True, None, False], pa.bool_()),
    "tiny": column([-128, 127, None, 0], pa.int8()),
    "wide": column([2**64 - 1, 0, None], pa.uint64()),
    "real": column([float("nan"), -0.0, None, float("-inf"), 1.5], pa.float32()),
    "double": column([float("nan"), 5e-324, None], pa.float64()),
    "price": column([Decimal("1.25"), Decimal("-99999999.99"), None], pa.decimal128(10, 2)),
    "huge": column([Decimal(10) ** 37, -(Decimal(10) ** 37), None], pa.decimal128(38, 0)),
    "day": column([date(1, 1, 1), date(9999, 12, 31), None], pa.date32()),
    "moment": column([datetime(1900, 1, 1), datetime(2262, 4, 12), None], pa.timestamp("us")),
    "text": column(["", None, "é" * 40, "x"], pa.string()),
    "blank": column(["", None], pa.string()),
    "full": column([1, 2, 3], pa.int32()),
    "none": pa.nulls(3000, pa.int32()),
}


@pytest.mark.parametrize("memory", ["1GB", "200kB", "0"])
def test_columns_of_all_types_come_back(memory: str, tmp_path: Path, monkeypatch: Any) -> None:
    """From pinned memory, from files, and some from either."""
    monkeypatch.setattr("fuseline.operators.gpu.join.join_parts.PIECE_BYTES", 50_000)
    fail_whole_joins(monkeypatch, gpu)
    keys = np.arange(3000)
    tables = {
        "t": pa.table({"k": keys, **VALUES}),
        "u": pa.table({"k": keys[::-1] * 2, "other": pa.array([f"o{i}" for i in keys])}),
    }
    settings: dict[str, Any] = {"spill_dir": tmp_path, "spill_memory": memory}
    with connected(tables, "gpu", fuse="never", **settings) as connection:
        query = "select t.*, u.other from t left join u on t.k = u.k"
        assert_same_as_duckdb(query, tables, connection=connection)
        frame = connection.sql(query)
        frame.to_arrow()
        places = {"1GB": {"pinned host memory"}, "0": {"disk"}}
        both = {"pinned host memory", "disk"}
        assert set(frame.profile.spilled) == places.get(memory, both)
    assert not list(tmp_path.iterdir())


def test_pieces_become_smaller_without_memory_to_cut_them(tmp_path: Path, monkeypatch: Any) -> None:
    from fuseline.operators.gpu.join import join_parts

    fail_whole_joins(monkeypatch, gpu)
    numbered, rows = join_parts.part_numbers, []

    def tight(keys: Any) -> Any:
        if keys[0].size() > 3000:
            raise MemoryError("std::bad_alloc")
        rows.append(keys[0].size())
        return numbered(keys)

    monkeypatch.setattr(join_parts, "part_numbers", tight)
    tables = {"t": T, "u": U}
    with connected(tables, "gpu", fuse="never", spill_dir=tmp_path) as connection:
        assert_same_as_duckdb(QUERIES["inner"], tables, connection=connection)
    assert max(rows) <= 3000
    assert sum(rows) == T.num_rows + U.num_rows


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_nothing_is_left_of_a_spill_that_stops(
    error: Any, pool: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """Neither files nor blocks in use."""

    def stop(*_: Any, **__: Any) -> Any:
        assert list(tmp_path.iterdir())
        raise error("No space left on device")

    fail_whole_joins(monkeypatch, gpu)
    monkeypatch.setattr("fuseline.operators.gpu.join.join_parts.PIECE_BYTES", 50_000)
    monkeypatch.setattr(spilling.pa.ipc, "new_file", stop)
    settings: dict[str, Any] = {"spill_dir": tmp_path, "spill_memory": "200kB"}
    with connected({"t": T, "u": U}, "gpu", fuse="never", **settings) as connection:
        expected = KeyboardInterrupt if error is KeyboardInterrupt else ExecutionError
        with pytest.raises(expected) as found:
            connection.sql(QUERIES["inner"]).to_arrow()
    if expected is ExecutionError:
        assert "spill_memory = 195.3 KiB" in str(found.value)
        assert "No space left on device" in str(found.value)
    del found
    gc.collect()
    assert not list(tmp_path.iterdir())
    assert len({block.address for block in pool.free}) == len(pool.free) > 1
