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


@pytest.mark.parametrize("values", ["v", "v < 'b'", "v::blob", "v::enum('z', 'b', 'a')", "[k, 1]", "{'a': v}", "uuid", "to_json(k)"])  # fmt: skip
def test_the_median_of_what_has_nothing_between(values: str) -> None:
    rows = "(1, 'a', '00000000-0000-4000-8000-000000000001'::uuid), (2, 'z', null), (3, 'b', '00000000-0000-4000-8000-000000000003'), (4, null, null)"
    table = f"(select k, {values} as v from (values {rows}) t(k, v, uuid))"
    assert_same_as_duckdb(f"select median(v), k % 2 from {table} group by all", fuse=("always", "never"))  # fmt: skip
    assert_same_as_duckdb(f"select k, median(v) over (order by k) from {table} order by k")
