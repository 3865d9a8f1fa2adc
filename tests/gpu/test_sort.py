"""The first rows of an order whose first keys many rows share."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu
ROWS = 20_000
ORDERS = (
    "one, n",
    "one desc, few, n desc",
    "few desc, one, n",
    "few, many desc, n",
    "one, text, n",
    "text desc, n",
    "one, few, part nulls first, n",
    "one, wide desc, n",
    "real, one, n desc",
)


def table() -> pa.Table:
    n = range(ROWS)
    return pa.table(
        {
            "n": list(n),
            "one": pa.array([1] * ROWS, pa.int64()),
            "few": pa.array([i * 7 % 5 for i in n], pa.int32()),
            "many": pa.array([i * 7919 % ROWS for i in n], pa.int64()),
            "part": pa.array([None if i % 3 == 0 else i % 50 for i in n], pa.int32()),
            "text": [f"the same beginning {i % 300}" for i in n],
            "wide": pa.array([i % 90 * 10**30 for i in n], pa.decimal128(38, 0)),
            "real": [float("nan") if i % 4 == 0 else i % 3 - 1.0 for i in n],
        }
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rows", ["limit 7", "limit 3 offset 40", "limit 0 offset 9"])
def test_the_next_key_decides_among_equal_ones(order: str, rows: str, limits: SetLimits) -> None:
    limits(TOP_K_ROWS=10, to_host__MOST_BYTES=-1, few_rows__MOST_ROWS=1)
    query = f"select n, one, few, text from t order by {order} {rows}"
    assert_same_as_duckdb(query, {"t": table()}, backend="gpu", fuse=("always", "never"))
