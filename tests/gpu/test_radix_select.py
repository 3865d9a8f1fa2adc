"""Quantiles of groups by counting digits: of constants, few and many values, wide numbers, NULLs, and with few counters."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu
ROWS = 5000
QUERIES = (
    "select median(a) as x, quantile_cont(a, [0, 0.01, 0.5, 0.99, 1]) as y, quantile_disc(a, 0.3) as z from t",
    "select k, median(q) as x, quantile_cont(w, 0.9) as y, quantile_disc(a, 0.95) as z from t group by k order by k",
    "select k, median(one) as x, quantile_disc(two, 0.5) as y, median(nothing) as z from t group by k order by k",
    "select k, s, median(a) as x, quantile_cont(d, 0.3) as y, count(*) as n from t group by k, s order by k, s",
    "select m, median(a) as x, quantile_disc(w, 0.2) as y from t group by m order by m",
    "select k, percentile_disc(0.3) within group (order by a desc) as x, percentile_disc(0.3) within group (order by a) as y from t group by k order by k",
    "select k, median(a) filter (where two = 1) as x, median(abs(a - 10)) as y from t group by k order by k",
    "select median(a) as x, quantile_disc(q, 0.5) as y from t where two > 5",
)


def table(rows: int) -> pa.Table:
    n = range(rows)
    return pa.table(
        {
            "k": pa.array([None if i % 11 == 0 else i % 7 - 3 for i in n], pa.int8()),
            "m": pa.array([i * 7919 % 401 for i in n], pa.int32()),
            "s": [None if i % 17 == 0 else f"text {i % 5}" for i in n],
            "a": pa.array([None if i % 13 == 0 or i % 7 == 2 else i * i % 2097 - 50 for i in n], pa.int32()),
            "w": pa.array([(i * 0x5DEECE66D + 11) * 31337 % (1 << 61) - (1 << 60) for i in n], pa.int64()),
            "q": pa.array([None if i % 7 == 3 else i * 37 % 1009 - 500 for i in n], pa.decimal128(15, 2)),
            "d": pa.array([i % 365 - 100 for i in n], pa.int32()).cast(pa.date32()),
            "one": pa.array([7] * rows, pa.int64()),
            "two": pa.array([i % 2 for i in n], pa.int16()),
            "nothing": pa.array([None] * rows, pa.int32()),
        }
    )  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(("rows", "counters"), [(ROWS, 1 << 18), (ROWS, 1 << 14), (1, 1 << 18)])
def test_quantiles(query: str, rows: int, counters: int, limits: SetLimits) -> None:
    limits(packed_keys__LEAST_ROWS=1, COUNTERS=counters)
    assert_same_as_duckdb(query, {"t": table(rows)}, backend="gpu", fuse=("always", "never"))
