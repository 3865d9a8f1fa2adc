"""Files of different columns as one table, by name, and the numbers of rows in their files: as DuckDB reads them."""

from __future__ import annotations

import datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import FileError, InvalidQuery, UnknownName, Unsupported
from tests.compare import Ordering, difference

FIRST = {"a": pa.array([1, None, 3], pa.int32()), "T": ["x", None, "y"], "m": pa.array([Decimal("1.25")] * 3, pa.decimal128(9, 2))}  # fmt: skip
SECOND = {"t": ["z", "z"], "b": [1.5, None], "a": pa.array([1 << 40, -1], pa.int64()), "m": pa.array([Decimal("7.1255")] * 2, pa.decimal128(18, 4))}  # fmt: skip
THIRD = {"a": pa.array([0.5], pa.float64()), "d": [datetime.date(2024, 2, 29)], "l": [[1, 2]], "g": pa.array([True])}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("files")
    for name, columns in (("1", FIRST), ("2", SECOND), ("3", THIRD)):
        pq.write_table(pa.table(columns), root / f"{name}.parquet", row_group_size=2)
    pq.write_table(pa.table({"a": ["text"]}), root / "other.parquet")
    pq.write_table(pa.table({"n": range(10_000)}), root / "long.parquet", row_group_size=999)
    for year in ("2023", "2024"):
        (root / f"hive/year={year}").mkdir(parents=True)
        pq.write_table(pa.table({"v": [1]}), root / f"hive/year={year}/d.parquet")
    return root


@pytest.mark.parametrize(
    "query",
    [
        "from read_parquet({files}, union_by_name = true)",
        "select a, b from read_parquet({files}, union_by_name = true) where b is null",
        "select sum(a), count(b), max(T), count(*) from read_parquet({files}, union_by_name = true)",
        "select t, sum(a), min(m) from read_parquet({files}, union_by_name = true) group by t",
        "select * from read_parquet({files}, union_by_name = true) where a > 1000",
        "select b, d, l, g from read_parquet({files}, union_by_name = true) where d is not null",
        "select * from read_parquet({files}, union_by_name = true, filename = true, file_row_number = true) where file_row_number = 1",
        "select filename, m from read_parquet({files}, union_by_name = true, filename = true) where m is null",
        "describe from read_parquet({files}, union_by_name = true)",
        "select count(*), sum(file_row_number), max(file_row_number) from read_parquet('{root}/long.parquet', file_row_number = true)",
        "select n from read_parquet('{root}/long.parquet', file_row_number = true) where file_row_number between 998 and 1000 or file_row_number = 9999",
        "select * from read_parquet('{root}/long.parquet', file_row_number = true) limit 3",
        "select * from read_parquet('{root}/hive/*/*.parquet', hive_types = {{'year': 'VARCHAR'}}) order by year",
        "select * from read_parquet('{root}/hive/*/*.parquet', hive_types = {{'year': 'INTEGER'}}) where year > 2023",
        "describe from read_parquet('{root}/hive/*/*.parquet', hive_types = {{'year': 'INTEGER'}})",
    ],
)  # fmt: skip
@pytest.mark.parametrize("fuse", ["never", "always"])
def test_rows_are_those_of_duckdb(query, fuse, folder) -> None:
    files = [str(folder / f"{i}.parquet") for i in (1, 2, 3)]
    text = query.format(files=files, root=folder)
    expected = duckdb.sql(text).to_arrow_table()
    with fuseline.connect("cpu", fuse=fuse, threads=2) as connection:
        for _ in range(2):  # from the files, and from the column cache
            assert difference(expected, connection.sql(text).to_arrow(), Ordering(False)) is None


def test_memory_is_kept_to_with_columns_that_are_made(folder) -> None:
    text = f"select sum(file_row_number + n) from read_parquet('{folder}/long.parquet', file_row_number = true)"
    with fuseline.connect("cpu", memory_limit="100kB", column_cache_limit="1kB") as connection:
        assert connection.sql(text).fetchall() == [(99_990_000,)]


def test_one_file_read_both_ways_is_two_tables(folder) -> None:
    both = [str(folder / f"{i}.parquet") for i in (1, 3)]
    with fuseline.connect("cpu") as connection:
        connection.read_parquet(both, union_by_name=True, name="whole")
        connection.read_parquet(both[0], name="one")
        for _ in range(2):
            for table, kind, total in (("whole", "DOUBLE", 4.5), ("one", "INTEGER", 4)):
                found = connection.sql(f"select max(typeof(a)), sum(a) from {table}").fetchall()
                assert found == [(kind, total)]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ("", FileError, "or union_by_name = true"),
        (", union_by_name = 3", InvalidQuery, "true or false"),
        (", hive_types = 3", InvalidQuery, "struct of types"),
        (
            ", union_by_name = true, hive_types = {'month': 'INTEGER'}",
            InvalidQuery,
            "no folder does",
        ),
        (", schema = 3", Unsupported, "schema"),
        (", union_by_nam = true", UnknownName, "union_by_name"),
    ],
)
def test_what_does_not_fit_is_said(options, error, message, folder) -> None:
    files = [str(folder / f"{i}.parquet") for i in (1, 2)]
    with fuseline.connect("cpu") as connection, pytest.raises(error, match=message):
        connection.sql(f"from read_parquet({files}{options})")


def test_types_without_a_common_one_become_text(folder) -> None:
    files = [str(folder / "3.parquet"), str(folder / "other.parquet")]
    with fuseline.connect("cpu") as connection:
        found = duckdb.sql(f"from read_parquet({files}, union_by_name = true)").to_arrow_table()
        own = connection.sql(f"from read_parquet({files}, union_by_name = true)").to_arrow()
        assert difference(found, own, Ordering(False)) is None


def test_folders_of_another_type_are_named(folder) -> None:
    text = f"from read_parquet('{folder}/hive/*/*.parquet', hive_types = {{'year': 'DATE'}})"
    with fuseline.connect("cpu") as connection, pytest.raises(FileError, match="is no DATE"):
        connection.sql(text)
