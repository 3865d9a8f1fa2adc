"""Lists, structs and maps with a TIMESTAMP WITH TIME ZONE in them: their casts are of the session's zone, as DuckDB's."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb

START = 1_709_960_400_000_000  # 2024-03-09 05:00 UTC, the day before clocks change in New York
HOUR = 3_600_000_000
MOMENT = pa.timestamp("us", "UTC")
LISTS = [[START + i * 17 * HOUR, None, START] if i % 4 else None for i in range(9)]
STRUCTS = [{"a": START + i * HOUR, "b": i} if i % 5 else None for i in range(9)]
TABLE = pa.table(
    {
        "k": range(9),
        "l": pa.array([*LISTS[:-1], []], pa.list_(MOMENT)),
        "s": pa.array(STRUCTS, pa.struct({"a": MOMENT, "b": pa.int32()})),
    }
)
CASTS = [
    "l::varchar, s::varchar, [l, null]::varchar, {'q': l}::varchar, (k, l)::varchar, map {k: s}::varchar",
    "l::varchar[], l::date[], l::timestamp[], [l]::varchar[][], try_cast([l] as date[][])",
    "s::struct(a date, b varchar), s::struct(b integer, a timestamp, c date), [s]::struct(a varchar)[]",
    "(map {k: s.a})::map(varchar, date), {'a': s.a}::map(varchar, varchar), [s.a, s.a]::date[2]",
    "to_json(l), to_json(s), l::json, {'a': [s]}::json, json_object('k', l), json_array(s, l), to_json(map {'x': l})",
    "format('{}', s), array_to_string(l, '|'), list_transform(l, lambda x: [x]::varchar)",
    "('[2024-01-01, 2024-07-01 12:00]'::timestamptz[])::timestamp[], ([date '2024-07-01', null]::timestamptz[])::varchar",
    "(try_cast(['x', '2024-01-01'] as timestamptz[]))::varchar, ({'a': '2024-01-01'}::struct(a timestamptz))::varchar",
    "[]::timestamptz[]::varchar, [null]::timestamptz[]::varchar, null::timestamptz[]::varchar",
]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
@pytest.mark.parametrize("casts", CASTS)
def test_casts_are_of_the_zone(casts: str, zone: str) -> None:
    query = f"select k, {casts} from t order by k"
    assert_same_as_duckdb(query, {"t": TABLE}, setup=(f"set timezone = '{zone}'",))


@pytest.mark.parametrize("rows", [0, 1, 9, 45_000])
def test_keys_and_filters_of_such_texts(rows: int) -> None:
    table = TABLE.take(pa.array([i % 9 for i in range(rows)], pa.int64()))
    setup = ("set timezone = 'America/New_York'",)
    for query in (
        "select l::varchar as x, count(*), min(s::varchar) from t group by l::varchar",
        "select k, count(*) from t where l::varchar like '%-10 %' or s::varchar like '%b%3%' group by k",
    ):
        assert_same_as_duckdb(query, {"t": table}, setup=setup, fuse=("always", "never"))


STEPS = ("1 day", "24 hours", "1 day 1 hour", "-1 day -2 hours", "1 month", "-1 month -2 days -1 hour", "1 month 2 days 1 hour")  # fmt: skip
# Between which clocks are changed, and shown twice
BOUNDS = (
    ("2024-03-08 02:30", "2024-03-13"),
    ("2024-10-25 01:30", "2024-11-06 01:30"),
    ("2024-09-03 01:30", "2025-01-05"),
    ("2025-01-03 01:30", "2024-09-01"),
    ("2024-11-06 01:30", "2024-10-25"),
    ("2024-01-01", "2024-01-01"),
)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("step", STEPS)
def test_series_go_by_the_clocks_of_the_zone(step: str, zone: str) -> None:
    ends = ", ".join(
        f"range({a}, {b}, interval '{step}')::varchar, generate_series({a}, {b}, interval '{step}')::varchar"
        for a, b in ((f"timestamptz '{a}'", f"timestamptz '{b}'") for a, b in BOUNDS)
    )
    assert_same_as_duckdb(f"select {ends}", setup=(f"set timezone = '{zone}'",))


def test_bounds_and_steps_of_series_may_be_columns() -> None:
    rows = "(timestamptz '2024-03-08 02:30', interval 1 day), (null, interval 1 day), (timestamptz '2024-01-31', interval 1 month), (timestamptz '2024-03-09', interval 7 hours)"
    query = f"select x, range(x, timestamptz '2024-03-12', s)::varchar from (values {rows}) v(x, s) order by x"
    setup = ("set timezone = 'America/New_York'",)
    assert_same_as_duckdb(query, setup=setup)
    source = "generate_series(timestamptz '2024-03-09', timestamptz '2024-03-12', interval 1 day)"
    assert_same_as_duckdb(f"select x::varchar from {source} t(x) order by x", setup=setup)
