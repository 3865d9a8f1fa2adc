"""Values of results in Python: nested ones, and what lies beyond Python's dates and times."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest

import fuseline
from fuseline.frame.python_values import MANY, python_values


@pytest.mark.parametrize(
    "query",
    [
        "select t, [t], {'a': t} from (values ('infinity'::timestamp_ns), ('-infinity'), ('2024-01-01'), (null)) v(t)",
        "select [date '20000-01-01', date 'infinity', null], {'a': timestamp '20000-01-01'}, map {1: date '-infinity'}",
        "select [{'a': [date '20000-01-01']}, null], [time '24:00:00'], time '24:00:00', {'t': time '10:00'}",
        "select t from (values (time '24:00:00'), (null), (time '10:00')) x(t)",
        "select map {[1, 2]: 'a', [3]: 'b'}, map {{'a': 1}: 2}, [map {1: 'a'}], [map {[1]: [2]}], {'m': map {'k': 1}}",
        "select x from (values (map {1: 2}), (null), (map {})) t(x)",
        "select x from (values ([1, null]), (null), ([])) t(x)",
        "select x from (values (array_value(1, 2)), (null)) t(x)",
        "select x from (values ({'a': 1}), (null), ({'a': null})) t(x)",
        "select [row(1, 2)], {'a': row(1, array_value(1, 2))}, [interval '1 month'], [1::hugeint], ['a'::enum('a')]",
        "select x from (values ({'a': 1})) t(x) where false",
    ],
)
def test_they_are_those_of_duckdb(query: str) -> None:
    assert fuseline.connect(device="cpu").execute(query).fetchall() == duckdb.sql(query).fetchall()


def test_parts_of_columns() -> None:
    """Whose children begin before them."""
    pairs = pa.array([[(1, "a")], None, [], [(2, "b")]], pa.map_(pa.int64(), pa.string()))
    column = pa.chunked_array([pairs[1:3], pairs[3:]])
    assert python_values(column) == [None, {}, {2: "b"}]
    rows = pa.array([{"a": [1]}, {"a": [2, 3]}, None])
    assert python_values(pa.chunked_array([rows[1:]])) == [{"a": [2, 3]}, None]


MOMENTS = [
    (pa.date32(), -719_162, 2_932_896, "day"),
    (pa.timestamp("us"), -62_135_596_800_000_000, 253_402_300_799_999_999, "micros"),
    (pa.timestamp("ms"), -62_135_596_800_000, 253_402_300_799_999, "millis"),
    (pa.timestamp("s"), -62_135_596_800, 253_402_300_799, "seconds"),
    (pa.timestamp("us", "UTC"), -62_135_596_800_000_000, 253_402_300_799_999_999, "zone"),
    (pa.timestamp("us", "Asia/Tokyo"), 0, 10**15, "another zone"),
    (pa.time64("us"), 0, 86_399_999_999, "clock"),
]


@pytest.mark.parametrize(
    ("kind", "low", "high"), [m[:3] for m in MOMENTS], ids=[m[3] for m in MOMENTS]
)
@pytest.mark.parametrize("nulls", [0, 2, 1])
def test_many_moments_are_those_that_arrow_gives(
    kind: pa.DataType, low: int, high: int, nulls: int
) -> None:
    draw = random.Random(7)
    counts: list[int | None] = [low, high, *(draw.randint(low, high) for _ in range(MANY))]
    counts = [None if nulls and i % nulls == 0 else n for i, n in enumerate(counts)]
    width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    array = pa.array(counts, width).view(kind)
    column = pa.chunked_array([array[:5], array[5:5], array[5:]])
    assert python_values(column) == column.to_pylist()
    assert [type(v) for v in python_values(column)] == [type(v) for v in column.to_pylist()]


@pytest.mark.parametrize(
    "beyond",
    [
        "date 'infinity'",
        "date '20000-01-01'",
        "timestamp '-infinity'",
        "time '24:00:00'",
        "timestamptz 'infinity'",
    ],
)
def test_many_moments_with_one_beyond_python(beyond: str) -> None:
    kind = beyond.split(maxsplit=1)[0]
    some = {"date": "'2024-01-01'", "time": "'10:00'"}.get(kind, "'2024-01-01 10:00'")
    query = f"select case when i = 70 then {beyond} when i % 9 = 0 then null else {kind} {some} end as t from range(100) r(i) order by i"
    with fuseline.connect(device="cpu") as here, duckdb.connect() as there:
        there.execute("set timezone = 'UTC'")
        assert here.execute(query).fetchall() == there.execute(query).fetchall()
