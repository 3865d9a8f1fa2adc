"""avg, mad, quantiles of dates, times and moments, exact to the last digit."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb

IN_UTC = ("set timezone = 'UTC'",)
_SOURCE = random.Random(11)
_LARGEST = 4_000_000_000_000_000  # microseconds, in the year 2096


def _column(kind: pa.DataType, least: int, most: int) -> pa.Array:
    values = [_SOURCE.randint(least, most) for _ in range(60)] + [least, most, 0, 1, 2, 2, None]
    return pa.array(values, kind)


T = pa.table(
    {
        "k": [i % 5 for i in range(67)],
        "x": _column(pa.timestamp("us"), -_LARGEST, _LARGEST),
        "z": _column(pa.timestamp("us", "UTC"), -_LARGEST, _LARGEST),
        "n": _column(pa.timestamp("ns"), -_LARGEST, _LARGEST),
        "c": _column(pa.time64("us"), 0, 86_399_999_999),
        "d": _column(pa.date32(), -100_000, 40_000),
    }
)
ENDS = pa.table({"x": pa.array([2**63 - 1, 5, -(2**63 - 1), None], pa.timestamp("us"))})
QUERIES = [
    "select avg(x), avg(z), avg(n), avg(c), avg(d), mean(x) from t",
    "select k, avg(x), avg(c), mad(x), mad(z), mad(c), mad(d) from t group by k",
    "select k, quantile_cont(z, 0.3), quantile_cont(c, 0.8), median(z), median(c) from t group by k",
    "select avg(distinct x), avg(c) filter (k > 2), avg(z) filter (false) from t",
    "select k, avg(x) over (partition by k), avg(c) over (order by k, x) from t",
    "select k from t group by k having avg(c) > time '11:00:00'",
]


@pytest.mark.parametrize("rows", [T, T.slice(0, 0), T.slice(66)], ids=["some", "none", "nulls"])
@pytest.mark.parametrize("query", QUERIES)
def test_answers(query: str, rows: pa.Table) -> None:
    assert_same_as_duckdb(query, {"t": rows}, setup=IN_UTC, backend="cpu")


@pytest.mark.parametrize("where", ["x > '1970-01-01'", "x < '2000-01-01'", "true", "isfinite(x)"])
def test_infinite_moments(where: str) -> None:
    query = f"select avg(x)::varchar, isinf(avg(x)) from t where {where}"
    assert_same_as_duckdb(query, {"t": ENDS}, backend="cpu", fuse=("never", "always"))


def test_near_quantiles() -> None:
    """Which are exact here: of one value, and the middle of three."""
    rows = T.select(["x", "z", "n", "c"]).slice(0, 1)
    query = (
        "select approx_quantile(z, 0.5), approx_quantile(c, 0.2), approx_quantile(n, 0.9) from t"
    )
    assert_same_as_duckdb(query, {"t": rows}, setup=IN_UTC, backend="cpu")


INTERVALS = """
    create table spans as select i % 7 as g, case when i % 11 then to_months(i * 37 % 50 - 20) + to_days(i * 61 % 90 - 40)
    + to_microseconds(i * 7919 % 1000003 * 1234567 - 500000000000) end as x from range(60) t(i)
"""


@pytest.mark.parametrize(
    "query",
    [
        "select g, avg(x)::varchar as a, avg(distinct x)::varchar as b, mean(x) filter (g > 3) as c from spans group by g",
        "select avg(x) as a, typeof(avg(x)) as t, (select avg(x) from spans where g > 9) as none from spans",
        "select g, avg(x) over (partition by g) as a from spans where g < 2",
        "select g, median(x)::varchar as a, median(x) filter (g > 9) as b, list_median(list(x))::varchar as c from (select i % 3 as g, to_months(i) + to_seconds(i % 7) as x from range(12) t(i)) group by g",
        "select i, median(x) over (order by x rows 3 preceding)::varchar as a from (select i, to_months(i) + to_seconds(i % 7) as x from range(9) t(i))",
        "select avg(b - a) as d from (values (timestamp '2024-01-01', timestamp '2024-01-03 10:00'), (timestamp '2024-01-01', timestamp '2024-01-02'), (null, null)) t(a, b)",
    ],
)
def test_intervals_have_means(query: str) -> None:
    assert_same_as_duckdb(query, setup=[INTERVALS], fuse=("always", "never"))
