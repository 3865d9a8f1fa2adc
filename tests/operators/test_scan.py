"""Scans read what was written, through the cache and past it."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from fuseline.errors import FileError
from fuseline.operators.context import Context
from fuseline.operators.cpu.scan.scan import memory_scan, parquet_scan
from fuseline.operators.cpu.table import to_logical
from fuseline.plan.expr import new_column
from fuseline.plan.physical import MemoryScan, ParquetScan, RowGroups
from fuseline.storage.columns.cache import ColumnCache
from fuseline.storage.tables.memory_table import MemoryTable
from fuseline.storage.tables.parquet import ParquetTable

ROWS = 1000
DATA = pa.table(
    {
        "i": pa.array([None if n % 7 == 0 else n for n in range(ROWS)], pa.int32()),
        "d": pa.array([Decimal(n) / 4 for n in range(ROWS)], pa.decimal128(15, 2)),
        "w": pa.array([Decimal(n) ** 5 for n in range(ROWS)], pa.decimal128(30, 0)),
        "t": [date.fromordinal(700_000 + n) for n in range(ROWS)],
        "f": [n / 3 if n % 11 else None for n in range(ROWS)],
        "b": [n % 3 == 0 for n in range(ROWS)],
        "few": [None if n % 13 == 0 else f"value {n % 5}" for n in range(ROWS)],
        "many": [f"text {n}" for n in range(ROWS)],
    }
)


@pytest.fixture
def context():
    return Context(ColumnCache(1 << 30), lambda: None, 2)


@pytest.fixture
def path(tmp_path):
    pq.write_table(DATA, tmp_path / "x.parquet", row_group_size=100)
    return str(tmp_path / "x.parquet")


def scan(table, context, names=None, selection=None):
    names = tuple(names if names is not None else (n for n, _ in table.fields))
    made = tuple(new_column(n, table.types[n]) for n in names)
    found = parquet_scan(ParquetScan(table, made, names, selection), (), context)
    arrays = [to_logical(found[c], c.type) for c in made]
    return found.num_rows, pa.table(arrays, names=list(names))


def test_every_type_is_read_back(path, context):
    rows, found = scan(ParquetTable.open([path]), context)
    assert rows == ROWS
    assert found.equals(DATA)


def test_a_second_scan_takes_the_same_arrays_from_the_cache(path, context):
    table = ParquetTable.open([path])
    made = (new_column("few", table.types["few"]),)
    first, second = (
        parquet_scan(ParquetScan(table, made, ("few",)), (), context)[made[0]] for _ in range(2)
    )
    assert first is second


def test_texts_with_few_values_stay_in_one_dictionary(path, context):
    table = ParquetTable.open([path])
    made = (new_column("few", table.types["few"]),)
    array = parquet_scan(ParquetScan(table, made, ("few",)), (), context)[made[0]]
    assert array.type == pa.dictionary(pa.int32(), pa.string())
    assert pc.count_distinct(array.dictionary).as_py() == len(array.dictionary) == 5


@pytest.mark.parametrize("groups", [(), (3,), (0, 1, 2), (0, 2, 9), tuple(range(10))])
@pytest.mark.parametrize("whole_first", [False, True])
def test_a_selection_of_row_groups_is_the_same_read_or_cut_out(path, context, groups, whole_first):
    table = ParquetTable.open([path])
    if whole_first:
        scan(table, context)
    selection = (RowGroups(0, groups),) if groups else ()
    rows, found = scan(table, context, selection=selection)
    rows_of = [100 * g + n for g in groups for n in range(100)]
    expected = DATA.take(pa.array(rows_of, pa.int64()))
    assert rows == len(groups) * 100
    assert found.equals(expected)


def test_several_files_are_one_table_in_their_order(tmp_path, context):
    for i in range(5):
        part = DATA.slice(i * 200, 200)
        pq.write_table(
            part if i % 2 else part.select(DATA.column_names[::-1]), tmp_path / f"{i}.parquet"
        )
    table = ParquetTable.open([str(tmp_path)])
    assert scan(table, context, DATA.column_names)[1].equals(DATA)
    selection = (RowGroups(1, (0,)), RowGroups(4, (0,)))
    expected = pa.concat_tables([DATA.slice(200, 200), DATA.slice(800, 200)])
    assert scan(table, context, DATA.column_names, selection)[1].equals(expected.combine_chunks())


def test_partition_columns_have_one_value_a_file(tmp_path, context):
    for folder, n in [("k=1/s=a", 2), ("k=__HIVE_DEFAULT_PARTITION__/s=b", 1), ("k=3/s=a", 3)]:
        (tmp_path / folder).mkdir(parents=True)
        pq.write_table(pa.table({"a": list(range(n))}), tmp_path / folder / "x.parquet")
    _, found = scan(ParquetTable.open([str(tmp_path)]), context)
    rows = sorted(zip(*found.to_pydict().values(), strict=True), key=str)
    assert rows == [(0, 1, "a"), (0, 3, "a"), (0, None, "b"), (1, 1, "a"), (1, 3, "a"), (2, 3, "a")]


def test_no_columns_and_no_rows(path, tmp_path, context):
    assert scan(ParquetTable.open([path]), context, ())[0] == ROWS
    pq.write_table(DATA.slice(0, 0), tmp_path / "none.parquet")
    rows, found = scan(ParquetTable.open([str(tmp_path / "none.parquet")]), context)
    assert rows == 0
    assert found.equals(DATA.slice(0, 0))


def test_a_column_asked_for_twice_is_read_once(path, context):
    _, found = scan(ParquetTable.open([path]), context, ("i", "i"))
    assert found.column(0).equals(found.column(1))
    assert len(context.cache.stats()) == 1


def test_damaged_pages_name_the_file(path, context):
    with Path(path).open("r+b") as file:
        file.seek(200)
        file.write(b"\xff" * 5000)
    table = ParquetTable.open([path])
    with pytest.raises(FileError, match=r"x\.parquet.*damaged"):
        scan(table, context)
    assert context.cache.stats() == []


def test_a_stop_ends_a_scan(path):
    def check():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan(ParquetTable.open([path]), Context(ColumnCache(0), check, 2))


def test_a_table_in_memory_keeps_its_physical_form(context):
    table = MemoryTable("t", pa.concat_tables([DATA.slice(0, 300), DATA.slice(300)]))
    made = tuple(new_column(n, t) for n, t in table.fields)
    node = MemoryScan(table, made, tuple(DATA.column_names))
    first, second = memory_scan(node, (), context), memory_scan(node, (), context)
    arrays = [to_logical(first[c], c.type) for c in made]
    assert pa.table(arrays, names=DATA.column_names).equals(DATA.combine_chunks())
    assert all(first[c] is second[c] for c in made)
