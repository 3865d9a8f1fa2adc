"""fuseline_columns() and frame.cache(): what is in the column cache, and how it gets there."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline import col
from fuseline.errors import InvalidQuery, Unsupported
from fuseline.operators.cpu.table import to_physical
from fuseline.plan.arrow.arrow_types import from_arrow
from fuseline.storage.columns.encode import encode
from fuseline.storage.tables.cached_columns import cudf_bytes

TABLE = pa.table({
    "n": pa.array([10, None, 30, 50]),
    "m": pa.array([Decimal("1.50"), Decimal("-2.00"), None, None], pa.decimal128(12, 2)),
    "d": pa.array([dt.date(2024, 1, d) for d in (1, 2, 3, 3)]),
    "at": pa.array([dt.datetime(2024, 1, 1, h) for h in (1, 2, 3, 4)], pa.timestamp("us")),
    "s": ["aa", "b", None, "b"], "f": [1.5, None, 2.5, float("nan")], "x": [True, False, True, None],
    "nothing": pa.nulls(4, pa.int64()),
    "i": pa.array([(1, 2, 3)] * 4, pa.month_day_nano_interval()),
})  # fmt: skip
COLUMNS = "encoding, rows, nulls, min, max, distinct_count, bytes, plain_bytes"


TABLES = {"t": TABLE}


def cached(connection: fuseline.Connection, column: str) -> tuple[Any, ...]:
    """What is said of one encoded column."""
    query = f"""select {COLUMNS} from fuseline_columns()
        where column_name = ? and encoding not like 'arrow%'"""
    (row,) = connection.execute(query, [column]).fetchall()
    return row


EXPECTED = {
    "n": ("narrow base=10 step=1 width=1", 4, 1, "10", "50", None, 5, 33),
    "m": ("narrow base=-200 step=350 width=1", 4, 2, "-2.00", "1.50", None, 5, 33),
    "d": ("narrow base=19723 step=1 width=1", 4, 0, "2024-01-01", "2024-01-03", None, 4, 16),
    "s": ("dictionary values=2 width=1", 4, 1, "aa", "b", 2, 5, 25),
    "f": ("plain width=8", 4, 1, None, None, None, 33, 33),
    "x": ("narrow base=0 step=1 width=1", 4, 1, "false", "true", None, 5, 2),
    "nothing": ("narrow base=0 step=1 width=1", 4, 4, None, None, None, 5, 33),
}


@pytest.mark.parametrize("column", EXPECTED)
def test_each_encoding_is_described(connection: fuseline.Connection, column: str) -> None:
    connection.table("t").select(column).cache()
    assert cached(connection, column) == EXPECTED[column]


def test_a_timestamp_is_shown_as_one(connection: fuseline.Connection) -> None:
    connection.table("t").select("at").cache()
    assert cached(connection, "at")[3:5] == ("2024-01-01 01:00:00", "2024-01-01 04:00:00")


def test_extremes_beyond_pythons_years() -> None:
    with fuseline.connect(device="cpu") as connection:
        days = pa.array([-(2**31) + 2, 2**31 - 2], pa.int32()).view(pa.date32())
        connection.register("t", pa.table({"d": days})).cache()
        assert cached(connection, "d")[3:5] == (
            "-2147483646 days from 1970",
            "2147483646 days from 1970",
        )


def test_a_column_without_an_encoding_is_kept_as_it_is(connection: fuseline.Connection) -> None:
    connection.table("t").select("i").cache()
    query = "select table_name, column_name, device, encoding, rows, plain_bytes from fuseline_columns()"
    assert connection.execute(query).fetchall() == [("t", "i", "cpu", "arrow", 4, 64)]


def test_plain_bytes_are_those_of_the_device() -> None:
    mask = 64  # bytes, libcudf's unit for bitmaps
    sizes = {"n": 4 * 8 + mask, "d": 4 * 4, "x": 4 + mask, "s": 4 + 5 * 4 + mask, "m": 4 * 8 + mask}
    for name, size in sizes.items():
        data_type = from_arrow(TABLE.schema.field(name).type)
        column = encode(to_physical(TABLE[name], data_type), data_type)
        assert column is not None
        assert cudf_bytes(column) == size


def test_no_rows(connection: fuseline.Connection) -> None:
    connection.register("none", TABLE.slice(0, 0)).cache()
    assert cached(connection, "s")[:6] == ("dictionary values=0 width=1", 0, 0, None, None, 0)
    assert cached(connection, "n")[1:5] == (0, 0, None, None)


def test_a_frame_that_is_cached_is_read_from_memory(connection: fuseline.Connection) -> None:
    connection.set_option("fuse", "always")
    assert connection.table("t").cache().columns == TABLE.column_names
    frame = connection.sql("select sum(n), max(s) from t")
    frame.to_arrow()
    (node,) = frame.profile.pipelines
    assert node.receipt is not None
    assert node.receipt.load_seconds == 0


@pytest.mark.parametrize("fuse", ["auto", "never"])
def test_renamed_and_dropped_columns_are_those_of_the_table(
    connection: fuseline.Connection, fuse: str
) -> None:
    connection.set_option("fuse", fuse)
    connection.table("t").select("n", "m").rename({"n": "number"}).drop("m").cache()
    names = connection.execute("select distinct column_name from fuseline_columns()").fetchall()
    assert names == [("n",)]


def test_what_is_no_table_cannot_be_cached(connection: fuseline.Connection) -> None:
    frame = connection.table("t")
    for other in (frame.filter(col("n") > 1), frame.limit(1), frame.select(y=col("n") + 1)):
        with pytest.raises(InvalidQuery, match=r"cache\(\) takes a table"):
            other.cache()


def test_hits_and_bytes_move_with_each_query(connection: fuseline.Connection) -> None:
    connection.table("t").select("n").cache()
    frame = connection.sql("select max(hits) from fuseline_columns()")
    before = frame.fetchall()[0][0]
    connection.table("t").select("n").cache()
    assert frame.fetchall()[0][0] == before + 1
    assert connection.sql("select max(hits) from fuseline_columns()").fetchall()[0][0] == before + 1


def test_reading_it_leaves_no_trace(connection: fuseline.Connection) -> None:
    connection.table("t").select("n").cache()
    version, entries = connection.catalog.version, len(connection.cache.stats())
    for _ in range(2):
        connection.sql("select * from fuseline_columns() as c where c.rows > 0").to_arrow()
    assert (connection.catalog.version, len(connection.cache.stats())) == (version, entries)


def test_the_limit_can_be_changed(connection: fuseline.Connection) -> None:
    query = "select count(*) from fuseline_columns()"
    connection.table("t").cache()
    assert connection.execute(query).fetchall() > [(0,)]
    connection.execute("set column_cache_limit = 0")
    assert connection.execute(query).fetchall() == [(0,)]
    connection.table("t").cache()
    assert connection.execute(query).fetchall() == [(0,)]


def test_a_dropped_table_is_not_shown(connection: fuseline.Connection) -> None:
    connection.table("t").select("n").cache()
    connection.unregister("t")
    assert connection.execute("select * from fuseline_columns()").fetchall() == []


def test_files_go_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1, 2]}), path)
    with fuseline.connect(device="cpu") as connection:
        connection.read_parquet(path).cache()
        query = "select distinct table_name from fuseline_columns()"
        assert connection.execute(query).fetchall() == [(str(path),)]
        connection.read_parquet(path, "a").cache()
        assert connection.execute(query).fetchall() == [("a",)]


def test_a_changed_file_is_loaded_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1, 2]}), path)
    with fuseline.connect(device="cpu") as connection:
        frame = connection.read_parquet(path, "a").cache()
        pq.write_table(pa.table({"n": [3, 4, 1000]}), path)
        frame.cache()
        assert cached(connection, "n")[1:5] == (3, 0, "3", "1000")


def test_the_table_function_is_checked(connection: fuseline.Connection) -> None:
    with pytest.raises(InvalidQuery, match="takes no arguments"):
        connection.sql("select * from fuseline_columns(1)")
    with pytest.raises(Unsupported, match='Did you mean "fuseline_columns"'):
        connection.sql("select * from fuseline_colums()")
