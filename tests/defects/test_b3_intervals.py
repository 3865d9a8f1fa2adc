"""B3: OverflowError for intervals that DuckDB has, and for timestamps that it has not."""

import duckdb
import pytest

import fuseline

ANSWERED = (
    "(interval '3000000 hours')::varchar",
    "timestamp '2024-01-01' + interval '3000000 hours'",
    "epoch(interval '9223372036854775807 microseconds')",
    "interval '3000000 hours' > interval '100 years'",
    "(interval '2147483647 days' + interval 1 hour)::varchar",
    "date '9999-12-31' + 1",
)
REFUSED = (
    "interval '3000000000 months'",
    "interval 2147483647 years",
    "interval (2562047789) hours",
    "date '2024-01-01' + interval '9223372036854775807 microseconds'",
    "make_timestamp(9223372036854775807)",
    "date_sub('hour', date '0001-12-31 (BC)', date '294247-01-10')",
    "date_diff('microsecond', timestamp '0001-01-01', make_timestamp(9223372036854775806))",
    "make_timestamp(-9223372022400000000) - timestamp '2024-01-01'",
    "interval 1 day * 3000000000",
)


@pytest.mark.parametrize("expression", ANSWERED)
def test_answered_as_by_duckdb(expression):
    with fuseline.connect(device="cpu") as connection:
        query = f"select {expression}"
        assert connection.sql(query).fetchall() == duckdb.sql(query).fetchall()


@pytest.mark.parametrize("expression", REFUSED)
def test_refused_as_by_duckdb(expression):
    with fuseline.connect(device="cpu") as connection:
        with pytest.raises(duckdb.Error):
            duckdb.sql(f"select {expression}").fetchall()
        with pytest.raises((fuseline.errors.OutOfRange, fuseline.errors.ConversionError)):
            connection.sql(f"select {expression}").fetchall()
