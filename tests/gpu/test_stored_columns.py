"""The column store on a GPU: the answers are the same with and without it, and a later connection reads no Parquet for columns that kernels read."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.gpu

ROWS = 100_000
QUERIES = (
    "select k, sum(n), sum(m), min(t), max(f), count(b), min(d) from t group by k order by k",
    "select count(*), max(f) from t where f > 100 and b",
    "select n, s from t where n % 9973 = 1 order by n",
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    numbers = np.arange(ROWS)
    table = pa.table({
        "n": numbers, "k": pa.array(["a", "b", None, "d"]).take(pa.array(numbers % 4)),
        "m": pa.array([Decimal(int(i) % 1000).scaleb(-2) if i % 7 else None for i in numbers], pa.decimal128(12, 2)),
        "t": pa.array(numbers * 10**6, pa.timestamp("us")), "f": pa.array(numbers / 7, mask=numbers % 11 == 0),
        "b": pa.array(numbers % 2 == 0, mask=numbers % 5 == 0), "s": [f"{i % 50}" for i in numbers],
        "d": pa.array(numbers.astype(np.int32) % 3000, pa.date32()),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=ROWS // 4)
    return tmp_path / "t.parquet"


def run(
    source: Path,
    store: Path | None,
    device: str = "gpu",
    queries: tuple[str, ...] = QUERIES,
    **settings: object,
) -> tuple[list[Any], dict[str, int]]:
    """Return what a new connection answers, and the bytes that it took from each tier."""
    lifted = {"host": 0, "store": 0, "Parquet": 0}
    settings = {"fuse": "always", **settings}
    with fuseline.connect(device, column_store=store, **settings) as connection:
        connection.read_parquet(str(source), "t")
        answers = []
        for query in queries:
            frame = connection.sql(query)
            answers.append(frame.fetchall())
            for each in frame.profile.lifted or ():
                lifted[each.tier] += each.bytes
    return answers, lifted


@pytest.mark.parametrize(("before", "after"), [("gpu", "gpu"), ("gpu", "cpu"), ("cpu", "gpu")])
def test_a_restart_reads_no_parquet(source: Path, tmp_path: Path, before: str, after: str) -> None:
    expected, _ = run(source, None)
    found, lifted = run(source, tmp_path / "columns", before)
    assert (found, lifted["store"]) == (expected, 0)
    found, lifted = run(source, tmp_path / "columns", after)
    assert (found, lifted["Parquet"]) == (expected, 0)
    assert lifted["store"] > 0


def test_damaged_files_are_read_from_parquet(source: Path, tmp_path: Path) -> None:
    expected, _ = run(source, tmp_path / "columns")
    for path in (tmp_path / "columns").iterdir():
        path.write_bytes(path.read_bytes()[:-100])
    found, lifted = run(source, tmp_path / "columns")
    assert (found, lifted["store"]) == (expected, 0)


def test_what_leaves_the_device_comes_back_from_the_store(source: Path, tmp_path: Path) -> None:
    settings = {"column_store": tmp_path / "columns", "fuse": "always", "host_cache_limit": 0}
    with fuseline.connect("gpu", **settings) as connection:
        connection.read_parquet(str(source), "t")
        expected = connection.sql(QUERIES[0]).fetchall()
        assert connection.cache.store is not None
        connection.cache.store.close()
        connection.cache.release("gpu", 1 << 40)
        frame = connection.sql(QUERIES[0])
        assert frame.fetchall() == expected
        assert {each.tier for each in frame.profile.lifted or ()} == {"store"}


LARGE = (
    "select k, sum(n), sum(m), min(t), max(f), count(b), min(d) from t group by k order by k",
    "select count(*), max(f), max(s), count(d) from t where f > 100 and b",
    "select max(u), min(u), count(u), sum(n) from t where k = 'b'",
)


@pytest.mark.parametrize("before", ["gpu", "cpu"])
@pytest.mark.parametrize("fused", ["always", "never"])
def test_chunks_are_rows_of_stored_columns(tmp_path: Path, before: str, fused: str) -> None:
    """Row groups do not begin with a byte of the bitmaps; the column `u` has no codes."""
    numbers = np.arange(ROWS)
    path = tmp_path / "t.parquet"
    table = pa.table({
        "n": numbers, "k": pa.array(["a", "b", None, "d"]).take(pa.array(numbers % 4)),
        "m": pa.array([Decimal(int(i) % 1000).scaleb(-2) if i % 7 else None for i in numbers], pa.decimal128(12, 2)),
        "t": pa.array(numbers * 10**6, pa.timestamp("us")), "f": pa.array(numbers / 7, mask=numbers % 11 == 0),
        "b": pa.array(numbers % 2 == 0, mask=numbers % 5 == 0), "s": [f"{i % 50}" for i in numbers],
        "d": pa.array(numbers.astype(np.int32) % 3000, pa.date32()),
        "u": pa.array([f"text number {i} of many" if i % 13 else None for i in numbers]),
    })  # fmt: skip
    pq.write_table(table, path, row_group_size=7_777)
    expected, _ = run(path, None, "cpu", LARGE)
    run(path, tmp_path / "columns", before, LARGE)
    limits = {"column_cache_limit": 1_000_000, "fuse": fused}
    for _ in range(2):
        found, lifted = run(path, tmp_path / "columns", "gpu", LARGE, **limits)
        assert found == expected
        assert lifted["store"] > 0
