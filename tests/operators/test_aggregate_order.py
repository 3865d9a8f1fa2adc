"""Aggregates of sorted values."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb

EPOCH = datetime(1970, 1, 1)


@pytest.mark.parametrize("kind", ["double", "float"])
@pytest.mark.parametrize(
    "values",
    ["'-inf', '1'", "'inf', '1'", "'-inf', '-inf'", "'-inf', 'inf'", "1e30, -1e30", "'nan', '-1'"],
)
def test_a_quantile_beside_infinity(kind: str, values: str) -> None:
    query = (
        f"select median(x), quantile_cont(x, 0.25) from (select unnest([{values}]::{kind}[]) as x)"
    )
    assert_same_as_duckdb(query, backend="cpu")


def test_a_median_of_doubles_far_apart() -> None:
    assert_same_as_duckdb("select median(x) from (values (1e308::double), (-1e308)) v(x)")


@pytest.mark.parametrize("low", [-3, -2, -1, 0, 1])
def test_a_median_between_two_microseconds(low: int) -> None:
    """Halves go up, on either side of 1970 and at it."""
    moments = [EPOCH + timedelta(microseconds=low + i) for i in range(2)]
    assert_same_as_duckdb("select median(m) from t", {"t": pa.table({"m": pa.array(moments)})})
