"""Rows that workers give each other as columns of fixed width, on one GPU: threads are the workers, and copies are their link."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.operators.context import Context, MovedBytes
from fuseline.plan.exchange import Exchange
from fuseline.plan.expr import new_column
from fuseline.plan.physical import Stored
from fuseline.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, SMALLINT, TINYINT, decimal
from fuseline.stopping import Stop
from fuseline.storage.columns.cache import ColumnCache
from tests.distributed.test_exchange_rounds import (
    WAIT_SECONDS,
    WORKERS,
    _Board,
    _Peers,
)

pytestmark = pytest.mark.gpu

TYPES = {
    "id": BIGINT, "k": BIGINT, "tiny": TINYINT, "small": SMALLINT, "day": DATE, "real": DOUBLE,
    "truth": BOOLEAN, "price": decimal(12, 2), "wide": decimal(38, 0), "sum": decimal(38, 0),
}  # fmt: skip
COLUMNS = {name: new_column(name, data_type) for name, data_type in TYPES.items()}
ROWS = [[1000, 40_000, 333], [0, 0, 0], [0, 1, 0], [5, 0, 70_001]]


class DevicePeers(_Peers):
    """Workers whose memory is that of one device."""

    met_all = threading.Barrier(WORKERS)

    def move(
        self, number: int, outgoing: Sequence[MovedBytes], incoming: Sequence[MovedBytes]
    ) -> None:
        from fuseline.operators.gpu.memory.buffers import copy
        from fuseline.operators.gpu.memory.device import synchronize

        synchronize()
        with self.board.changed:
            for part in outgoing:
                self.board.moved[self.rank, part.rank].append(part)  # type: ignore[arg-type]
            self.board.changed.notify_all()
            for rank, address, size in incoming:
                waiting: Any = self.board.moved[rank, self.rank]
                self.board.wait(lambda waiting=waiting: bool(waiting))
                sent = waiting.pop(0)
                assert sent.size == size
                copy(address, sent.address, size)
        synchronize()
        self.met_all.wait(WAIT_SECONDS)  # before the memory of what was sent goes

    def exchange(self, number: int, parts: Any) -> list[pa.RecordBatch]:
        with self.board.changed:
            self.board.met[number].setdefault(self.rank, parts)
            self.board.changed.notify_all()
            self.board.wait(lambda: len(self.board.met[number]) == WORKERS)
            return [b for r in range(WORKERS) for b in self.board.met[number][r][self.rank]]


def rows_of(rank: int, rows: int) -> pa.Table:
    """Columns with NULLs on some workers alone, and a key that half of all rows have."""
    draw = np.random.default_rng(rank)
    numbers = np.arange(rows) * WORKERS + rank
    keys = np.where(draw.random(rows) < 0.5, 7, draw.integers(0, 500, rows))
    none = draw.random(rows) < 0.2 if rank != 1 else np.zeros(rows, bool)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "k": pa.array(keys, pa.int64(), mask=none[::-1]),
            "tiny": pa.array((numbers % 200 - 100).astype(np.int8), mask=none),
            "small": pa.array((numbers % 30_000).astype(np.int16)),
            "day": pa.array((numbers % 9000).astype("datetime64[D]"), mask=none),
            "real": pa.array(numbers / 7),
            "truth": pa.array(numbers % 3 == 0, mask=none),
            "price": pa.array([Decimal(int(n)) / 100 for n in numbers], pa.decimal128(12, 2)),
            "wide": pa.array([Decimal(int(n)) * 10**30 for n in numbers], pa.decimal128(38, 0)),
            "sum": pa.array([Decimal(int(n) - 50_000) for n in numbers], pa.decimal128(38, 0)),
        }
    )


def exchanged(
    node: Exchange, rows: list[int], fuse: str, folder: Path, narrow: tuple[int, ...] = ()
) -> list[pa.Table]:
    """What each worker has after an exchange; `narrow` are those on which the wide sums lie as integers of 64 bits."""
    from fuseline.operators.gpu import table
    from fuseline.operators.gpu.exchange.placed_exchange import is_placed, placed_table
    from fuseline.operators.gpu.late_materialization import is_of_registers
    from fuseline.operators.gpu.memory.device import take_device

    assert is_placed(node)
    board, columns = _Board(), list(COLUMNS.values())

    def work(rank: int) -> pa.Table:
        take_device()
        context = Context(ColumnCache(0), Stop().check, 1, folder, fuse)
        context.peers = DevicePeers(board, rank)  # type: ignore[assignment]
        given = table.from_arrow(rows_of(rank, rows[rank]), columns)
        if rank in narrow:
            given = with_registers(given)
        made = placed_table(node, given, context)
        assert made is not None
        assert not context.placed
        if made.num_rows and any(rows):
            is_narrow = all(r in narrow for r in range(WORKERS) if rows[r])
            assert is_of_registers(made.columns, COLUMNS["sum"].id) == is_narrow
        return table.to_arrow(made, columns)

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(work, range(WORKERS)))


def with_registers(given: Any) -> Any:
    """A table whose sums are made of integers as in registers, as a kernel leaves them."""
    from fuseline.operators.gpu import table
    from fuseline.operators.gpu.columns import INT64, cast
    from fuseline.operators.gpu.late_materialization import LateColumns
    from fuseline.operators.gpu.pipeline.finish import late_integers

    column = COLUMNS["sum"]
    held = dict(given.columns)
    unscaled = cast(held[column.id], INT64)
    held[column.id] = late_integers(unscaled, column.type, None)
    return table.Table(LateColumns.of_one(held), given.num_rows)


def exchange(kind: Any, by: tuple[str, ...] = ("k",), **more: Any) -> Exchange:
    stored = Stored(0, tuple(COLUMNS.values()), device="gpu")
    return Exchange(stored, kind, 3, tuple(COLUMNS[k] for k in by), device="gpu", **more)


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize(
    "node",
    [exchange("hash"), exchange("hash", keeps_heavy=True), exchange("range", cuts=(100, 400))],
    ids=["hash", "heavy", "range"],
)
def test_kernels_place_rows_as_libcudf_does(
    node: Exchange, rows: list[int], tmp_path: Path
) -> None:
    """All rows are there as they were, and equal keys are on one worker, but for those that stay where they are."""
    own, by_libcudf = (exchanged(node, rows, fuse, tmp_path) for fuse in ("always", "never"))
    for one, other in zip(own, by_libcudf, strict=True):
        assert one.equals(other)
    given = pa.concat_tables([rows_of(rank, count) for rank, count in enumerate(rows)])
    found = pa.concat_tables(own)
    assert found.sort_by("id").equals(given.cast(found.schema).sort_by("id"))
    if not node.keeps_heavy:
        keys = [set(table["k"].to_pylist()) for table in own]
        assert sum(map(len, keys)) == len(set().union(*keys))


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("narrow", [(0, 1, 2), (0,), (1, 2)], ids=str)
@pytest.mark.parametrize(
    "node", [exchange("hash"), exchange("gather", ()), exchange("broadcast", ())], ids=lambda n: n.kind
)  # fmt: skip
def test_integers_as_in_registers_stay_so_where_all_workers_have_them(
    node: Exchange, narrow: tuple[int, ...], rows: list[int], tmp_path: Path
) -> None:
    found = exchanged(node, rows, "always", tmp_path, narrow)
    given = pa.concat_tables([rows_of(rank, count) for rank, count in enumerate(rows)])
    given = given.cast(found[0].schema)
    if node.kind == "hash":
        assert pa.concat_tables(found).sort_by("id").equals(given.sort_by("id"))
    else:  # in the order of workers
        wanted = [given] * WORKERS if node.kind == "broadcast" else [given, *[given[:0]] * 2]
        assert all(one.equals(other) for one, other in zip(found, wanted, strict=True))


@pytest.mark.parametrize("rows", [40_000, 1, 0])
@pytest.mark.parametrize(
    ("by", "more"),
    [(("k",), {}), (("k", "day"), {}), (("k",), {"cuts": (100, 400)})],
    ids=["hash", "hash of two", "range"],
)
def test_each_picks_its_own_of_rows_that_all_have(
    by: tuple[str, ...], more: dict[str, Any], rows: int, tmp_path: Path
) -> None:
    from fuseline.operators.gpu import table
    from fuseline.operators.gpu.exchange.device_exchange import exchanged
    from fuseline.operators.gpu.memory.device import take_device

    columns, node, given = list(COLUMNS.values()), exchange("pick", by, **more), rows_of(0, rows)

    def picked(rank: int, fuse: str) -> pa.Table:
        take_device()
        context = Context(ColumnCache(0), Stop().check, 1, tmp_path, fuse)
        context.peers = DevicePeers(_Board(), rank)  # type: ignore[assignment]
        made = exchanged(node, table.from_arrow(given, columns), lambda keys: [], context)
        assert made is not None
        return table.to_arrow(made, columns)

    found = [picked(rank, "always") for rank in range(WORKERS)]
    assert found == [picked(rank, "never") for rank in range(WORKERS)]
    together = pa.concat_tables(found).sort_by("id")
    assert together.equals(given.cast(together.schema).sort_by("id"))
    keys = [set(zip(*(t[k].to_pylist() for k in by), strict=True)) for t in found]
    assert sum(map(len, keys)) == len(set().union(*keys))
