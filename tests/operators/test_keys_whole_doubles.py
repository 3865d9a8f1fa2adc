"""Groups by doubles that are whole numbers, which are numbered as integers, and by such that only nearly are."""

from __future__ import annotations

from itertools import chain, repeat
from typing import Any

import pyarrow as pa
import pytest

from fuseline.operators.cpu.memory import chunks
from fuseline.operators.cpu.sort import keys
from tests.compare import assert_same_as_duckdb

NAN, INF = float("nan"), float("inf")
EITHER = ("never", "always")
ROWS = 1000
COLUMNS: dict[str, list[float | None]] = {
    "whole": [1.0, -3.0, 7.0, 1e6],
    "zeros": [0.0, -0.0, 2.0],
    "one value": [5.0],
    "far from zero": [2.0**53, 2.0**53 - 1],
    "nulls": [None, 4.0, None, -4.0, 0.0],
    "a null before values far from zero": [None, 2.0**53, 2.0**53 - 1],
    "all null": [None],
    "beyond whole numbers": [2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 1e300],
    "not a number": [1.0, NAN, None, 2.0],
    "infinite": [1.0, INF, -INF],
    "fractions": [0.5, 1.0, None],
}
QUERIES = (
    "select k, count(*) as n, sum(v) as s from t group by k",
    "select k, o, count(*) as n, max(v) as m from t group by k, o",
    "select distinct k, o from t",
    "select count(distinct k) as n, count(distinct k) filter (where o = 1) as some from t",
    "select o, count(distinct k) as n from t group by o",
    "select v, count(*) over (partition by k) as n from t",
    "select k from t except all select k from t where o = 1",
)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are gone through in several ranges, of which the first rows are not all."""
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 256)
    monkeypatch.setattr(keys, "SAMPLE", 16)


def table(values: list[Any], rows: int = ROWS) -> pa.Table:
    repeated = list(chain.from_iterable(repeat(values, rows // len(values) + 1)))[:rows]
    others = [n % 3 for n in range(rows)]
    return pa.table(
        {"k": pa.array(repeated, pa.float64()), "o": others, "v": pa.array(range(rows))}
    )


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("name", COLUMNS)
def test_doubles_as_keys(name: str, query: str) -> None:
    assert_same_as_duckdb(query, {"t": table(COLUMNS[name])}, fuse=EITHER)


@pytest.mark.parametrize("last", [0.5, NAN, INF, -INF, 2.0**60, None])
def test_the_last_row_is_no_whole_number(last: float | None) -> None:
    values = [*map(float, range(ROWS - 1)), last]
    assert_same_as_duckdb(QUERIES[0], {"t": table(values)}, fuse=EITHER)


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(rows: int) -> None:
    for query in QUERIES:
        assert_same_as_duckdb(query, {"t": table([3.0], rows)}, fuse=EITHER)


def test_small_floats() -> None:
    column = pa.array([1.0, 2.5, None, -0.0, 0.0, 16777216.0], pa.float32())
    for part in (column, column.slice(2)):
        query = "select k, count(*) as n from t group by k"
        assert_same_as_duckdb(query, {"t": pa.table({"k": part})}, fuse=EITHER)


def test_whole_numbers_lie_in_a_small_range() -> None:
    found = keys.group_numbers([pa.array([3.0, None, -2.0, 3.0])])
    assert found.size <= keys.SMALL_DOMAIN
    assert found.firsts is None  # not hashed
    assert found.codes.tolist() == [6, 0, 1, 6]
