"""A column that is encoded a part at a time is that of all rows, in any number of parts and whatever is in each."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fuseline
from fuseline.operators.cpu.table import physical_type, to_physical
from fuseline.plan.arrow.arrow_types import from_arrow
from fuseline.storage.column_store import column_parts
from fuseline.storage.column_store.column_parts import ColumnParts
from fuseline.storage.columns.encode import encode, with_order
from fuseline.storage.columns.encodings import EncodedColumn, codes_of

from .runs import files, run, tiers
from .test_column_file import ARRAYS
from .test_stored_chunks import ALL, LARGE, LIMITS

if TYPE_CHECKING:
    from pathlib import Path

RANDOM = np.random.default_rng(3)
BIG = 2**62
MORE = {
    "far apart": pa.array([0, 100, 50, BIG, BIG + 50, None, -BIG, -BIG, 7 * 50]),
    "one value a part": pa.array([7, 7, 7, 1007, 1007, 1007, None, 507]),
    "NULLs first": pa.array([None] * 40 + [5, 10, 25]),
    "negative steps": pa.array(RANDOM.permutation(np.arange(-900_000, 900_000, 300))),
    "times": pa.array([10**6 * int(n) for n in RANDOM.integers(0, 10**6, 500)], pa.timestamp("us")),
    "texts of others": pa.array([f"{n // 50} {n % 7}" for n in range(400)]),
    "NULL texts first": pa.array([None] * 30 + ["b", "a", None, "c"] * 5),
    "many doubles": pa.array(RANDOM.random(5000), mask=RANDOM.random(5000) < 0.1),
    "NULLs": pa.array([None, None, None], pa.int32()),
}


def parts_of(array: pa.Array, seed: int) -> list[pa.Array]:
    ends = np.sort(np.random.default_rng(seed).integers(0, len(array) + 1, seed)).tolist()
    bounds = list(zip([0, *ends], [*ends, len(array)], strict=True))
    return [array.slice(a, b - a) for a, b in bounds if b > a] or [array]


def joined(arrays: list[pa.Array], folder: Path) -> Any:
    data_type = from_arrow(arrays[0].type)
    with ColumnParts(folder, data_type) as parts:
        for array in arrays:
            assert parts.add(to_physical(array, data_type), 1)
        return parts.whole(1)


@pytest.mark.parametrize("name", [*ARRAYS, *MORE])
def test_parts_make_the_whole(tmp_path: Path, name: str) -> None:
    array = (ARRAYS | MORE)[name]
    data_type = from_arrow(array.type)
    alone = encode(to_physical(array, data_type), data_type)
    assert alone is not None
    alone = with_order(alone)
    arrow = physical_type(data_type)
    for seed in range(5):
        column = joined(parts_of(array, seed), tmp_path).value
        assert isinstance(column, EncodedColumn)
        found = column.encoding.decode(codes_of(column), arrow)
        expected = alone.encoding.decode(codes_of(alone), arrow)
        assert repr(found.to_pylist()) == repr(expected.to_pylist())
        names = ("rows", "nulls", "low", "high", "ascending", "clustered")
        assert [getattr(column, n) for n in names] == [getattr(alone, n) for n in names]
        assert column.encoding.width == alone.encoding.width
        if column.validity is not None:
            valid = pc.is_valid(array).to_pylist()
            assert not np.asarray(column.codes)[~np.array(valid)].any()
            assert np.unpackbits(column.validity, bitorder="little")[: len(array)].tolist() == valid
    assert list(tmp_path.iterdir()) == []


def test_text_that_has_no_codes_in_one_part_is_text(tmp_path: Path) -> None:
    few = pa.array(["a", None, "", "b"] * 3000)
    many = pa.array([f"text {n}" if n % 5 else None for n in range(9000)])
    for arrays in ([few, many], [many, few], [few, many.slice(3), few.slice(1, 2)], [many]):
        column = joined(arrays, tmp_path)
        assert column.refused
        assert column.value.to_pylist() == pa.chunked_array(arrays).to_pylist()
        column.value.validate(full=True)


def test_more_text_than_offsets_reach_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_parts, "MOST_TEXT", 50_000)
    many = pa.array([f"text number {n}" for n in range(9000)])
    with ColumnParts(tmp_path, from_arrow(many.type)) as parts:
        assert not parts.add(many, 1)


def test_what_has_no_codes_and_is_no_text_is_left(tmp_path: Path) -> None:
    lists = pa.array([[1], None])
    with ColumnParts(tmp_path, from_arrow(lists.type)) as parts:
        assert not parts.add(lists, 1)


@pytest.mark.parametrize("fused", ["never", "always"])
def test_a_limited_run_stores_whole_columns_once(
    source: Path, store: Path, fused: str, without_parquet: Any
) -> None:
    queries = (LARGE[0], LARGE[2], "select max(u), sum(n) from t", "select count(u), max(m) from t")
    limits = LIMITS | {"column_cache_limit": 100_000, "fuse": fused}
    expected, _, _ = run(source, None, queries)
    found, lifted, _ = run(source, store, queries, **limits)
    assert (found, tiers(lifted)) == (expected, {"store", "Parquet"})
    assert sorted(path.name.split("_")[1] for path in files(store)) == sorted("nkmtfbu")
    without_parquet()
    found, lifted, _ = run(source, store, queries, **limits)
    assert (found, tiers(lifted)) == (expected, {"store"})
    assert len(files(store)) == 7


def test_a_kernel_needs_no_chunks_once_columns_are_stored(source: Path, store: Path) -> None:
    limits = LIMITS | {"column_cache_limit": 100_000, "fuse": "always"}
    for kept in (None, store):
        with fuseline.connect("cpu", column_store=kept, **limits) as connection:
            connection.read_parquet(str(source), "t")
            told = connection.sql(LARGE[2]).explain("analyze")
            assert ("chunks" in told) == (kept is None)


def test_a_full_disk_leaves_chunks(
    source: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    expected, _, _ = run(source, None, (ALL, *LARGE))
    for place in (column_parts._File, column_parts._TextParts):
        with monkeypatch.context() as patched:
            patched.setattr(place, "write" if place is column_parts._File else "add", write)
            found, lifted, _ = run(source, store / place.__name__, (ALL, *LARGE), **LIMITS)
        assert (found, "Parquet" in tiers(lifted)) == (expected, True)


def test_what_cannot_be_stored_whole_is_tried_once(
    source: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[ColumnParts] = []
    begin = ColumnParts.__enter__

    def enter(parts: ColumnParts) -> ColumnParts:
        begun.append(parts)
        return begin(parts)

    monkeypatch.setattr(ColumnParts, "__enter__", enter)
    limits = {"column_cache_limit": 1000, "fuse": "never"}
    for query, settings in (
        ("select count(l) from t", {}),
        ("select sum(n), sum(n + 1) from t", {"column_store_limit": 1000}),
    ):
        begun.clear()
        with fuseline.connect("cpu", column_store=store, **limits, **settings) as connection:
            connection.read_parquet(str(source), "t")
            for _ in range(3):
                connection.sql(query).fetchall()
        assert len(begun) == 1


def test_a_small_limit_of_the_store_leaves_chunks(source: Path, store: Path) -> None:
    limits = LIMITS | {"column_cache_limit": 100_000, "column_store_limit": 1000}
    expected, _, _ = run(source, None, (ALL, *LARGE))
    assert run(source, store, (ALL, *LARGE), **limits)[0] == expected
    assert files(store) == []
