"""A9: set operations over a column of NULLs of another type, and decimals with more digits than their type."""

from __future__ import annotations

from decimal import Context
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import ConversionError, FileError
from fuseline.storage.columns.value_checks import check_decimals
from tests.compare import assert_same_as_duckdb, run_duckdb


@pytest.mark.parametrize("query", [
    "(select nullif(1, 1)) union select date '2024-01-01'",
    "select nullif(1.5, 1.5) as x union all select timestamp '2024-01-01' order by x",
    "select date '2024-01-01' as x union select nullif(true, true)",
    "select nullif(y, 1) as x from range(1, 2) r(y) union select date '2024-01-01'",
    "select 1 as x where false union select date '2024-01-01'",
    "select 1.5::double as x union select true", "select true as x union all select 1.5",
])  # fmt: skip
def test_a_side_of_nulls_takes_any_type(query: str) -> None:
    assert_same_as_duckdb(query, fuse=["never", "always"])


@pytest.mark.parametrize("other", ["1", "1.5", "true", "y"])
def test_a_value_of_another_type_fails(other: str) -> None:
    query = f"select {other} as x from range(1) r(y) union select date '2024-01-01'"
    with pytest.raises(duckdb.ConversionException):
        run_duckdb(query)
    with (
        fuseline.connect(device="cpu") as connection,
        pytest.raises(ConversionError, match="cannot be a DATE, which the other side"),
    ):
        connection.sql(query).fetchall()


def decimals(precision: int, *unscaled: int) -> pa.Array:
    """Return values as they are, with whatever digits."""
    data = b"".join(v.to_bytes(16, "little", signed=True) for v in unscaled)
    return pa.Array.from_buffers(
        pa.decimal128(precision, 0), len(unscaled), [None, pa.py_buffer(data)]
    )


@pytest.mark.parametrize("precision", range(1, 38))
def test_digits_beyond_the_type_are_found(precision: int) -> None:
    most = 10**precision - 1
    edges = {
        most, most + 1, 0, 1, 2**63, 2**64 - 1, 2**64, 2**64 + most % 2**64, 2**127 - 1, 2**127,
    }  # fmt: skip
    for value in edges | {-v for v in edges}:
        if -(2**127) <= value < 2**127:
            for beside in ((), (5,), (-5,)):
                array = decimals(precision, value, *beside)
                if abs(value) <= most:
                    check_decimals(array, "x")
                else:
                    with pytest.raises(FileError, match="more than"):
                        check_decimals(array, "x")


def test_nulls_may_lie_over_any_bits() -> None:
    whole = decimals(5, 10**30, 7)
    masked = pa.Array.from_buffers(
        whole.type, 2, [pa.py_buffer(b"\x02"), whole.buffers()[1]], null_count=1
    )
    check_decimals(masked, "x")


@pytest.mark.parametrize("fuse", ["never", "always"])
@pytest.mark.parametrize("precision", [9, 36])
def test_a_file_of_a_wrong_type_is_refused(precision: int, fuse: str, tmp_path: Path) -> None:
    """Comparisons would take the type at its word, and one of few digits would lose the high half."""
    path = tmp_path / "wrong.parquet"
    value = 10**precision + 3
    pq.write_table(pa.table({"d": decimals(precision, value, 5)}), path)
    assert Context(prec=99).create_decimal(value) in pq.read_table(path)["d"].to_pylist()
    with fuseline.connect(device="cpu", fuse=fuse) as connection:
        for query in ("select d from '{}'", "select sum(d) as s from '{}' where d > 1"):
            with pytest.raises(FileError, match=f"more than {precision} digits"):
                connection.sql(query.format(path)).fetchall()
        connection.register("t", pq.read_table(path))
        with pytest.raises(FileError, match='The column "d" of "t"'):
            connection.sql("select max(d) from t").fetchall()
