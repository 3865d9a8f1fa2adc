"""Small tables with NULLs, repeated keys and no rows, for the tests of SQL."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

T = pa.table({
    "x": pa.array([1, 2, None, 2, 4], pa.int32()),
    "y": pa.array([10, 20, 30, 5, None], pa.int32()),
    "s": pa.array(["a", "b", None, "c", "a"]),
    "d": pa.array([date(2024, 1, 31), date(2023, 5, 1), None, date(2024, 2, 29), date(1999, 12, 31)]),
})  # fmt: skip
U = pa.table(
    {
        "x": pa.array([1, 2, 3, None, 2], pa.int32()),
        "z": pa.array([100, 200, 300, 400, 250], pa.int64()),
        "p": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal("0.00"), Decimal("9.99")]),
    }
)
TABLES: dict[str, Any] = {"t": T, "u": U, "empty": T.slice(0, 0)}
