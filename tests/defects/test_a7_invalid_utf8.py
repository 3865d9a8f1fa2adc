"""Text that is not UTF-8, in Parquet files and registered tables: each query that reads the column says so, as DuckDB does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import FileError
from fuseline.storage.columns.value_checks import check_utf8
from tests.compare import backends_at_hand

BAD = {
    "latin 1": [b"abc", b"m\xfcnchen", b"x"],
    "a character in two strings": [b"ab\xc3", b"\xbcx", b"y"],
    "a character that does not end": [b"a", b"\xe2\x82"],
    "a lone surrogate": [b"\xed\xa0\x80", b"a"],
    "an overlong form": [b"\xc0\xaf", b"a"],
    "beyond the last character": [b"\xf5\x80\x80\x80", b"a"],
    "in the last of many": [*[b"abcdefgh"] * 20_000, b"\xff"],
    "in a dictionary": [*[b"a", b"\xfe"] * 10_000],
}
GOOD = {
    "all lengths": ["a", "é", "€", "😀", "", "z" * 100, "\0"],
    "no ASCII at all": ["ж", "жж", "", "日本語"],
    "empty": [],
    "of eight bytes and more": ["abcdefgh", "abcdefghi", "é" * 9],
}
READING = [
    "select s from t", "select s, a from t where a >= 0", "select count(*) from t where s like '%x%'",
    "select s, count(*) from t group by s", "select count(distinct s) from t", "select max(length(s)) from t",
    "select a from t order by s",
    "select count(*) from t x join t y on x.s = y.s",
    "select upper(s) from t", "from t",
]  # fmt: skip


def array(values: list[bytes]) -> pa.Array:
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def table(values: list[bytes]) -> pa.Table:
    return pa.table({"a": range(len(values)), "s": array(values)})


@pytest.fixture(scope="module", params=["never", "always"])
def connections(request: pytest.FixtureRequest) -> Iterator[list[Any]]:
    made = [fuseline.connect(device=d, fuse=request.param) for d in backends_at_hand()]
    yield made
    for connection in made:
        connection.close()


@pytest.mark.parametrize("name", BAD)
def test_each_query_that_reads_a_file_names_it(
    name: str, connections: list[Any], tmp_path: Path
) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(table(BAD[name]), path)
    with pytest.raises(duckdb.Error):
        duckdb.sql(f"select count(*) from '{path}' where s like '%x%'").fetchall()
    for connection in connections:
        frame = connection.read_parquet(path, "t")
        for query in READING:
            with pytest.raises(
                FileError, match=r'column "s" of the file ".*bad.parquet".*not UTF-8'
            ):
                connection.sql(query).fetchall()
        for method in (frame.to_arrow, frame.to_pandas, frame.to_polars, frame.show, frame.cache):
            with pytest.raises(FileError, match="not UTF-8"):
                method()
        assert connection.sql("select min(a) from t").fetchall() == [(0,)]


@pytest.mark.parametrize("name", BAD)
def test_each_query_that_reads_a_registered_table_names_it(
    name: str, connections: list[Any]
) -> None:
    for connection in connections:
        connection.register("t", table(BAD[name]))
        for query in READING:
            with pytest.raises(FileError, match=r'column "s" of "t" holds text that is not UTF-8'):
                connection.sql(query).fetchall()


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_other_text_passes(name: str, kind: pa.DataType) -> None:
    made = pa.array([*GOOD[name], None], pa.string()).cast(kind)
    check_utf8(made, "it")
    check_utf8(made[1:], "it")


def test_what_lies_under_null_or_outside_of_a_slice_is_not_looked_at() -> None:
    bad = array([b"\xff", b"\xc3\xbc", b"\xff"])
    check_utf8(bad[1:2], "it")
    masked = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x02"), *bad.buffers()[1:]])
    check_utf8(masked, "it")
    with pytest.raises(FileError):
        check_utf8(bad[1:], "it")


def test_rows_that_are_inserted_are_looked_at_too() -> None:
    connection = fuseline.connect(device="cpu")
    connection.register("good", {"s": ["a", "b"]})
    connection.sql("select s from good").fetchall()
    connection.execute("create table made as from good; insert into made select s || 'ü' from good")
    assert connection.sql("from made order by s").fetchall() == [("a",), ("aü",), ("b",), ("bü",)]
