"""fill() OVER (ORDER BY ...): what lies on the line between values, before the first and behind the last, as DuckDB has it."""

from __future__ import annotations

from typing import Any

import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

POINTS = {
    "g": [1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 1],
    "i": [1, 2, 3, 5, 6, 9, 1, 4, 5, 7, 8, 1, None],
    "x": [None, 10, None, 40, None, None, 5, None, None, None, None, 9, 3],
}
CALLS = (
    "fill(x) over w, fill(x::double + 1) over w, fill(x::bigint * 1000000007) over w",
    "fill(x) over (partition by g order by i desc), fill(x) over (partition by g order by i / 3), fill(x::utinyint) over w",
    "fill(date '2024-01-01' + x::int) over w, fill(timestamp '2024-01-01' + to_days(x::int)) over w, fill(time '00:00' + to_hours(x)) over w",
    "fill(timestamptz '2024-01-01 00:00:00+00' + to_hours(x)) over w, fill((timestamp '2024-01-01' + to_days(x::int))::timestamp_s) over w",
    "fill(x) over (partition by g order by date '2024-01-01' + i::int), fill(x) over (partition by g order by time '00:00' + to_hours(i))",
    "fill((x / 4)::decimal(9, 3)) over w, fill(x::hugeint) over w, fill(x) over w + 1, fill(x) over (partition by g order by i::decimal(9, 2))",
    "fill(case x when 10 then 'inf'::double else x + 1 end) over w, fill(x) over (partition by g order by case i when 5 then 'nan'::double else i end)",
)  # fmt: skip
WRONG = {
    "fill(x) over ()": "ORDER BY of one key",
    "fill(x) over (order by i, g)": "ORDER BY of one key",
    "fill(x::varchar) over (order by i)": "The argument of fill",
    "fill(x) over (order by i::varchar)": "The order of fill",
    "fill(distinct x) over (order by i)": "DISTINCT",
    "fill(x, 1) over (order by i)": "one argument",
    "fill(x)": "needs OVER",
}


@pytest.mark.parametrize("calls", CALLS)
def test_points(calls: str) -> None:
    query = f"select g, i, x, {calls} from t window w as (partition by g order by i) order by all"
    named = query.replace(" over w", " over (partition by g order by i)")
    assert_same_as_duckdb(
        named.replace("window w as (partition by g order by i) ", ""), {"t": POINTS}
    )


def test_no_rows() -> None:
    assert_same_as_duckdb("select fill(x) over (order by i) from t where i > 99", {"t": POINTS})


def test_dataframe_calls_refuse_it() -> None:
    with pytest.raises(FuselineError, match="ask SQL"):
        fuseline.fn.fill(fuseline.col("x"))


@pytest.mark.parametrize("call", WRONG)
def test_wrong_calls(call: str, connection: Any) -> None:
    connection.execute("create or replace table t as select 1 as g, 2 as i, 3 as x")
    with pytest.raises(FuselineError, match=WRONG[call]):
        connection.sql(f"select {call} from t").fetchall()
