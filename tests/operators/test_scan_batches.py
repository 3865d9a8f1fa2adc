"""A row group decoded a number of rows at a time is the row group, whatever it holds and wherever its columns lie."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.errors import FileError
from fuseline.operators.context import Context
from fuseline.operators.cpu.scan.encoded import encode_columns
from fuseline.operators.cpu.scan.scan import memory_scan, parquet_scan
from fuseline.operators.cpu.scan.scan_batches import batches, parquet_batches
from fuseline.operators.cpu.table import Table, concat_arrays, to_logical
from fuseline.plan.expr import new_column
from fuseline.plan.physical import MemoryScan, ParquetScan, RowGroups
from fuseline.storage.columns.cache import ColumnCache
from fuseline.storage.tables.memory_table import MemoryTable
from fuseline.storage.tables.parquet import ParquetTable

ROWS = 50_000
COUNTS = [1, 2, 20_000, 16_384, 13_613]


def concat(parts: list[Table]) -> Table:
    """The rows of tables that hold the same columns, one after the other."""
    arrays = {i: concat_arrays([part.arrays[i] for part in parts]) for i in parts[0].arrays}
    return Table(arrays, sum(part.num_rows for part in parts))


def column(pick, kind):
    return pa.array([pick(n) for n in range(2 * ROWS)], kind)


DATA = pa.table(
    {
        "i": column(lambda n: None if n % 7 == 0 else n - ROWS, pa.int32()),
        "l": column(lambda n: (-(2**63), 2**63 - 1, None, 0)[n % 4], pa.int64()),
        "w": column(lambda n: Decimal(n) ** 5, pa.decimal128(30, 0)),
        "d": column(lambda n: Decimal(n) / 4, pa.decimal128(15, 2)),
        "t": column(lambda n: date.fromordinal(700_000 + n % 999), pa.date32()),
        "f": column(lambda n: (None, float("nan"), -0.0, 1e308, n / 3)[n % 5], pa.float64()),
        "b": column(lambda n: n % 3 == 0, pa.bool_()),
        "few": column(lambda n: None if n % 13 == 0 else f"value {n % 5}", pa.string()),
        "many": column(lambda n: f"text {n}" * (n % 3), pa.string()),
        "none": column(lambda n: None, pa.string()),
        "alike": column(lambda n: 7, pa.int16()),
    }
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batches") / "part=abc"
    folder.mkdir()
    pq.write_table(DATA, folder / "x.parquet", row_group_size=ROWS)
    return ParquetTable.open([str(folder / "x.parquet")])


def scan(table, names=None):
    names = tuple(name for name, _ in table.fields if names is None or name in names)
    made = tuple(new_column(name, table.types[name]) for name in names)
    return ParquetScan(table, made, names, (RowGroups(0, (1,)),))


def values(found, node):
    return pa.table(
        [to_logical(found[c], c.type).cast(pa.string()) for c in node.made], node.sources
    )


@pytest.mark.parametrize("cached", ["nothing", "columns", "codes", "some"])
def test_batches_are_the_row_group(table, cached):
    context = Context(ColumnCache(1 << 30), lambda: None, 2)
    some = ParquetScan(table, scan(table).made, scan(table).sources)
    if cached == "columns":
        parquet_scan(some, (), context)
    elif cached == "codes":
        encode_columns(some, context)
    elif cached == "some":
        encode_columns(scan(table, {"i", "few"}), context)
        parquet_scan(scan(table, {"many", "f"}), (), context)
    node = scan(table)
    parts = list(parquet_batches(node, COUNTS, context))
    assert [part.num_rows for part in parts] == COUNTS
    expected = parquet_scan(node, (), Context(ColumnCache(0), lambda: None, 2))
    assert values(concat(parts), node).equals(values(expected, node))


def test_a_footer_that_counts_too_many_rows_is_an_error(table):
    context = Context(ColumnCache(0), lambda: None, 2)
    with pytest.raises(FileError, match="rows"):
        list(parquet_batches(scan(table), [ROWS, 1], context))
    with pytest.raises(FileError, match="rows"):
        list(parquet_batches(scan(table), [ROWS - 1], context))


def test_a_file_that_changes_meanwhile_is_an_error(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(DATA, path, row_group_size=ROWS)
    opened = ParquetTable.open([str(path)])
    parts = parquet_batches(scan(opened), COUNTS, Context(ColumnCache(0), lambda: None, 2))
    next(parts)
    pq.write_table(DATA.slice(3), path, row_group_size=ROWS)
    with pytest.raises(FileError, match="changed"):
        list(parts)


def test_batches_of_a_table_in_memory_are_the_table():
    whole = pa.concat_tables([DATA.slice(0, 30_000), DATA.slice(30_000, 20_000)])
    table = MemoryTable("t", whole)
    names = tuple(name for name, _ in table.fields)
    node = MemoryScan(table, tuple(new_column(n, table.types[n]) for n in names), names)
    context = Context(ColumnCache(1 << 30), lambda: None, 2)
    expected = values(memory_scan(node, (), Context(ColumnCache(0), lambda: None, 2)), node)
    memory_scan(replace(node, made=node.made[:3], sources=names[:3]), (), context)
    parts = list(batches(node, COUNTS, context))
    assert [part.num_rows for part in parts] == COUNTS
    assert values(concat(parts), node).equals(expected)
    assert [part.num_rows for part in batches(node, [0], context)] == [0]
