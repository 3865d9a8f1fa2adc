"""Chunks of a table whose columns are stored whole: they are slices of those, and answers are those of runs without limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline.operators.cpu.table import physical_type, to_physical
from fuseline.plan.arrow.arrow_types import from_arrow
from fuseline.runtime import schedule
from fuseline.storage.columns.encode import encode, with_order
from fuseline.storage.columns.encodings import codes_of

from .runs import AGGREGATES, ROWS, files, run, tiers
from .test_column_file import ARRAYS

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = {"column_cache_limit": 200_000, "memory_limit": 1_500_000}
LARGE = (
    AGGREGATES,
    "select max(u), min(u), count(l), sum(n) from t",
    "select count(*), sum(n), max(m) from t where b and f > 1000",
    "select k, count(distinct u) from t where n % 3 = 1 group by k order by k",
)
ALL = "select sum(n), sum(m), min(t), max(f), count(b), max(u), count(l), max(k) from t"


def ranges_of(rows: int) -> list[list[tuple[int, int]]]:
    found = [[], [(0, rows)], [(rows, rows)], [(0, 0)]]
    for seed in range(12):
        ends = np.sort(np.random.default_rng(seed).integers(0, rows + 1, 4)).tolist()
        found += [[(ends[0], ends[1])], [(ends[0], ends[1]), (ends[2], ends[3])]]
    return found


@pytest.mark.parametrize("name", ARRAYS)
def test_rows_of_a_column(name: str) -> None:
    array = to_physical(ARRAYS[name], from_arrow(ARRAYS[name].type))
    column = encode(array, from_arrow(ARRAYS[name].type))
    assert column is not None
    column = with_order(column)
    arrow = physical_type(column.type)
    whole = column.encoding.decode(codes_of(column), arrow)
    for ranges in ranges_of(min(column.rows, 5000)):
        part = column.of_rows(ranges)
        expected = pa.chunked_array([whole.slice(a, b - a) for a, b in ranges], whole.type)
        found = part.encoding.decode(codes_of(part), arrow)
        assert repr(found.to_pylist()) == repr(expected.to_pylist())  # NaN too
        assert (part.rows, part.nulls) == (len(expected), expected.null_count)
        assert (part.validity is None) == (part.nulls == 0)
        assert (part.type, part.encoding) == (column.type, column.encoding)
        assert part.ascending == (column.ascending and part.rows > 0)


def test_one_range_of_rows_is_no_copy() -> None:
    column = encode(pa.array([1, None, 3] * 1000), from_arrow(pa.int64()))
    assert column is not None
    part = column.of_rows([(80, 2000)])
    assert np.shares_memory(part.codes, column.codes)
    assert np.shares_memory(part.validity, column.validity)
    assert not np.shares_memory(column.of_rows([(81, 2000)]).validity, column.validity)


@pytest.mark.parametrize("fused", ["never", "always"])
def test_limited_runs_read_no_parquet_where_whole_columns_are_stored(
    source: Path, store: Path, fused: str, without_parquet: Any
) -> None:
    expected, _, _ = run(source, store, (ALL, *LARGE), fuse=fused)
    before = files(store)
    without_parquet()
    found, lifted, reasons = run(source, store, (ALL, *LARGE), fuse=fused, **LIMITS)
    assert (found, tiers(lifted), reasons) == (expected, {"store"}, {})
    assert files(store) == before


def test_each_file_is_checked_once_for_all_chunks_and_runs(
    source: Path, store: Path, without_parquet: Any
) -> None:
    query = LARGE[1]
    expected, _, _ = run(source, store, (query,), fuse="never")
    without_parquet()
    with fuseline.connect("cpu", column_store=store, fuse="never", **LIMITS) as connection:
        connection.read_parquet(str(source), "t")
        given = []
        for _ in range(2):
            frame = connection.sql(query)
            assert frame.fetchall() == expected[0]
            given.append([each.column for each in frame.profile.lifted or ()])
        assert [sorted(columns) for columns in given] == [["l", "n", "u"], []]
        assert connection.cache.used("cpu") == 0


def test_some_row_groups_of_a_chunk_are_left_out(
    source: Path, store: Path, without_parquet: Any
) -> None:
    query = (f"select count(u), sum(n), max(u) from t where n < {ROWS // 5} or n >= {4 * ROWS // 5}",)  # fmt: skip
    expected, _, _ = run(source, store, (ALL, *query))
    without_parquet()
    for fused in ("never", "always"):
        found, _, _ = run(source, store, query, fuse=fused, **LIMITS | {"column_cache_limit": 1000})
        assert found == expected[1:]


def test_rows_that_are_pulled_are_those_of_the_store(
    source: Path, store: Path, without_parquet: Any
) -> None:
    queries = (
        "select u, n from t order by u desc, n offset 29990",
        "select a.k, b.u from t a join t b on a.n = b.n + 7 where b.m = 1.25 order by 2 limit 3",
    )
    expected, _, _ = run(source, store, (ALL, *queries), fuse="never")
    without_parquet()
    found, lifted, _ = run(source, store, queries, fuse="never", **LIMITS)
    assert (found, tiers(lifted)) == (expected[1:], {"store"})


def test_a_limit_maps_no_whole_column(
    source: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(source, store, (ALL,))
    monkeypatch.setattr(schedule, "FEW_ROWS", 10)
    _, lifted, _ = run(source, store, ("select u, n from t limit 3",), fuse="never")
    assert lifted == set()
