"""Ages and buckets of time, against DuckDB."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.compare import assert_same_as_duckdb

MOMENTS = [None, *(datetime(1968, 1, 31, 23, 59, 59, 5) + timedelta(days=61.37 * n) for n in range(400))]  # fmt: skip
TABLE = {"t": {"x": MOMENTS, "y": [*MOMENTS[7:], *MOMENTS[:7]]}}
WIDTHS = ("1 month", "5 months", "2 years", "1 week", "7 days 3 hours", "11 minutes")


@pytest.mark.parametrize("width", WIDTHS)
def test_buckets(width: str, backend: str) -> None:
    calls = "time_bucket(w, x), time_bucket(w, x::date), time_bucket(w, x, y), time_bucket(w, x, interval 2 days)"
    query = f"select {calls} from (select *, interval '{width}' as w from t) order by all"
    assert_same_as_duckdb(query, TABLE, backend=backend)


def test_ages(backend: str) -> None:
    query = "select x, y, age(x, y), age(y, x), julian(x), era(x), epoch_ns(y) from t order by all"
    assert_same_as_duckdb(query, TABLE, backend=backend)


@pytest.mark.parametrize("column", ["X", "x"])
def test_an_origin_may_be_a_column(column: str) -> None:
    assert_same_as_duckdb(f"select time_bucket(interval 3 days, y, {column}) as b from t", TABLE)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("width", ["6 hours", "2 days", "1 month", "3 years"])
def test_moments_have_the_buckets_of_utc_or_of_a_zone(width: str, zone: str) -> None:
    query = f"""select time_bucket(w, z), time_bucket(w, z, interval 2 hours), time_bucket(w, z, z - interval 3 days),
        time_bucket(w, z, 'Europe/Berlin') from (select x::timestamptz as z, interval '{width}' as w from t) order by all"""
    assert_same_as_duckdb(query, TABLE, setup=[f"set timezone = '{zone}'"])
