"""count(DISTINCT) by bits for each group and value: of NULLs, negative numbers, dates, texts of few values, and beside other aggregates."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu
ROWS = 4000
QUERIES = (
    "select count(distinct a) as n, count(distinct d) as m, count(distinct s) as o, count(distinct q) as p from t",
    "select k, count(distinct a) as n, count(distinct d) as m, count(distinct s) as o from t group by k order by k",
    "select k, s, count(distinct a) as n, count(a) as m, sum(q) as x, min(a) as y from t group by k, s order by k, s",
    "select k, count(distinct a) filter (where b > 0) as n, count(distinct nothing) as m from t group by k order by k",
    "select k, count(distinct a) as n, sum(distinct a) as x, count(distinct f) as m, count(distinct w) as o from t group by k order by k",
    "select k, count(distinct a + b) as n, count(distinct (a, b)) as m from t group by k order by k",
    "select b, count(distinct k) as n from t group by b having count(distinct k) > 1 order by b",
    "select count(distinct a) as n, count(distinct s) as m from t where b > 1000",
)


def table(rows: int) -> pa.Table:
    """Keys and values with and without NULL, of a range of 1,024 and more, of all 64 bits, and of NULL alone."""
    n = range(rows)
    return pa.table(
        {
            "k": pa.array([None if i % 11 == 0 else i % 7 - 3 for i in n], pa.int8()),
            "a": pa.array([None if i % 13 == 0 else i * i % 2097 - 50 for i in n], pa.int32()),
            "b": pa.array([i * 31 % 89 - 40 for i in n], pa.int64()),
            "s": [None if i % 17 == 0 else f"text {i % 23}" for i in n],
            "d": pa.array([i % 365 - 100 for i in n], pa.int32()).cast(pa.date32()),
            "q": pa.array([None if i % 7 == 3 else i * 37 % 1009 for i in n], pa.decimal128(15, 2)),
            "f": pa.array([(0.0, -0.0, float("nan"), 1.5)[i % 4] for i in n], pa.float64()),
            "w": pa.array([(-(2**63), 2**63 - 1, 0)[i % 3] for i in n], pa.int64()),
            "nothing": pa.array([None] * rows, pa.int32()),
        }
    )  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("rows", [ROWS, 1])
def test_different_values(query: str, rows: int, limits: SetLimits) -> None:
    limits(packed_keys__LEAST_ROWS=1, few_rows__MOST_ROWS=0, BITS_A_ROW=1 << 16)
    assert_same_as_duckdb(query, {"t": table(rows)}, backend="gpu", fuse=("always", "never"))
