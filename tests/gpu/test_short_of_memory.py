"""Pipelines for whose kernels the device has no memory: cached columns go, then operators run, then joins in parts."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.operators import gpu
from fuseline.operators.run_unfused import run_operators
from fuseline.plan import physical as p
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits
from tests.operators.test_join_parts import T, U, fail_whole_joins

pytestmark = pytest.mark.gpu

TABLES = {"t": T, "u": U}
QUERY = "select t.g, sum(v), count(w), max(w) from t join u on t.k = u.k group by t.g"
# The pipeline's kernels read what an operator has stored
STORED = (
    "select t.g, sum(v), sum(x) from t join "
    "(select k, max(w) as x from u group by k order by x, k limit 5000) s on t.k = s.k group by t.g"
)
REASON = "one operator at a time: there is too little memory for its indexes and groups"
BAD_ALLOC = "std::bad_alloc: out_of_memory: CUDA error (failed to allocate 64 bytes)"


class Shortage:
    """Buffers of kernels, of which the allocations with these numbers fail, or all from `first` on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: Callable[[int], bool]) -> None:
        from fuseline.operators.gpu.memory import buffers

        self.count = 0
        self.alive: weakref.WeakSet[Any] = weakref.WeakSet()
        shortage = self

        class Buffer(buffers.DeviceBuffer):  # type: ignore[misc]
            pass

        def allocated(size: int, stream: Any = None) -> Any:
            shortage.count += 1
            if fails(shortage.count):
                raise MemoryError(BAD_ALLOC)
            made = Buffer(size=size, stream=stream)
            shortage.alive.add(made)
            return made

        setattr(allocated, "to_device", buffers.DeviceBuffer.to_device)  # noqa: B010
        monkeypatch.setattr(buffers, "DeviceBuffer", allocated)
        monkeypatch.setattr(buffers, "_spare", {})  # what earlier runs have given back


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Any]:
    with connected(TABLES, "gpu", fuse="always", spill_dir=tmp_path) as connection:
        yield connection
    assert not list(tmp_path.iterdir())


def notes(connection: Any, query: str) -> list[str]:
    """Check the answer, and return what the query's pipelines say of their runs."""
    assert_same_as_duckdb(query, TABLES, connection=connection)
    frame = connection.sql(query)
    frame.to_arrow()
    return [str(n.note) for n in frame.profile.nodes if n.receipt is not None]


def test_once_short_cached_columns_go_and_kernels_run(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.sql(QUERY).to_arrow()  # columns and kernels are there
    short = Shortage(monkeypatch, lambda number: number == 1)
    frame = connection.sql(QUERY)
    frame.to_arrow()
    (receipt,) = [n.receipt for n in frame.profile.nodes if n.receipt is not None]
    assert receipt.fused
    assert receipt.load_seconds > 0  # what had been there had gone
    assert short.count > 1
    assert not any(REASON in note for note in notes(connection, QUERY))


@pytest.mark.parametrize("query", [QUERY, STORED], ids=["scans", "stored"])
def test_always_short_operators_run(
    query: str, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        Shortage(patch, lambda number: True)
        for _ in range(2):
            assert any(REASON in note for note in notes(connection, query))
    # The shortage is over
    assert not any(REASON in note for note in notes(connection, query))


def test_operators_have_the_memory_that_kernels_had(
    connection: Any, monkeypatch: pytest.MonkeyPatch, limits: SetLimits
) -> None:
    """Buffers that were allocated before one failed are let go of before operators run."""
    # Groups that stay on the device take an allocation of their own, after that of indexes
    limits(compiled_pipeline__GROUP_LIMIT=1)
    short = Shortage(monkeypatch, lambda number: number % 2 == 0)
    alive: list[int] = []

    def counted(*given: Any) -> Any:
        alive.append(len(short.alive))
        return run_operators(*given)

    monkeypatch.setattr("fuseline.operators.run_pipeline.run_operators", counted)
    assert any(REASON in note for note in notes(connection, QUERY))
    assert short.count > len(alive)
    assert set(alive) == {0}


def test_short_for_operators_too_joins_run_in_parts(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Shortage(monkeypatch, lambda number: True)
    fail_whole_joins(monkeypatch, gpu)
    assert_same_as_duckdb(QUERY, TABLES, connection=connection)
    frame = connection.sql(QUERY)
    frame.to_arrow()
    joins = [n for n in frame.profile.nodes if isinstance(n.node, p.HashJoin)]
    assert joins
    assert all(" to pinned host memory" in str(n.remark) for n in joins)
    assert sum(frame.profile.spilled.values()) > 0
    reasons = {n.node.not_fused for n in frame.profile.nodes}
    assert "the joins of its pipeline did not fit into memory" in reasons


def test_stored_inputs_count_while_kernels_run(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are part of what the query holds, and under a limit the buffers of kernels come on top of it."""
    from fuseline.operators.gpu.pipeline import pipeline

    connection.execute("set memory_limit = '8GB'")
    before: list[int] = []
    during: list[int] = []
    held = pipeline._hold

    def seen(node: Any, ready: Any, context: Any) -> Any:
        before.append(context.hold.__self__.held("gpu"))
        during.append(sum(ready.launches.regions.sizes.values()))
        return held(node, ready, context)

    monkeypatch.setattr(pipeline, "_hold", seen)
    frame = connection.sql(STORED)
    frame.to_arrow()
    (node,) = [n.node for n in frame.profile.nodes if n.receipt is not None and n.receipt.builds]
    inputs = [n.bytes for n in frame.profile.nodes if any(n.node is i for i in node.inputs)]
    assert sum(inputs) > 0
    assert before[-1] == sum(inputs)
    assert during[-1] > 0


def test_text_of_an_allocation_that_fails() -> None:
    from fuseline.operators.gpu.memory.device import is_out_of_memory

    assert is_out_of_memory(MemoryError(BAD_ALLOC))
    assert is_out_of_memory(RuntimeError(BAD_ALLOC))
    assert not is_out_of_memory(RuntimeError("an illegal memory access was encountered"))


def test_without_any_way_left_the_error_says_what_to_do(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setitem(gpu.OPERATORS, p.HashJoin, failing)
        Shortage(patch, lambda number: True)
        with pytest.raises(fuseline.errors.MemoryLimitError, match=r"GPU memory.*column_cache"):
            connection.sql(QUERY).to_arrow()
    assert not any(REASON in note for note in notes(connection, QUERY))


def test_compiling_is_waited_for_where_operators_would_run_in_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("fuseline.operators.run_pipeline")
    for chunks, fused in ((None, False), ([()], True)):
        monkeypatch.setattr(module, "unfused_chunks", lambda *_, chunks=chunks: chunks)
        folder = tmp_path / str(fused)
        with fuseline.connect("gpu", fuse="auto", cache_dir=folder) as connection:
            connection.register("t", T)
            frame = connection.sql("select g, sum(v) from t where v > 0 group by g")
            frame.to_arrow()
            assert [node.receipt.fused for node in frame.profile.pipelines] == [fused]


def test_long_lists_do_not_stay_on_the_device() -> None:
    import rmm

    with fuseline.connect("gpu", fuse="never", memory_limit="8GB") as connection:
        connection.register("t", T)
        before = rmm.mr.get_current_device_resource().get_allocated_bytes()
        for first in (0, 1):
            values = ", ".join(str(first + 3 * i) for i in range(20_000))
            assert_same_as_duckdb(
                f"select count(*), sum(v) from t where k in ({values})",
                TABLES,
                connection=connection,
            )
            pattern = "%".join(f"a{i}" for i in range(10_000))
            connection.sql(f"select count(*) from t where v::text like '{pattern}'").to_arrow()
        connection.cache.clear()
        gc.collect()
        after = rmm.mr.get_current_device_resource().get_allocated_bytes()
    assert after - before < 100_000


def test_files_that_cannot_fit_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that ran out in its middle took as long as one that ends: Q21 of TPC-H SF10 under 2 GB tried seven."""
    scan = import_module("fuseline.operators.gpu.scan.scan")
    read, failed = scan._read_on_device, []

    def watched(*given: Any) -> Any:
        try:
            return read(*given)
        except (MemoryError, RuntimeError) as error:
            failed.append(error)
            raise

    monkeypatch.setattr(scan, "_read_on_device", watched)
    numbers = np.random.default_rng(3).integers(0, 1 << 40, (3, 4_000_000))
    table = pa.table(dict(zip("abc", numbers, strict=True)))
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=500_000)
    tables = {"t": tmp_path / "t.parquet"}
    limits = {"memory_limit": "80MB", "column_cache_limit": "20MB", "fuse": "never"}
    with connected(tables, "gpu", spill_dir=tmp_path, **limits) as connection:
        for query in (
            "select sum(a), sum(b), sum(c) from t",
            "select a, b, c from t where c < 1000000000",
        ):
            assert_same_as_duckdb(query, tables, connection=connection)
    assert failed == []
