"""What footers say is told as DuckDB tells it, of files of several writers."""

from __future__ import annotations

import datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import AccessDenied, FileError

ROWS = pa.table(
    {
        "i8": pa.array([1, None, -3], pa.int8()),
        "u": pa.array([1, 2, 4_000_000_000], pa.uint32()),
        "f": [1.5, -2.25, 1e300],
        "s": ["a", "ä", None],
        "by": pa.array([b"a", b"\xff", b""], pa.binary()),
        "d": [datetime.date(2020, 1, 2), None, datetime.date(1969, 12, 31)],
        "ts": pa.array([0, 1, -1], pa.timestamp("us")),
        "tz": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
        "m": pa.array([Decimal("1.25"), Decimal("-9.99"), None], pa.decimal128(3, 2)),
        "wide": pa.array([Decimal("1.25")] * 3, pa.decimal128(30, 2)),
        "b": [True, False, None],
        "l": [[1, 2], [3], None],
        "st": [{"x": 1, "y": "q"}] * 3,
        "t": pa.array([1, 2, None], pa.time64("us")),
        "mp": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
        "nothing": pa.array([None] * 3, pa.float64()),
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("footers")
    pq.write_table(
        ROWS, root / "new.parquet", store_schema=False, write_page_index=True, row_group_size=2
    )
    pq.write_table(
        ROWS,
        root / "old.parquet",
        version="1.0",
        use_dictionary=False,
        write_statistics=False,
        compression="zstd",
    )
    duckdb.sql(
        f"copy (select i as a, 'x' || i as b, [i] as l, i::decimal(9, 2) as m from range(5) t(i)) to '{root}/other.parquet' (kv_metadata {{k: 'v'}})"
    )
    pq.write_table(ROWS.slice(0, 0), root / "empty.parquet")
    return root  # fmt: skip


@pytest.mark.parametrize(
    "name", ["new.parquet", "old.parquet", "other.parquet", "empty.parquet", "*.parquet"]
)
@pytest.mark.parametrize(
    "function",
    ["parquet_metadata", "parquet_schema", "parquet_file_metadata", "parquet_kv_metadata"],
)
def test_footers_are_told_as_by_duckdb(function, name, folder) -> None:
    text = f"from {function}('{folder}/{name}')"
    expected = duckdb.sql(text)
    with fuseline.connect("cpu") as connection:
        found = connection.sql(text)
        described = connection.sql(f"describe {text}").fetchall()
        told = duckdb.sql(f"describe {text}").fetchall()
        assert described == told
        assert found.fetchall() == expected.fetchall()


def test_footers_are_files(folder, tmp_path) -> None:
    with (
        fuseline.connect("cpu", allowed_paths=[tmp_path / "x"]) as connection,
        pytest.raises(AccessDenied),
    ):
        connection.sql(f"from parquet_metadata('{folder}/new.parquet')")
    with fuseline.connect("cpu") as connection, pytest.raises(FileError, match="no file"):
        connection.sql("from parquet_schema('nothing.parquet')")


def test_lists_of_files_are_told_one_after_the_other(folder, tmp_path) -> None:
    files = f"['{folder}/new.parquet', '{folder}/o*.parquet']"
    with fuseline.connect("cpu", allowed_paths=[folder]) as connection:
        for text in (
            f"select num_rows from parquet_file_metadata({files})",
            f"select name from parquet_schema({files})",
        ):
            assert connection.sql(text).fetchall() == duckdb.sql(text).fetchall()
        with pytest.raises(AccessDenied):
            connection.sql(f"from parquet_schema(['{folder}/new.parquet', '{tmp_path}/x.parquet'])")
        with pytest.raises(fuseline.FuselineError, match="a path or a pattern, or a list of them"):
            connection.sql("from parquet_schema([1])")
