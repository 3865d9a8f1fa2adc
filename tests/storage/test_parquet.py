from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.errors import FileError, InvalidQuery, UnknownName
from fuseline.plan.expr import Call, ColumnRef, Literal, new_column
from fuseline.plan.physical import RowGroups
from fuseline.plan.types import BOOLEAN
from fuseline.storage.tables.parquet import ParquetTable


@pytest.fixture
def write(tmp_path):
    def write(name, columns, **options):
        path = tmp_path / name
        pq.write_table(pa.table(columns), path, **options)
        return str(path)

    return write


def types(table):
    return {name: str(t) for name, t in table.fields}


def test_fields_have_the_sql_types(write):
    columns = {
        "i": pa.array([1], pa.int32()), "u": pa.array([1], pa.uint64()),
        "d": pa.array([Decimal("1.50")], pa.decimal128(15, 2)),
        "t": pa.array([date(2024, 1, 1)]), "ms": pa.array([1], pa.timestamp("ms")),
        "s": pa.array(["x"]).dictionary_encode(), "n": pa.nulls(1),
    }  # fmt: skip
    expected = {
        "i": "INTEGER", "u": "UBIGINT", "d": "DECIMAL(15,2)", "t": "DATE", "ms": "TIMESTAMP", "s": "VARCHAR",
        "n": '"NULL"',
    }  # fmt: skip
    assert types(ParquetTable.open([write("x.parquet", columns)])) == expected


def test_columns_that_no_query_can_read_are_set_aside_with_their_types(write):
    nanos = pa.array([1], pa.time64("ns"))
    table = ParquetTable.open(
        [write("x.parquet", {"a": [1], "b": nanos, "l": pa.array([[1]], pa.list_(nanos.type))})]
    )
    assert types(table) == {"a": "BIGINT"}
    assert {n: str(t) for n, t in table.unsupported.items()} == {"b": "TIME_NS", "l": "TIME_NS[]"}
    assert [name for name, _ in table.all_fields] == ["a", "b", "l"]


def test_names_that_differ_in_case_alone_get_a_number(write):
    table = ParquetTable.open([write("x.parquet", {"q": [1], "Q": [2]})])
    assert types(table) == {"q": "BIGINT", "Q_1": "BIGINT"}
    assert table.parquet_names["Q_1"] == "Q"


def test_files_may_order_their_columns_differently_and_have_more_of_them(write):
    first = write("1.parquet", {"a": [1], "b": ["x"]})
    second = write("2.parquet", {"c": [0.5], "b": ["y"], "a": [2]})
    table = ParquetTable.open([first, second])
    assert types(table) == {"a": "BIGINT", "b": "VARCHAR"}
    assert table.num_rows == 2


@pytest.mark.parametrize(
    ("other", "said"),
    [({"a": ["x"], "b": ["y"]}, '"a" is VARCHAR'), ({"a": [1]}, 'no column "b"')],
)
def test_a_file_of_another_schema_is_named_with_the_column(write, other, said):
    first, second = write("1.parquet", {"a": [1], "b": ["x"]}), write("2.parquet", other)
    with pytest.raises(FileError, match=said) as error:
        ParquetTable.open([first, second])
    assert second in str(error.value)


def test_two_columns_of_one_name_are_an_error(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), path)
    with pytest.raises(FileError, match='two columns named "a"'):
        ParquetTable.open([str(path)])


def test_the_file_name_is_a_column_when_asked_for(write):
    path = write("x.parquet", {"a": [1]})
    assert ParquetTable.open([path], {"filename": True}).constants["filename"].values == (path,)
    assert types(ParquetTable.open([path], {"filename": "fn"})) == {"a": "BIGINT", "fn": "VARCHAR"}


def test_unknown_options_and_values_are_refused(write):
    path = write("x.parquet", {"a": [1]})
    with pytest.raises(UnknownName, match='Did you mean "hive_partitioning"'):
        ParquetTable.open([path], {"hive_partition": True})
    with pytest.raises(InvalidQuery, match="true or false"):
        ParquetTable.open([path], {"hive_partitioning": "maybe"})


def test_statistics_come_from_the_row_groups(write):
    columns = {
        "i": pa.array([3, None, 7, 5]),
        "d": pa.array([Decimal("1.50"), Decimal("-2.25"), None, None], pa.decimal128(10, 2)),
        "s": ["b", "a", "z", None],
        "t": [date(2024, 1, 2), None, date(2023, 1, 1), None],
        "none": pa.nulls(4, pa.int32()),
    }
    found = ParquetTable.open([write("x.parquet", columns, row_group_size=2)]).statistics()
    assert found.rows == 4
    bounds = {n: (s.low, s.high, s.nulls) for n, s in found.columns.items()}
    assert bounds == {
        "i": (3, 7, 1),
        "d": (Decimal("-2.25"), Decimal("1.50"), 2),
        "s": ("a", "z", 1),
        "t": (date(2023, 1, 1), date(2024, 1, 2), 2),
        "none": (None, None, 4),
    }


def test_a_float_column_has_no_upper_bound_since_statistics_leave_nan_out(write):
    path = write("x.parquet", {"f": [1.0, float("nan"), 2.0]})
    found = ParquetTable.open([path]).statistics().columns["f"]
    assert (found.low, found.high) == (1.0, None)


def test_statistics_that_were_not_written_are_unknown(write):
    path = write("x.parquet", {"a": [1, 2]}, write_statistics=False)
    found = ParquetTable.open([path]).statistics()
    assert (found.rows, found.columns["a"].low, found.columns["a"].nulls) == (2, None, None)


def test_an_empty_file_of_rows_is_a_table(write):
    table = ParquetTable.open([write("x.parquet", {"a": pa.array([], pa.int32())})])
    assert (table.num_rows, table.statistics().rows) == (0, 0)


def selected(table, function, value):
    name, data_type = table.fields[0]
    column = new_column(name, data_type)
    predicate = Call(function, (ColumnRef(column), Literal(value, data_type)), BOOLEAN)
    return table.select_row_groups(predicate, {column: name})


def test_row_groups_that_cannot_match_are_pruned_in_each_file(write):
    first = write("1.parquet", {"a": list(range(10))}, row_group_size=5)
    second = write("2.parquet", {"a": list(range(10, 20))}, row_group_size=5)
    table = ParquetTable.open([first, second])
    assert selected(table, "ge", 7) == ((RowGroups(0, (1,)), RowGroups(1, (0, 1))), 1)
    assert selected(table, "eq", 12) == ((RowGroups(1, (0,)),), 3)
    assert selected(table, "gt", 100) == ((), 4)
    assert selected(table, "ne", 3) == (table.all_row_groups, 0)


def test_a_table_knows_when_its_files_have_changed(write, tmp_path):
    path = write("1.parquet", {"a": [1]})
    table, folder = ParquetTable.open([path]), ParquetTable.open([str(tmp_path)])
    assert table.is_current()
    assert folder.is_current()
    write("2.parquet", {"a": [2]})
    assert table.is_current()
    assert not folder.is_current()
    assert folder.reopened().num_rows == 2
    write("1.parquet", {"a": [1, 2, 3]})
    assert not table.is_current()
    assert table.reopened().num_rows == 3
    assert table.reopened().identity != table.identity


def test_reopening_needs_the_columns_that_were_there(write):
    table = ParquetTable.open([write("1.parquet", {"a": [1]})])
    write("1.parquet", {"a": ["x"]})
    with pytest.raises(FileError, match='column "a" is no longer BIGINT'):
        table.reopened()


def test_a_file_that_is_gone_is_not_current(write):
    path = write("1.parquet", {"a": [1]})
    table = ParquetTable.open([path])
    Path(path).unlink()
    assert not table.is_current()


def test_only_texts_with_few_values_count_as_dictionaries(write):
    columns = {
        "few": [f"value {i % 5}" for i in range(10_000)],
        "many": [f"a longer value {i}" for i in range(10_000)],
        "number": list(range(10_000)),
    }
    table = ParquetTable.open([write("x.parquet", columns)])
    assert [n for n, _ in table.fields if table.has_small_dictionary(n)] == ["few"]
    plain = ParquetTable.open([write("y.parquet", columns, use_dictionary=False)])
    assert not plain.has_small_dictionary("few")
