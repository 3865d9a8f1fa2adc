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
