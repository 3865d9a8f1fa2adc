"""Partition columns against DuckDB: names, types and values."""

from datetime import date

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.errors import FileError
from fuseline.storage.tables.parquet import ParquetTable


def write(folder, *paths):
    for i, path in enumerate(paths):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"a": [i]}), folder / path)


def duckdb_types(pattern):
    relation = duckdb.connect().sql(f"from read_parquet('{pattern}')")
    return [(n, str(t)) for n, t in zip(relation.columns, relation.types, strict=True)]


def types(table):
    return [(name, str(t)) for name, t in table.fields]


@pytest.mark.parametrize("values", [
    ["1", "2"], ["007", "8"], ["-5", "0"], ["1.5", "2"], ["2024-01-01", "2024-1-2"], ["2024-01-01", "1"],
    ["2024-13-01"], ["2024-01-01 10:00:00"], ["x", "__HIVE_DEFAULT_PARTITION__"], ["1", "__HIVE_DEFAULT_PARTITION__"],
    ["__HIVE_DEFAULT_PARTITION__"], ["NULL", "1"], ["null", "x"], ["a%20b", "c+d"], ["9223372036854775807"],
    ["9223372036854775808"], ["true", "false"],
])  # fmt: skip
def test_values_get_the_type_and_the_value_that_duckdb_gives_them(tmp_path, values):
    write(tmp_path, *(f"k={v}/x.parquet" for v in values))
    pattern = f"{tmp_path}/*/*.parquet"
    table = ParquetTable.open([pattern])
    assert types(table) == duckdb_types(pattern)
    expected = duckdb.connect().sql(f"select k from read_parquet('{pattern}')").fetchall()
    assert sorted(table.constants["k"].values, key=str) == sorted((v for (v,) in expected), key=str)


@pytest.mark.parametrize("paths", [
    ["k=1/j=2/x.parquet", "k=3/j=4/x.parquet"], ["k=1/x.parquet", "j=2/x.parquet"], ["k=1/x.parquet", "x.parquet"],
    ["K=1/k=2/x.parquet"], ["a=b=c/x.parquet"], ["A=text/x.parquet"],
])  # fmt: skip
def test_keys_are_found_where_duckdb_finds_them(tmp_path, paths):
    write(tmp_path, *paths)
    assert types(ParquetTable.open([str(tmp_path)])) == duckdb_types(tmp_path)


def test_options_switch_them_off_and_leave_texts(tmp_path):
    write(tmp_path, "k=1/x.parquet")
    assert types(ParquetTable.open([str(tmp_path)], {"hive_partitioning": False})) == [
        ("a", "BIGINT")
    ]
    as_text = ParquetTable.open([str(tmp_path)], {"hive_types_autocast": False})
    assert as_text.types["k"].kind.name == "VARCHAR"


def test_keys_that_differ_are_an_error_when_they_are_asked_for(tmp_path):
    write(tmp_path, "j=1/x.parquet", "k=2/x.parquet")
    with pytest.raises(FileError, match="k=2"):
        ParquetTable.open([str(tmp_path)], {"hive_partitioning": True})


def test_bounds_of_a_partition_column_are_its_values(tmp_path):
    write(tmp_path, "d=2024-01-01/x.parquet", "d=2024-03-01/x.parquet")
    found = ParquetTable.open([str(tmp_path)]).statistics().columns["d"]
    assert (found.low, found.high, found.nulls) == (date(2024, 1, 1), date(2024, 3, 1), 0)
