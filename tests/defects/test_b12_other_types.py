"""DEFECTS B12: one column of another type made DESCRIBE and `select *` of a file impossible, and said little of why."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import Unsupported
from tests.compare import assert_same_as_duckdb

OTHERS: dict[str, pa.Array] = {
    "list": pa.array([[1], None], pa.list_(pa.time64("ns"))),
    "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.time64("ns"))),
    "nanos": pa.array([1, None], pa.time64("ns")),
    "id": pa.array([[[1]], None], pa.list_(pa.list_(pa.time64("ns")))),
    "tag": pa.array([{"x": 1}, None], pa.struct([("x", pa.time64("ns"))])),
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    columns = {"a": pa.array([1, 2]), **OTHERS, "z": pa.array(["p", "q"])}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    return str(tmp_path / "t.parquet")


@pytest.mark.parametrize("text", [
    "describe from '{}'", "describe select * from '{}'", "describe '{}'",
    "describe select z, \"list\", a + 1 as b from '{}'",
    "describe select t.*, 1 as one from '{}' t",
    "describe select * exclude (\"map\", a) from '{}'",
    "describe with c as (from '{}') select * from c",
    "describe select * from '{}' x join (select 1::bigint as a) y using (a)",
])  # fmt: skip
def test_describe_gives_names_and_types_as_duckdb(text: str, path: str, connection: Any) -> None:
    query = text.format(path)
    expected = [row[:2] for row in duckdb.sql(query).fetchall()]
    assert [row[:2] for row in connection.sql(query).fetchall()] == expected


def test_describe_of_views_and_registered_tables(path: str, connection: Any) -> None:
    connection.execute(f"create view v as select a, z from '{path}'")
    assert [row[0] for row in connection.sql("describe v").fetchall()] == ["a", "z"]
    with pytest.warns(UserWarning, match=r'without the columns "l" \(TIME_NS\[\]\)'):
        connection.register("t", pa.table({"l": OTHERS["list"], "x": [2, 3]}))
    rows = [("l", "TIME_NS[]"), ("x", "BIGINT")]
    assert [row[:2] for row in connection.sql("describe t").fetchall()] == rows
    assert [row[:2] for row in connection.sql("show t").fetchall()] == rows


def test_star_names_what_it_cannot_read_and_what_to_write(path: str, connection: Any) -> None:
    with pytest.raises(Unsupported) as caught:
        connection.sql(f"select * from '{path}'")
    message = caught.value.message
    assert (
        'The column "list" has the type TIME_NS[], which queries cannot read, and 4 more' in message
    )
    remedy = message[message.index("EXCLUDE") :].rstrip(".")
    rows = connection.sql(f"select * {remedy} from '{path}' order by a").fetchall()
    assert rows == [(1, "p"), (2, "q")]
    with pytest.raises(Unsupported, match=r"EXCLUDE \(z, list, .map"):
        connection.sql(f"select * exclude (z) from '{path}'")


@pytest.mark.parametrize("other", OTHERS)
def test_a_column_that_is_named_is_refused(other: str, path: str, connection: Any) -> None:
    for query in (
        f"select \"{other}\" from '{path}'",
        f"select count(*) from '{path}' where \"{other}\" is null",
    ):
        with pytest.raises(
            Unsupported, match=f'The column "{other}" has the type .* cannot read'
        ) as caught:
            connection.sql(query)
        assert caught.value.span is not None


@pytest.mark.parametrize(
    "query",
    ["select a, z from t", "select count(*) from t", "select max(z) from t where a > 1"],
)
@pytest.mark.filterwarnings("ignore:The table")
def test_the_other_columns_are_read(query: str, path: str) -> None:
    assert_same_as_duckdb(query, {"t": path})


def test_functions_of_such_columns_are_refused_by_describe_too(path: str, connection: Any) -> None:
    for call in ('upper("list")', '"tag" + 1', 'sum("map")', '"time" = 3', "length(bytes) + 1"):
        with pytest.raises(fuseline.FuselineError):
            connection.sql(f"describe select {call} from '{path}'")


def test_durations_have_a_name_too(connection: Any) -> None:
    connection.register("t", pa.table({"d": [timedelta(1)], "x": [2]}))
    assert connection.sql("describe t").fetchall()[0][:2] == ("d", "INTERVAL")
    assert connection.sql("select d from t").fetchall() == [(timedelta(1),)]
