"""Between which numbers values of functions are expected: all that DuckDB has lie there, and keys by functions are few."""

from __future__ import annotations

from datetime import date

import duckdb
import pyarrow as pa
import pytest

import fuseline
from fuseline.plan.types import BIGINT, DATE
from fuseline.planner.estimates.estimate import Estimates
from tests.planner.build import Tables, optimized, table

FIRST, LAST = date(1995, 11, 20), date(1996, 3, 10)
BOUNDS = {"a": (BIGINT, -7, 11), "b": (BIGINT, 2, 5), "d": (DATE, FIRST, LAST)}
VALUES = "range(-7, 12) as r(a), range(2, 6) as s(b), generate_series(date '1995-11-20', date '1996-03-10', interval 1 day) as u(m)"
UNKNOWN = ["a // (b - 3)", "date_diff('century', d, date '1996-01-02')"]
EXPRESSIONS = [
    "a + b", "a - b", "a * b", "a // b", "a % b", "-a", "abs(a)", "abs(a - 3) * b", "sign(a)",
    *(f"{part}(d)" for part in ("year", "quarter", "month", "day", "week", "dayofweek", "isodow", "dayofyear", "isoyear", "decade", "century")),
    *(f"date_diff('{unit}', d, date '1996-01-02')" for unit in ("hour", "day", "week", "month", "quarter", "year")),
    "hour(d::timestamp + interval 5 hour)", *UNKNOWN, "date_sub('month', date '1990-05-05', d)",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_values_lie_between(expression: str) -> None:
    plan = optimized(f"select {expression} as x from t", Tables({"t": table("t", 9000, **BOUNDS)}))
    known = Estimates().relation(plan).columns[plan.columns[0]]
    if known.low is None or known.high is None:
        assert expression in UNKNOWN
        return
    grid = f"(select a, b, m::date as d from {VALUES})"
    found = duckdb.sql(f"select min({expression}), max({expression}) from {grid}")
    ((low, high),) = found.fetchall()
    assert known.low <= low <= high <= known.high
    assert known.distinct <= known.high - known.low + 1


def test_days_between_two_columns_are_grouped_by_number() -> None:
    rows = 70_000
    columns = {name: pa.array([i // step % 400 for i in range(rows)], pa.date32()) for name, step in (("d", 1), ("e", 400))}  # fmt: skip
    connection = fuseline.connect(device="cpu")
    connection.register("t", pa.table(columns))
    query = "select date_diff('day', d, e) as n, count(*) from t group by n"
    text = connection.sql(query).explain()
    assert text.startswith("Pipeline  [cpu, ~574 rows]"), text
