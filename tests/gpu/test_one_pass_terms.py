"""Sums and products in one pass: of decimals and integers of all widths, where nothing overflows, and step by step where something may."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu
ROWS = 3000
QUERIES = (
    "select n, p * (1 - d) * (1 + d) as x, p * (1 - d) as y, -3 + p * 2 - d as z from t order by n",
    "select n, a + b * 2 as x, a - (b - (n - (a + 1))) as y, (a + n) * (b - 7) * 3 as z from t order by n",
    "select n, i + 1 + s as x, s * s + s as y, a + 1 + i as z from t order by n",
    "select n, p * d + missing as x, missing * 2 + 1 as y from t order by n",
    "select n, p + d + a as x from t where p * (1 - d) + 3 > 100 order by n",
    "select n, w + w * 0 + p as x, big - 1 - n as y from t order by n",
    "select n, p * (1 - d) * (1 + d) as x from t order by p * (1 - d) * (1 + d) desc, n limit 7",
    "select case when a > 0 then big + a - a else a + 1 + n end as x, n from t where a < 0 order by n",
)


def table(rows: int) -> pa.Table:
    n = range(rows)
    prices = [Decimal(i * 7919 % 1_000_003 - 500).scaleb(-2) for i in n]
    return pa.table(
        {
            "n": pa.array(list(n), pa.int64()),
            "p": pa.array(prices, pa.decimal128(15, 2)),
            "d": pa.array([Decimal(i % 11).scaleb(-2) for i in n], pa.decimal128(15, 2)),
            "a": pa.array([i * 31 % 1009 - 500 for i in n], pa.int32()),
            "b": pa.array([i * 37 % 997 for i in n], pa.int64()),
            "i": pa.array([i % 100 - 50 for i in n], pa.int8()),
            "s": pa.array([i % 150 - 70 for i in n], pa.int16()),
            "w": pa.array([Decimal(i).scaleb(20) for i in n], pa.decimal128(38, 2)),
            "big": pa.array([2**63 - 1 - i for i in n], pa.int64()),
            "missing": pa.array([None if i % 3 else i for i in n], pa.int32()),
        }
    )


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("rows", [ROWS, 1])
def test_terms(query: str, rows: int, limits: SetLimits) -> None:
    limits(ONE_PASS_ROWS=1)
    assert_same_as_duckdb(query, {"t": table(rows)}, backend="gpu", fuse=("always", "never"))
