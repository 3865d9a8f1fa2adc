"""Aggregates of sorted values."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb

EPOCH = datetime(1970, 1, 1)


@pytest.mark.parametrize("low", [-3, -2, -1, 0, 1])
def test_a_median_between_two_microseconds(low: int) -> None:
    """Halves go up, on either side of 1970 and at it."""
    moments = [EPOCH + timedelta(microseconds=low + i) for i in range(2)]
    assert_same_as_duckdb("select median(m) from t", {"t": pa.table({"m": pa.array(moments)})})
