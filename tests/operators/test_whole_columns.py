"""Columns that a device has no room for are kept whole on the host, and lifted from there, as a whole or some rows of them; the device is a stand-in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.operators.column_tiers import keep_in_memory, lift, mapped_column
from fuseline.operators.context import Context
from fuseline.operators.cpu.scan.scan import read_columns
from fuseline.operators.cpu.table import to_physical
from fuseline.operators.streaming import chunks_of
from fuseline.operators.whole_columns import HostMemory, missing_columns, store_whole
from fuseline.plan.expr import TRUE, new_column
from fuseline.plan.physical import FilterRows, ParquetScan, RowGroups
from fuseline.plan.pipeline_steps import steps_of
from fuseline.storage.column_store.column_store import ColumnStore, StoredPlace
from fuseline.storage.columns import encodings
from fuseline.storage.columns.cache import ChunkCache, ColumnCache, encoded_key
from fuseline.storage.columns.encode import encode
from fuseline.storage.columns.encodings import EncodedColumn, codes_of, zeros
from fuseline.storage.tables.cached_columns import cached_columns
from fuseline.storage.tables.parquet import ParquetTable

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 1000
GROUPS = 10
DATA = {
    "n": pa.array(range(ROWS)), "s": pa.array([f"{i % 7}" if i % 5 else None for i in range(ROWS)]),
    "u": pa.array([f"text number {i}" if i % 11 else None for i in range(ROWS)]),
    "v": pa.array([f"text number {i}" if i % 11 else "" for i in range(ROWS)]), "f": pa.array(np.arange(ROWS) / 3), "l": pa.array([[i] for i in range(ROWS)]),
}  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> ParquetTable:
    pq.write_table(pa.table(DATA), tmp_path / "t.parquet", row_group_size=ROWS // GROUPS)
    table = ParquetTable.open([str(tmp_path / "t.parquet")])
    object.__setattr__(table, "settled", True)
    return table


def scan(table: ParquetTable, names: str = "nsuvf", groups: range | None = None) -> ParquetScan:
    made = tuple(new_column(name, table.types[name]) for name in names)
    selection = None if groups is None else (RowGroups(0, tuple(groups)),)
    return ParquetScan(table, made, tuple(names), selection, device="gpu")


def context(device: int = 10**6, host: int = 10**6, **settings: Any) -> Context:
    cache = ColumnCache({"gpu": device, "cpu": host}, to_host=lambda *_: None)
    return Context(cache, lambda: None, 2, **settings)


def encoded(part: ParquetScan, context: Context) -> dict[str, Any]:
    """Columns as a device would give them: encoded, or text, or neither."""
    found = {}
    for source, array in read_columns(part, context).items():
        data_type = part.table.types[source]
        column = encode(to_physical(array, data_type), data_type)
        found[source] = array if source == "v" or (column is None and source == "u") else column
    return found


def stored(table: ParquetTable, context: Context, names: str = "nsuvfl") -> None:
    whole = scan(table, names)
    keeper = HostMemory(context.cache, lambda size: zeros(size, np.uint8))
    missing = missing_columns(whole, context)
    if missing:
        assert store_whole(whole, missing, keeper, encoded, context)


def on_device(column: Any, place: Any) -> tuple[object, int]:
    return column.value, column.value.nbytes


def values(held: Any) -> list[Any]:
    if isinstance(held, EncodedColumn):
        held = held.encoding.decode(
            codes_of(held), pa.float64() if held.encoding.is_float else pa.int64()
        )
    return held.to_pylist()


def cached(context: Context, scan: ParquetScan, names: str) -> dict[str, Any]:
    cache, table = context.cache, scan.table
    rows = scan.selection
    keys = {n: encoded_key(table.identity, rows, n, "gpu") for n in names}
    plain = {n: key._replace(rows=rows) for n, key in keys.items()}
    return {n: cache.peek(plain[n]) or cache.peek(keys[n]) for n in names}


def test_columns_are_kept_whole_a_run_of_row_groups_at_a_time(table: ParquetTable) -> None:
    own = context(device=4000)  # in which a row group has room, and no more
    stored(table, own)
    inner = replace(own, cache=ChunkCache(own.cache))
    lift(scan(table), "nsuvfl", "gpu", inner, on_device)
    assert cached(inner, scan(table), "l") == {"l": None}  # it has no encoding
    found = cached(inner, scan(table), "nsuvf")
    assert {name: values(held) for name, held in found.items()} == {
        n: DATA[n].to_pylist() for n in "nsuvf"
    }
    assert {(e.column, e.tier) for e in inner.lifted if e.tier != "Parquet"} == {
        (n, "host") for n in "nsuvf"
    }
    assert [source for _, source in missing_columns(scan(table, "nsuvfl"), own)] == ["l"]
    shown = cached_columns(own.cache, {table.identity: "t"}).to_pylist()
    assert [(row["column_name"], row["device"], row["rows"], row["tier"]) for row in shown] == [
        (name, "cpu", ROWS, "memory") for name in sorted("nsuvf")
    ]


def test_threads_write_parts_of_a_column(table: ParquetTable, monkeypatch: Any) -> None:
    monkeypatch.setattr(encodings, "BLOCK", 8)
    for room in (10**6, 8000):  # all rows are a part, or few
        own = context(device=room)
        stored(table, own, "nsf")
        inner = replace(own, cache=ChunkCache(own.cache))
        lift(scan(table), "nsf", "gpu", inner, on_device)
        for name, held in cached(inner, scan(table), "nsf").items():
            assert values(held) == DATA[name].to_pylist()


@pytest.mark.parametrize("groups", [range(3, 6), range(9, 10), range(0)])
def test_a_chunk_has_its_rows_alone(table: ParquetTable, groups: range) -> None:
    own = context()
    stored(table, own)
    part = scan(table, "nsuvf", groups)
    inner = replace(own, cache=ChunkCache(own.cache))
    lift(part, part.sources, "gpu", inner, on_device)
    rows = slice(groups.start * ROWS // GROUPS, groups.stop * ROWS // GROUPS)
    for name, held in cached(inner, part, "nsuvf").items():
        assert values(held) == DATA[name].to_pylist()[rows]


def test_a_device_with_room_gets_all_rows_and_one_without_those_that_are_wanted(
    table: ParquetTable,
) -> None:
    part = scan(table, "nf", range(2))
    for room, whole in ((10**6, True), (5000, False)):
        own = context(device=room)
        stored(table, own, "nf")
        lift(part, part.sources, "gpu", own, on_device)
        there = cached(own, replace(part, selection=None) if whole else part, "nf")
        assert [len(values(held)) for held in there.values()] == [ROWS if whole else 200] * 2
        assert sum(each.bytes for each in own.lifted if each.tier == "host") == (
            10_000 if whole else 2000
        )


def test_what_is_lifted_pushes_out_no_column_of_the_same_scan(table: ParquetTable) -> None:
    """It would be read from its file, although the host has it."""
    own = context(device=10_500)  # n takes 2,000 bytes, s 1,125, f 8,000
    stored(table, own, "nsf")
    for names in ("n", "s", "nf"):
        lift(scan(table, names), names, "gpu", own, on_device)
    found = cached(own, scan(table), "nsf")
    assert [name for name, held in found.items() if held is None] == ["s"]


def test_chunks_have_as_many_rows_as_there_is_room_for_codes(table: ParquetTable) -> None:
    steps = steps_of(FilterRows(scan(table, "nf"), TRUE))
    own = context(device=9000)  # 16,000 bytes as they are read, 10,000 as codes
    assert len(chunks_of(steps, own) or ()) == 10
    stored(table, own, "nf")
    assert len(chunks_of(steps, own) or ()) == 5
    assert len(chunks_of(steps, replace(own, fuse="never")) or ()) == 10


def test_codes_that_fit_are_no_chunks_though_a_column_as_it_is_does_not(
    table: ParquetTable,
) -> None:
    steps = steps_of(FilterRows(scan(table, "n"), TRUE))
    own = context(device=4000)  # 8,000 bytes as they are read, 2,000 as codes
    assert len(chunks_of(steps, own) or ()) == 10
    stored(table, own, "n")
    assert chunks_of(steps, own) is None


def test_few_rows_of_a_table_are_not_worth_all(table: ParquetTable) -> None:
    assert missing_columns(scan(table, "n", range(4)), context()) == []
    assert len(missing_columns(scan(table, "n", range(5)), context())) == 1


def test_what_has_no_room_on_the_host_is_tried_once(table: ParquetTable) -> None:
    own = context(host=5000)
    stored(table, own, "nf")
    assert own.cache.used("cpu") == 2000
    read = []
    keeper = HostMemory(own.cache, lambda size: zeros(size, np.uint8))
    missing = missing_columns(scan(table, "nf"), own)
    assert [source for _, source in missing] == ["f"]
    assert store_whole(scan(table, "nf"), missing, keeper, lambda *part: read.append(part), own)
    assert read == []


def test_a_full_host_leaves_what_was_read_longest_ago(table: ParquetTable) -> None:
    own = context(host=9000)
    stored(table, own, "n")
    stored(table, own, "f")
    assert [c.column for c in own.cache.stats() if c.device == "cpu"] == ["f"]


def test_the_column_store_gets_what_the_host_keeps(table: ParquetTable, tmp_path: Path) -> None:
    own, later = context(), context()
    own.cache.store = ColumnStore(tmp_path / "columns")
    stored(table, own)
    later.cache.store = ColumnStore(tmp_path / "columns")
    whole = scan(table, "nsuvfl")
    lift(whole, whole.sources, "cpu", later)
    assert [source for _, source in missing_columns(whole, later)] == ["l"]
    inner = replace(later, cache=ChunkCache(later.cache))
    part = scan(table, groups=range(3, 6))
    lift(part, part.sources, "gpu", inner, on_device)
    for name, held in cached(inner, part, "nsuvf").items():
        assert values(held) == DATA[name].to_pylist()[300:600]
    lifted = {(e.column, e.tier) for e in later.lifted if e.tier != "Parquet"}
    assert lifted == {(name, "store") for name in "nsuvf"}
    place = StoredPlace(table, None, "n")
    held = mapped_column(later.cache, place)
    assert held is not None
    keep_in_memory(later.cache, place, held)
    assert mapped_column(later.cache, place) is None
