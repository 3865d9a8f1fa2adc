"""What constants are in registers and columns, on every backend."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from fuseline.plan.expr import Interval, Value, physical
from fuseline.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    TIMESTAMP,
    VARCHAR,
    DataType,
    decimal,
)

LONG = 12345678901234567890123456789012345678


@pytest.mark.parametrize(
    ("value", "data_type", "expected"),
    [
        (None, BIGINT, None),
        (True, BOOLEAN, True),
        (7, BIGINT, 7),
        (7, DOUBLE, 7.0),
        (Decimal("0.25"), DOUBLE, 0.25),
        (7, decimal(5, 2), 700),
        (Decimal("-1.5"), decimal(5, 2), -150),
        (Decimal(LONG), decimal(38, 0), LONG),  # beyond the 28 digits of Python's own context
        (date(1969, 12, 31), DATE, -1),
        (date(1970, 1, 2), TIMESTAMP, 86_400_000_000),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999), TIMESTAMP, -1),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999), TIMESTAMP, 253_402_300_799_999_999),
        ("x", VARCHAR, "x"),
        (Interval(1, 2, 3), INTERVAL, Interval(1, 2, 3)),
    ],
)
def test_physical(value: Value, data_type: DataType, expected: Value) -> None:
    found = physical(value, data_type)
    assert (found, type(found)) == (expected, type(expected))
