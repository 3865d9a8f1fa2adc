"""Distinct rows by a place for each combination of keys, and interpolated quantiles of few groups on the host."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu
ROWS = 4000
QUERIES = (
    "select k, count(distinct a) as n, count(distinct b) as m, count(distinct s) as o from t group by k order by k",
    "select count(distinct a) as n, sum(distinct a) as x, count(distinct (a, b)) as m from t",
    "select count(distinct d) as n, count(distinct q) as m, count(distinct f) as o from t",
    "select a, b from t except select b, a from t order by all",
    "select a from t intersect select b from t order by all",
    "select count(distinct e) as n, count(distinct g) as m from t",
    "select distinct on (k) k, n from t order by k, n",
    "select k, string_agg(distinct s, ',' order by s) as x from t group by k order by k",
    "select k, median(q) as x, quantile_cont(d, 0.3) as y, quantile_cont(f, [0.1, 0.9]) as z, median(a) as v from t group by k order by k",
    "select median(q) as x, quantile_cont(m, 0.7) as y, quantile_disc(s, 0.4) as z, quantile_disc(a, 0) as v, mode(b) as w from t",
    "select g, median(e) as x, quantile_disc(e, 0.5) as y, mode(e) as z from t group by g order by g",
    "select median(q) as x from t where a > 1000",
    "select g, median(h) as x, quantile_cont(h, [0, 0.25, 1]) as y, quantile_disc(h, 0.6) as z from t group by g order by g",
    "select k, g, percentile_disc(0.3) within group (order by d desc) as x, quantile_disc(c, 0.5) as y, median(h) as z from t group by k, g order by k, g",
)


def table() -> pa.Table:
    """Narrow and wide integers, a constant, NULLs, a column of NULLs, extremes that take all 64 bits."""
    n = range(ROWS)
    return pa.table(
        {
            "n": list(n),
            "k": pa.array([None if i % 11 == 0 else i % 7 for i in n], pa.int8()),
            "a": pa.array([None if i % 13 == 0 else i * i % 97 for i in n], pa.int32()),
            "b": pa.array([i * 31 % 89 - 40 for i in n], pa.int64()),
            "s": [None if i % 17 == 0 else f"text {i % 23}" for i in n],
            "d": pa.array([i % 365 for i in n], pa.int32()).cast(pa.date32()).cast(pa.timestamp("us")),
            "m": pa.array([i * 7919 % 1000 for i in n], pa.int64()).cast(pa.timestamp("us")),
            "q": pa.array([None if i % 7 == 3 else i * 37 % 1009 for i in n], pa.decimal128(15, 2)),
            "f": pa.array([i % 50 / 4 for i in n], pa.float64()),
            "e": pa.array([None if i % 5 == 2 or i % 3 == 0 else (-(2**63), 2**63 - 1, 0)[i % 3] for i in n], pa.int64()),
            "g": pa.array([i % 3 for i in n], pa.int64()),
            "h": pa.array([None if i % 3 == 0 else i * 7919 % 400 - 200 for i in n], pa.decimal128(9, 1)),
            "c": pa.array([i * 13 % 700 for i in n], pa.int32()).cast(pa.date32()),
        }
    )  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(("least", "few"), [(1, 100), (1 << 17, 5)])
def test_equal_rows(query: str, least: int, few: int, limits: SetLimits) -> None:
    limits(packed_keys__LEAST_ROWS=least, few_rows__MOST_ROWS=few)
    assert_same_as_duckdb(query, {"t": table()}, backend="gpu", fuse=("always", "never"))
