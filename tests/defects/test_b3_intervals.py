"""B3: OverflowError for intervals that DuckDB has, and for timestamps that it has not."""

import random

import duckdb
import pyarrow as pa
import pytest

import fuseline
from tests.compare import assert_same_as_duckdb

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
    "date_diff('microsecond', timestamp '0001-01-01', make_timestamp(9223372036854775806))",
    "interval 1 day * 3000000000",
)


@pytest.mark.parametrize("expression", ANSWERED)
def test_answered_as_by_duckdb(expression):
    assert_same_as_duckdb(f"select {expression}")


@pytest.mark.parametrize("expression", REFUSED)
def test_refused_as_by_duckdb(expression):
    with fuseline.connect(device="cpu") as connection:
        with pytest.raises(duckdb.Error):
            duckdb.sql(f"select {expression}").fetchall()
        with pytest.raises((fuseline.errors.OutOfRange, fuseline.errors.ConversionError)):
            connection.sql(f"select {expression}").fetchall()


@pytest.mark.parametrize("sign", ["*", "/"])
def test_fractions_of_huge_intervals(sign):
    """DuckDB multiplies by doubles, or by their reciprocals, without rounding the product before its whole part is taken off."""
    draw = random.Random(12)

    def part(most):
        return draw.choice(
            [0, draw.randint(-40, 40), draw.randint(-(10**5), 10**5), draw.randint(-most, most)]
        )

    spans = [(part(3 * 10**5), part(3 * 10**5), 1000 * part(10**10)) for _ in range(2000)]
    factors = [
        draw.choice(
            [
                0.1,
                0.3,
                -0.7,
                999.8,
                1.5,
                draw.uniform(-3, 3),
                draw.uniform(1, 1e3),
                1e-3,
                draw.randint(1, 99999) / 100,
            ]
        )
        for _ in spans
    ]
    table = pa.table(
        {
            "i": pa.array(map(pa.MonthDayNano, spans), pa.month_day_nano_interval()),
            "f": pa.array(factors, pa.float64()),
        }
    )
    assert_same_as_duckdb(f"select (i {sign} f)::varchar as v from t", {"t": table}, ordered=True)
    assert_same_as_duckdb(f"select (interval '40000 days' {sign} 999.8)::varchar as v")
