"""Extremes of decimals over frames, of those that are integers of 64 bits and of those that are not."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb

ROWS = 120
SMALL = [None if n % 7 == 3 else Decimal(n * n % 101 - 50) / 4 for n in range(ROWS)]
EDGE = [Decimal(v) / 100 for v in (2**63 - 1, -(2**63), 0)]
COLUMNS = {
    "small": SMALL,
    "edges": [*EDGE, None, *SMALL[4:]],
    "beyond": [*SMALL[1:], Decimal(2**63) / 100],
    "below": [Decimal(-(2**63) - 1) / 100, *SMALL[1:]],
    "none": [None] * ROWS,
}
TABLE = pa.table(
    {
        "i": range(ROWS),
        "p": [n % 3 for n in range(ROWS)],
        **{name: pa.array(each, pa.decimal128(38, 2)) for name, each in COLUMNS.items()},
    }
)


@pytest.mark.parametrize("column", COLUMNS)
def test_extremes(column: str, backend: str) -> None:
    query = f"""
        select i, max({column}) over (partition by p order by i) as a, min({column}) over (partition by p order by i) as b,
            max({column}) over (order by i rows between 3 preceding and 2 following exclude current row) as c,
            min({column}) over (partition by p order by i rows between 9 following and 12 following) as d,
            max({column}) filter (where i % 2 = 0) over (partition by p) as e
        from t"""
    assert_same_as_duckdb(query, {"t": TABLE}, backend=backend)
    assert_same_as_duckdb(query, {"t": TABLE.slice(0, 0)}, backend=backend)
