"""Rows that lie in the order of a window are not sorted again."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.operators.cpu.window import places
from tests.compare import assert_same_as_duckdb

ROWS = 5000
TABLES = {
    "t": {
        "p": [i // 100 for i in range(ROWS)],
        "k": [i % 100 // 2 if i % 100 < 90 else None for i in range(ROWS)],
        "v": [i * 7919 % 1000 for i in range(ROWS)],
    }
}
QUERIES = """
select p, k, v, rank() over (partition by p order by k nulls last) as a, sum(v) over (partition by p order by k nulls last) as b from t
select p, k, v, sum(v) over (order by p rows 20 preceding) as b from t
select p, v, lag(v) over (partition by p order by k nulls last rows 3 preceding) as b from t where v > 100
select p, v, lag(v) over (order by -p desc) as b from t
""".strip().splitlines()


@pytest.mark.parametrize("query", QUERIES)
def test_rows_in_order_are_not_sorted(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def sort(*_: Any) -> None:
        raise AssertionError("rows are sorted that lie in order")

    monkeypatch.setattr(places, "order_of", sort)
    monkeypatch.setattr(places, "sorted_with_rows", sort)
    assert_same_as_duckdb(query, TABLES, backend="cpu")


@pytest.mark.parametrize("query", QUERIES)
def test_rows_in_order(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend)


@pytest.mark.parametrize("place", [1, ROWS - 1])
def test_one_row_out_of_order_is_seen(place: int, backend: str) -> None:
    values = list(TABLES["t"]["p"])
    values[place] = -1
    tables = {"t": {"p": values, "v": TABLES["t"]["v"]}}
    query = "select p, v, sum(v) over (order by p, v) as s, rank() over (order by p) as r from t"
    assert_same_as_duckdb(query, tables, backend=backend)
