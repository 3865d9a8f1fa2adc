"""Dates and timestamps of many values in kernels: parts, beginnings of units and differences, as in DuckDB."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.expressions import calendar_terms as calendar
from fuseline.errors import OutOfRange
from fuseline.plan.calendar import MICROS_A_DAY, UNIT_MICROS
from tests.codegen.fused import assert_fused
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits

DAY = MICROS_A_DAY
PARTS = [*calendar.PARTS, *calendar.CLOCK]
UNITS = [*UNIT_MICROS, "week", "month", "quarter", "year"]
# Ends of units: of leap years, of centuries, of ISO years, and the moments beside 1970
DAYS = ["1582-10-15", "1600-02-29", "1899-12-31", "1900-03-01", "1969-12-31", "1970-01-01", "1999-12-31", "2000-02-29",
        "2000-12-31", "2004-12-31", "2005-01-02", "2008-12-29", "2010-01-03", "2023-07-01", "2024-02-29", "2100-03-01"]  # fmt: skip


def moments(early: str = "1582-10-15", seed: int = 3) -> dict[str, Any]:
    """Timestamps, dates and numbers with NULLs; microseconds at the ends of days."""
    days = np.array([d for d in DAYS if d >= early], "datetime64[D]").astype(np.int64)
    draw = np.random.default_rng(seed)
    days = np.concatenate([days, draw.integers(days[0], days[-1], 40)])
    within = draw.choice([0, 1, 999_999, 3_599_999_999, 43_200_000_000, DAY - 1], len(days))
    null = np.arange(len(days)) % 11 == 5
    return {
        "t": pa.table({
            "s": pa.array(days * DAY + within, pa.timestamp("us"), mask=null),
            "m": pa.array(days * DAY + within[::-1], pa.timestamp("us")),
            "d": pa.array(days.astype(np.int32), pa.date32(), mask=null),
            "n": pa.array(np.arange(len(days)) % 7 - 3),
        })
    }  # fmt: skip


@pytest.fixture(autouse=True)
def without_tables(limits: SetLimits) -> None:
    """Columns of few values are as those of many."""
    limits(LOOKUP_LIMIT=0)


@pytest.mark.parametrize("days", range(-719_162, 2_932_897, 36_525))
def test_the_calendar_is_pythons(days: int) -> None:
    for day in range(days, min(days + 36_525, 2_932_897), 61):
        found = calendar.civil(day, lambda value, _: value)
        date = datetime.date.fromordinal(day + 719_163)
        assert found == (date.year, date.month, date.day)
        assert calendar.first_day(date.year) == day - date.timetuple().tm_yday + 1


@pytest.mark.by_day(2)
@pytest.mark.parametrize("part", PARTS)
def test_parts(part: str) -> None:
    assert_fused(f"select {part}(s) as x, count(*), sum(n) from t group by 1", moments())
    assert_fused(f"select sum({part}(m)), max({part}(s)), min({part}(s)) from t", moments())


@pytest.mark.by_day(2)
@pytest.mark.parametrize("part", calendar.PARTS)
def test_parts_of_dates(part: str) -> None:
    assert_fused(f"select {part}(d) as x, count(*), sum(n) from t group by 1", moments())


COUNTS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
TYPES = {
    "s": "TIMESTAMP_S",
    "ms": "TIMESTAMP_MS",
    "us": "TIMESTAMP",
    "ns": "TIMESTAMP_NS",
    "d": "DATE",
}
CASTS = [(a, b) for a in (*COUNTS, "d") for b in TYPES if a != b and (a, b) != ("ns", "s")]


def counted(early: int) -> dict[str, Any]:
    """Halves of the next unit and what is beside them, before 1970 and after it; dates."""
    draw = np.random.default_rng(5)
    seconds = np.concatenate([[early, -1, 0, 1], draw.integers(early, 4 * 10**9, 60)])
    rest = draw.choice([0.0, 0.5, 0.4999995, 0.0005, 0.0004995, 0.0000005, 0.999999999], 64)
    null = np.arange(64) % 11 == 5
    columns = {
        unit: pa.array(seconds * ticks + (rest * ticks).astype(int), pa.timestamp(unit), mask=null)
        for unit, ticks in COUNTS.items()
    }
    days = pa.array((seconds // 86_400).astype(np.int32), pa.date32(), mask=null)
    return {"t": pa.table({**columns, "d": days, "n": np.arange(64) % 7})}


@pytest.mark.by_day(2)
@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("early", [0, -(4 * 10**9)])
def test_casts_of_moments(source: str, early: int) -> None:
    given = counted(early)
    casts = [f"{source}::{TYPES[b]}" for a, b in CASTS if a == source]
    ends = ", ".join(f"max({cast}), min({cast})" for cast in casts)
    assert_fused(f"select {ends} from t", given)
    assert_fused(f"select {casts[0]} as x, count(*), sum(n) from t group by 1", given)


@pytest.mark.parametrize("source", COUNTS)
def test_times_of_the_day(source: str) -> None:
    query = f"select {source}::TIME as x, count(*), max(hour({source}::TIME)) from t group by 1"
    assert_fused(query, counted(-(4 * 10**9)))


def test_the_end_of_the_day() -> None:
    clocks = pa.array([0, DAY, DAY - 1, None, 1], pa.time64("us"))
    query = "select max(hour(t)), min(minute(t)), max(epoch(t)), count(t) from t"
    assert_same_as_duckdb(query, {"t": pa.table({"t": clocks})}, fuse=("always", "never"))


@pytest.mark.by_day(2)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("early", ["1582-10-15", "1999-01-01"])
def test_beginnings_of_units(unit: str, early: str) -> None:
    given = moments(early)
    assert_fused(f"select max(date_trunc('{unit}', s)), min(date_trunc('{unit}', m)) from t", given)
    assert_fused(
        f"select count(*) from t where date_trunc('{unit}', s) = date_trunc('{unit}', m)", given
    )


@pytest.mark.by_day
@pytest.mark.parametrize("unit", ["hour", "day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize("column", ["s", "d"])
def test_groups_by_units_need_a_place_for_each_alone(unit: str, column: str) -> None:
    given = moments("2023-01-01" if unit == "hour" else "1899-12-31")
    query = f"select date_trunc('{unit}', {column}) as x, count(*), sum(n) as n from t group by 1"
    assert_fused(query, given)
    assert_fused(f"{query} having x > date '1990-01-01' and count(*) > 1 order by x", given)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("unit", [u for u in UNITS if u != "week"])
def test_differences(unit: str) -> None:
    query = f"select sum(date_diff('{unit}', m, s)), max(date_diff('{unit}', date '2001-05-17', s)) from t"
    assert_fused(query, moments("1899-12-31"))


@pytest.mark.parametrize("by", ["interval '36 hours'", "interval 3 day", "interval '-5 minutes'"])
def test_moved_by_intervals(by: str) -> None:
    assert_fused(f"select max(s + {by}), min(m - {by}), sum(hour(s + {by})) from t", moments())


def test_a_timestamp_as_a_date() -> None:
    assert_fused("select s::date as x, count(*), max(m::date) from t group by 1", moments())
    assert_fused(
        "select max(s::date - m::date), count(*) from t where s::date < date '1970-01-01'",
        moments(),
    )


@pytest.mark.parametrize("query", [
    "select max(date_trunc('month', s)), sum(year(s)) from e",
    "select s::date as x, count(*) from e group by 1",
    "select sum(date_diff('day', s, timestamp '2000-01-01')) from e",
])  # fmt: skip
def test_the_ends_of_time(query: str) -> None:
    """Years far from ours, and infinities, which the operators decide about."""
    years = ["0001-01-01", "0044-03-15", "9999-12-31 23:59:59.999999", "2000-01-01"]
    far = {
        "e": pa.table(
            {"s": pa.array(np.array(years, "datetime64[us]").astype(np.int64), pa.timestamp("us"))}
        )
    }
    assert_fused(query, far)
    ends = pa.array([2**63 - 1, 0, None, -(2**63) + 1], pa.timestamp("us"))
    assert outcome(query, ends, "always") == outcome(query, ends, "never")


def outcome(query: str, moments: pa.Array, fuse: str) -> Any:
    with connected({"e": pa.table({"s": moments})}, fuse=fuse) as connection:
        try:
            return sorted(connection.sql(query).fetchall(), key=str)
        except OutOfRange as error:  # DuckDB has no such date either
            return error.message


@pytest.mark.by_day
@pytest.mark.parametrize("part", ["year", "day", "hour", "microsecond"])
@pytest.mark.parametrize("value", ["v", "interval '14 months 3 days 5 hours'", "m - s"])
def test_parts_of_intervals_are_no_moments(part: str, value: str) -> None:
    spans = "(select m, s, n * interval '31 days' as v from t)"
    query = f"select count(*), sum({part}({value})), max(s) from {spans} where {part}({value}) is not null"
    assert_same_as_duckdb(query, moments(), fuse=("always", "never"))
