"""range() and generate_series() answer as DuckDB where they are values."""

from __future__ import annotations

import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

SETUP = """(values
    (0, 5, 2, timestamp '2020-01-31', timestamp '2020-06-01', interval '1 month'),
    (5, 0, -2, timestamp '2020-05-31', timestamp '2020-01-01', interval '-1 month'),
    (5, 0, 2, timestamp '2020-01-01', timestamp '2020-01-03', interval '1 day 6 hours'),
    (1, null, 1, timestamp '2020-01-01', timestamp '2020-01-03', null),
    (3, 3, 0, null, timestamp '2020-01-03', interval '1 day'),
    (-4, 3, 100, timestamp '2020-01-03', timestamp '2020-01-03', interval '0 days')) t(a, b, c, s, e, i)"""
EDGE = 2**63 - 1
QUERIES = (
    f"select range(a), range(a, b), range(a, b, c), generate_series(a), generate_series(a, b), generate_series(a, b, c) from {SETUP}",
    f"select range(s, e, i), generate_series(s, e, i) from {SETUP}",
    f"select range({EDGE - 1}, {EDGE}), generate_series({EDGE}, {EDGE}), range({EDGE}, {-EDGE}, {-EDGE}), generate_series({-EDGE}, {EDGE}, {EDGE})",
    "select range(date '2020-01-01', date '2020-01-03', interval 1 day), range(null), range(1, null), range(0), generate_series(-1)",
    f"select a, unnest(range(a)) x, list_sum(generate_series(0, b)), [y * a for y in range(3)] from {SETUP}",
    f"select * from {SETUP}, unnest(range(t.a)) u(x) order by all",
)
WRONG = (
    "range(1.5)", "range('a')", "range(1, 2, 3, 4)", "range(3::ubigint)", f"range({EDGE})", "range(date '2020-01-01', date '2020-01-05')",
    "range(timestamp '2020-01-01', timestamp '2020-02-05', interval '1 month -1 day')",
)  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_series_answer_as_duckdb(query: str) -> None:
    assert_same_as_duckdb(query, {"unused": pa.table({"x": [1]})}, backend="cpu")


def test_what_is_wrong_is_refused() -> None:
    with fuseline.connect("cpu") as connection:
        for call in WRONG:
            with pytest.raises(FuselineError):
                connection.sql(f"select {call}").fetchall()
