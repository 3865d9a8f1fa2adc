"""TIMESTAMP WITH TIME ZONE: moments in UTC, read and shown in the session's zone, as DuckDB has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline import fn
from fuseline.errors import FuselineError
from fuseline.plan.temporal import zones
from tests.compare import assert_same_as_duckdb, connected

IN_UTC = ("set timezone = 'UTC'",)  # the zone that Arrow's columns name
ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca")
HOUR = 3_600_000_000
MOMENTS = [
    0,
    None,
    1_711_843_200 * 10**6,
    1_711_846_800 * 10**6,
    0,
    -1,
    4_102_444_800 * 10**6,
    1_730_615_400 * 10**6,
]
TABLE = pa.table({"k": range(len(MOMENTS)), "z": pa.array(MOMENTS, pa.timestamp("us", "UTC"))})
# Each half hour around the days on which clocks are changed
AROUND = [
    (datetime(2024, *day) - datetime(1970, 1, 1)) // timedelta(microseconds=1) + HOUR // 2 * step
    for day in ((3, 10), (3, 31), (4, 7), (10, 6), (10, 27), (11, 3))
    for step in range(52)
]
QUERIES = [
    "select z, k from t order by z, k",
    "select z, count(*), min(k) from t group by z",
    "select count(z), min(z), max(z), any_value(z), count(distinct z) from t",
    "select a.k, b.k from t a join t b on a.z = b.z",
    "select distinct z from t union select z from t",
    "select k from t where z > timestamptz '2000-01-01 00:00+02' or z = '1970-01-01 00:00:00+00'",
    "select coalesce(z, date '2024-01-01'), z < date '2024-01-01', z = timestamp '1970-01-01' from t",
    "select k, min(z) over (order by k rows 1 preceding) from t",
]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", QUERIES)
def test_what_queries_do_with_a_column(query: str, tmp_path: Path) -> None:
    assert_same_as_duckdb(
        query, {"t": TABLE}, setup=IN_UTC, fuse=("always" if "group" in query else "never",)
    )
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    assert_same_as_duckdb(query, {"t": path}, setup=IN_UTC, fuse=("never",))


def test_columns_of_other_units_and_zones() -> None:
    for unit, zone in (("s", "Asia/Tokyo"), ("ms", "UTC"), ("us", "+05:30")):
        table = pa.table({"z": pa.array([1_700_000_000, None], pa.timestamp(unit, zone))})
        assert_same_as_duckdb("select z, z::varchar from t", {"t": table}, setup=IN_UTC)


def _intervals(count: int) -> list[tuple[int, int, int] | None]:
    """Months, days and nanoseconds of either sign, and NULL."""
    parts = [
        (0, 1, 0),
        (1, 0, 0),
        (0, 0, 3_600 * 10**9),
        (0, -1, 0),
        (-1, 2, 5 * 10**12),
        (2, -3, 1000),
        (0, 0, 0),
    ]
    return [None if i % 11 == 0 else parts[i % len(parts)] for i in range(count)]


def test_infinite_moments_and_times() -> None:
    ends = pa.array([2**63 - 1, -(2**63 - 1), 0, None], pa.timestamp("us", "UTC"))
    clocks = pa.array([0, 86_399_999_999, 47_123_456_789, None], pa.time64("us"))
    table = {"t": pa.table({"z": ends, "c": clocks, "k": [13, 0, 23, None]})}
    for what in (
        "(z + interval '1 day')::varchar, (z - interval '1 month')::varchar",
        "isfinite(z), isinf(z), epoch_us(z), epoch_ms(z), julian(z), date_diff('hour', z, timestamptz '2024-01-01')",
        "epoch_ms(c), epoch_us(c), epoch_ns(c), timezone(c)",
        "make_time(k, k, k + 0.1234567), make_timestamp_ns(k * 1000000007), to_timestamp(k - 0.5)",
        "isfinite('infinity'::timestamp), isinf('-infinity'::date), isfinite(date '2024-01-01')",
    ):
        assert_same_as_duckdb(f"select {what} from t", table, setup=IN_UTC)
    with connected(table) as connection, pytest.raises(FuselineError, match="no time 25:0:0"):
        connection.sql("select make_time(25, 0, 0)").fetchall()


@pytest.mark.parametrize("nanos", [2**63 - 1, 1 - 2**63])
def test_no_number_makes_an_infinite_moment(nanos: int) -> None:
    assert_same_as_duckdb(f"select make_timestamp_ns({nanos - nanos // abs(nanos)})")
    with connected({}) as connection, pytest.raises(FuselineError, match="Timestamp out of range"):
        connection.sql(f"select make_timestamp_ns({nanos})").fetchall()


@pytest.mark.by_day(2)
@pytest.mark.parametrize("zone", ZONES)
def test_clocks_of_a_zone(zone: str) -> None:
    """From and to text, TIMESTAMP, DATE; parts; through each change of the clocks."""
    setup = (f"set timezone = '{zone}'",)
    table = {
        "t": pa.table(
            {
                "z": pa.array([*AROUND, None], pa.timestamp("us", "UTC")),
                "x": pa.array([*AROUND, None], pa.timestamp("us")),
                "y": pa.array([*AROUND[7:], *AROUND[:5], None, 0, -1], pa.timestamp("us", "UTC")),
                "i": pa.array(_intervals(len(AROUND) + 1), pa.month_day_nano_interval()),
            }
        )
    }
    for what in (
        "z::varchar", "z::timestamp", "z::date", "z::timestamp_s", "x::timestamptz::varchar",
        "x::varchar::timestamptz::varchar", "x::date::timestamptz::varchar",
        "hour(z), day(z), minute(z), week(z), epoch(z)", "date_trunc('day', z)::varchar",
        "date_trunc('hour', z)::varchar", "dayname(z), monthname(z), last_day(z)",
        "z < x, x = z, coalesce(z, x)::varchar", "z || ''", "z::varchar::timestamptz = z",
        "extract(year from z), date_part('minute', z)",
        "(z + interval '1 day')::varchar, (interval '36 hours' + z)::varchar, (z - interval '1 month 2 hours')::varchar",
        "(z + i)::varchar, (z - i)::varchar, (date_add(z, i))::varchar, z - y, age(z, y), z + null::interval is null",
        "date_diff('hour', z, y), date_diff('day', y, z), date_diff('minute', z, y), date_diff('month', z, y), date_diff('week', y, z)",
        "date_sub('hour', z, y), date_sub('day', y, z), date_sub('second', z, y), date_sub('month', z, y), date_diff('year', z, date '2020-01-01')",
        "timezone(z), timezone_hour(z), timezone_minute(z), timezone(x), timezone_hour(x), extract(timezone from z)",
        "epoch_ms(z), epoch_us(z), epoch_ns(z), isfinite(z), isinf(z), julian(z), strftime(z, '%d.%m.%Y %H:%M %% %Z')",
        "to_timestamp(epoch(z))::varchar, make_timestamptz(epoch_us(z))::varchar",
        "make_timestamptz(year(x), month(x), day(x), hour(x), minute(x), 1.5)::varchar",
        "make_timestamptz(year(x), month(x), day(x), hour(x), minute(x), 1.5, 'Asia/Tokyo')::varchar",
    ):  # fmt: skip
        assert_same_as_duckdb(f"select {what} from t", table, setup=setup)


@pytest.mark.parametrize("zone", [*ZONES, "GMT+2", "UTC-11", "gmt+14", "GMT-0"])
def test_at_time_zone(zone: str) -> None:
    columns = {
        "z": pa.array(AROUND, pa.timestamp("us", "UTC")),
        "x": pa.array(AROUND, pa.timestamp("us")),
        "name": [None if i % 7 == 0 else ZONES[i % len(ZONES)] for i in range(len(AROUND))],
    }
    query = (
        f"select z at time zone '{zone}', (x at time zone '{zone}')::varchar, timezone(name, z), "
        f"timezone(name, x)::varchar from t"
    )
    assert_same_as_duckdb(query, {"t": pa.table(columns)}, setup=IN_UTC)


TEXTS = [
    "2024-01-01", "2024-07-01 12:00", "2024-07-01T12:00:00Z", "2024-07-01 12:00:00.123456+02",
    "2024-07-01 12:00-03:30", "2024-07-01 12:00:00 Europe/Berlin", "2024-07-01 12:00 UTC", "2024-07-01 12:00 GMT+2", "1850-01-01 00:00:00 UTC-11", "2024-07-01 12:00 GMT2",
    "infinity", "-infinity", "epoch", "x", "", "2024-07-01 25:00", "2024-07-01 12:00 Nowhere",
    "1850-01-01", "2500-07-01 12:00", "0044-03-15 (BC) 10:00:00", " 2024-01-01 ",
]  # fmt: skip


@pytest.mark.parametrize("zone", ZONES[:3])
def test_texts(zone: str) -> None:
    setup = (f"set timezone = '{zone}'",)
    table = {"t": pa.table({"x": [*TEXTS, None]})}
    assert_same_as_duckdb(
        "select x, try_cast(x as timestamptz)::varchar from t", table, setup=setup
    )
    literals = ", ".join(f"try_cast('{text}' as timestamptz)::varchar" for text in TEXTS)
    assert_same_as_duckdb(f"select {literals}", setup=setup)


def test_refusals() -> None:
    with connected({"t": TABLE}) as connection:
        for query, said in (
            ("set timezone = 'Nowhere/Land'", "does not take 'Nowhere/Land'"),
            ("select timestamp '2024-01-01' at time zone 'Europe/Berlim'", "Europe/Berlin"),
            ("select 'x'::timestamptz", "TRY_CAST"),
            ("select z::bigint from t", "cannot be cast"),
            ("select z::time from t", "cannot be cast"),
            ("select timezone(date '2024-01-01')", "has no time zone"),
            ("select to_timestamp('inf'::double)", "range"),
            ("select make_timestamptz(1, 2)", "takes 1, 6 or 7"),
            ("select z + 1 from t", "does not take"),
        ):
            with pytest.raises(FuselineError, match=said):
                connection.execute(query)
        connection.execute("set timezone = 'europe/berlin'")
        assert connection.settings.timezone == "Europe/Berlin"


def test_a_plan_is_of_its_sessions_zone() -> None:
    with connected({"t": TABLE}) as connection:
        query = "select hour(z) from t where k = 0"
        found = []
        for zone in ("UTC", "Asia/Tokyo", "UTC"):
            connection.execute(f"set timezone = '{zone}'")
            found.append(connection.sql(query).fetchall())
        assert found == [[(0,)], [(9,)], [(0,)]]


def test_python_values() -> None:
    moment = datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    with connected() as connection:
        assert connection.execute("select ?, ?::varchar", [moment, moment]).fetchone() == (
            datetime(2024, 1, 1, 10, tzinfo=UTC),
            "2024-01-01 10:00:00+00",
        )


def test_tables() -> None:
    setup = [
        *IN_UTC,
        "create table x (z timestamp with time zone)",
        "insert into x values ('2024-01-01 00:00+02'), (timestamp '2024-01-01'), (null)",
        "create table y as select z, z::varchar v from x",
    ]
    assert_same_as_duckdb("select * from y order by z", setup=setup)


def test_frames_use_the_zone_of_their_connection() -> None:
    moment = pa.table({"z": pa.array([0], pa.timestamp("us", "UTC"))})
    with connected({"t": moment}, timezone="Asia/Kathmandu") as connection:
        frame = connection.table("t")
        hour = fn.hour(frame["z"])
        assert frame.select(hour).fetchall() == [(5,)]
        assert frame.group_by(h=hour).count().fetchall() == [(5, 1)]
        assert frame.agg(h=fn.max(hour)).fetchall() == [(5,)]
        other = frame.select(w="z")
        assert other.join(frame, on=(fn.hour(other["w"]) == 5) & (hour == 5)).count() == 1


def test_a_machine_without_zones_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zones, "zone_names", dict)
    with connected() as connection, pytest.raises(FuselineError, match="pip install tzdata"):
        connection.sql("select timezone('Europe/Nowhere', timestamp '2024-01-01')").fetchall()


@pytest.mark.parametrize("zone", ZONES)
def test_what_lies_between_two_moments(zone: str) -> None:
    """Days are over when the clocks of the earlier one say so, in whatever order they are subtracted."""
    moments = [*AROUND[::5], -(10**15), 10**15 + 1, None]
    pairs = [(a, b) for i, a in enumerate(moments) for b in moments[i % 3 :: 3]]
    table = pa.table({n: pa.array(p, pa.timestamp("us", "UTC")) for n, p in zip("ab", zip(*pairs, strict=True), strict=True)})  # fmt: skip
    setup = (f"set timezone = '{zone}'",)
    assert_same_as_duckdb("select a, b, a - b from t", {"t": table}, setup=setup, fuse=("never",))
    for infinite in ("infinity", "-infinity"):
        for text in (f"a - timestamptz '{infinite}'", f"timestamptz '{infinite}' - a"):
            with connected({"t": table}) as connection:
                connection.execute(setup[0])
                with pytest.raises(FuselineError, match="Cannot subtract infinite timestamps"):
                    connection.sql(f"select {text} from t").fetchall()
