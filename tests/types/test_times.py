"""TIME, and timestamps of seconds, milliseconds and nanoseconds, as DuckDB has them."""

from __future__ import annotations

from datetime import datetime, time
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb, connected, run_duckdb

COUNTS = [0, 1, 5_999, 43_200_000, None, 1, 86_399_999]
TABLE = pa.table(
    {
        "k": range(len(COUNTS)),
        "t": pa.array([None if c is None else c * 1000 for c in COUNTS], pa.time64("us")),
        "t32": pa.array(COUNTS, pa.time32("ms")),
        "s": pa.array([None if c is None else c - 7_200 for c in COUNTS], pa.timestamp("s")),
        "ms": pa.array([None if c is None else c - 7_500 for c in COUNTS], pa.timestamp("ms")),
        "us": pa.array([None if c is None else c - 500_001 for c in COUNTS], pa.timestamp("us")),
        "ns": pa.array([None if c is None else c - 1_500 for c in COUNTS], pa.timestamp("ns")),
        "d": pa.array([None if c is None else c % 20_000 for c in COUNTS], pa.int32()).cast(
            pa.date32()
        ),
    }
)
COLUMNS = ("t", "t32", "s", "ms", "us", "ns")
FUSE = ("always", "never")
QUERIES = [
    "select {c}, k from t order by {c}, k",
    "select {c}, k from t order by {c} desc nulls first, k",
    "select {c}, count(*), min(k) from t group by {c}",
    "select distinct {c} from t",
    "select count({c}), min({c}), max({c}), any_value({c}), count(distinct {c}) from t",
    "select k, min({c}) over (order by k rows 1 preceding) from t",
    "select a.k, b.k from t a join t b on a.{c} = b.{c}",
    "select k from t where {c} in (select {c} from t where k < 3)",
    "select {c} from t where k < 4 union select {c} from t",
    "select {c} from t except select {c} from t where k < 2",
    "select {c}::varchar, try_cast({c}::varchar as {type}) from t",
    "select k from t where {c} > (select min({c}) from t)",
    "select coalesce({c}, (select max({c}) from t)), {c} is null from t",
    "select arg_max(k, {c}), first({c} order by k), mode({c}), quantile_disc({c}, 0.5) from t",
    "select hour({c}), minute({c}), second({c}), millisecond({c}), microsecond({c}), epoch({c}) from t",
    "select {c} + interval '25 hours', {c} - interval '90 seconds' from t",
]
TYPES = {
    "t": "TIME", "t32": "TIME", "s": "TIMESTAMP_S", "ms": "TIMESTAMP_MS", "us": "TIMESTAMP",
    "ns": "TIMESTAMP_NS", "d": "DATE",
}  # fmt: skip


@pytest.mark.parametrize("column", COLUMNS)
def test_what_queries_do_with_a_column(column: str) -> None:
    for query in QUERIES:
        text = query.format(c=column, type=TYPES[column])
        assert_same_as_duckdb(text, {"t": TABLE}, fuse=FUSE if column == "ms" else ("never",))


@pytest.mark.parametrize(
    "query",
    [
        "select k, epoch_ns(ns), epoch_us(ns), nanosecond(ns), strftime(ns, '%f|%n%%n|%H'), date_part(['second', 'microsecond'], ns) from t",
        "select k, interval 1 month + ns, ns - interval 1 day, date_add(ns, interval (k) hour), typeof(ns - interval 1 hour), strftime('%n', ns) from t",
        "select k, hour(x), second(x), x + interval 1 hour from (select k, ns - interval '0.0000005 seconds' x from t)",
        "select x + interval 1 day, strftime(x, '%n'), nanosecond(x) from (select timestamp_ns 'infinity' x)",
    ],
)
def test_nanoseconds_are_kept(query: str) -> None:
    assert_same_as_duckdb(query, {"t": TABLE}, fuse=("always", "never"))


@pytest.mark.parametrize("column", COLUMNS)
def test_parquet(column: str, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, row_group_size=3)
    for query in QUERIES[:5]:
        text = query.format(c=column, type=TYPES[column])
        assert_same_as_duckdb(text, {"t": path})
    where = f"select k from t where {column} >= (select max({column}) from t)"
    assert_same_as_duckdb(where, {"t": path}, fuse=FUSE)


def same_or_refused(query: str, tables: dict[str, Any]) -> bool:
    """Whether DuckDB has an answer, which then is ours too; what it refuses we refuse."""
    try:
        run_duckdb(
            query, tables, setup=["set threads = 1"]
        )  # a database of its own: some casts end it
    except Exception:
        with connected(tables) as connection, pytest.raises(FuselineError):
            connection.sql(query).to_arrow()
        return False
    assert_same_as_duckdb(query, tables)
    return True


@pytest.mark.parametrize("source", [*COLUMNS, "d"])
def test_casts(source: str) -> None:
    """To each other type of time, and to those that have no such cast."""
    others = ("BIGINT", "DOUBLE", "BOOLEAN", "INTERVAL", "DECIMAL(9,2)")
    found = [
        same_or_refused(f"select k, cast({source} as {to}) from t order by k", {"t": TABLE})
        for to in (*dict.fromkeys(TYPES.values()), *others)
    ]
    assert 1 <= sum(found) <= len(TYPES)


def test_comparisons_and_shared_types() -> None:
    columns = ("t", "s", "ms", "us", "ns", "d")
    for left, right in product(columns, columns):
        if left != right and "t" in (left, right):
            continue
        text = f"select a.k from t a, t b where a.{left} <= b.{right} and a.k < 3 and b.k < 3"
        assert_same_as_duckdb(text, {"t": TABLE})
        assert_same_as_duckdb(
            f"select {left} x from t union all select {right} from t", {"t": TABLE}
        )
        assert_same_as_duckdb(f"select k, coalesce({left}, {right}) from t", {"t": TABLE})


@pytest.mark.parametrize(
    "text",
    [
        "12:34", "1:2:3", "12:34:56.7891239", " 12:34:56 ", "24:00:00", "24:00:01", "12", "", "12:60",
        "2024-02-29 12:34:56.7", "2024-02-29", "12:34:56+05:30", "25:00", "-1:00", "2024-02-30 12:00",
        "1969-12-31 23:59:58.5", "1969-12-31 23:59:58.500001", "2024-01-01T00:00:01.1234565Z",
        "2300-01-01", "1677-01-01", "infinity", "-infinity", "epoch", "0044-03-15 (BC) 10:00:00",
        "2024-01-01 00:00:00.999999999", "2262-04-11 23:47:16.854775806", "x",
    ],
)  # fmt: skip
def test_texts(text: str) -> None:
    for target in ("TIME", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        columns = {"t": pa.table({"x": [text, None]})}
        assert_same_as_duckdb(f"select try_cast(x as {target}) from t", columns)
        same_or_refused(f"select cast(x as {target})::varchar from t", columns)
        if text != "infinity":  # as a literal
            same_or_refused(f"select {target} '{text}'::varchar", {})


def test_moments_of_one_unit_as_another() -> None:
    moments = [
        "1969-12-31 23:59:58.5",
        "2024-01-01 00:00:00.5",
        "1969-12-31 23:59:59.9999995",
    ]
    table = {"t": pa.table({"x": moments})}
    for first, second in product(("TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_NS"), TYPES.values()):
        if (first, second) != ("TIMESTAMP_NS", "TIMESTAMP_S"):
            query = f"select try_cast(try_cast(x as {first}) as {second})::varchar from t"
            assert_same_as_duckdb(query, table)


@pytest.mark.parametrize(
    "query",
    [
        "select time '12:00' + interval '13 hours', interval '1 month 1 hour' + time '12:00'",
        "select time '12:00' - interval '13 hours', time '00:00' - interval '1 microsecond'",
        "select date '2024-01-01' + time '12:00', time '12:00' + date '2024-01-01'",
        "select time '12:00' < '13:00', '12:00' = time '12:00', time '1:00' between '0:30' and '2:00'",
        "select time '12:00' in ('12:00', '13:00'), case when true then time '1:00' else null end",
        "select timestamp_ns '2024-01-01' - timestamp_s '2023-01-01', timestamp_s '2024-01-01' - date '2023-12-31'",
        "select year(timestamp_ns '2024-01-01'), date_trunc('day', timestamp_ms '2024-01-01 12:00'), "
        "dayofweek(timestamp_s '2024-01-01'), strftime(timestamp_ms '2024-01-01 12:00', '%H %Y')",
        "select time '12:34:56.7' || 'x', concat(timestamp_ns '2024-01-01 00:00:00.000000001', 1)",
        "select extract(hour from time '1:02:03'), date_part('minute', time '1:02:03')",
        "select max(x) from (values (time '1:00'), ('2:00')) v(x)",
        "select * from (values (timestamp_s '2024-01-01'), (null)) v(x) order by x",
    ],
)  # fmt: skip
def test_expressions(query: str) -> None:
    same_or_refused(query, {})


def test_python_values() -> None:
    values = (time(12, 34, 56, 789000), None, datetime(2024, 1, 1, 12))
    query = "select ?, ?::TIME, ?::TIMESTAMP_NS"
    assert_same_as_duckdb(query, params=values)
    with connected() as connection:
        assert connection.execute(query, values).fetchall() == [values]
        cut = connection.execute("select TIMESTAMP_NS '2024-01-01 00:00:00.123456789'").fetchone()
        assert cut == (datetime(2024, 1, 1, 0, 0, 0, 123456),)
        assert connection.execute("select 1 where time '1:00' = ?", [time(1)]).fetchone() == (1,)


def test_tables() -> None:
    setup = [
        "create table x (t time, s timestamp_s, ms timestamp_ms, ns timestamp_ns)",
        "insert into x values ('1:00', '2024-01-01', '2024-01-01 00:00:00.5', '2024-01-01')",
        "insert into x select time '2:00', timestamp '2024-01-01 00:00:00.7', null, date '2024-01-01'",
        "create table y as select *, t::varchar v from x",
    ]
    assert_same_as_duckdb("select * from y order by t", setup=setup)


def test_times_that_kernels_look_up() -> None:
    """Computed of each value of a column beforehand."""
    table = pa.table({"i": [1, 2, 3], "s": ["01:02:03", "x", None], "c": pa.array([3_600_000_000, 0, None], pa.time64("us"))})  # fmt: skip
    for query in (
        "select try_cast(s as time) as x, count(*) as n from t group by x",
        "select c + interval '1 hour' as x, count(*) as n from t group by x",
        "select max(make_time(i, 1, 2)) as x, count(*) filter (where try_cast(s as time) > time '00:00') as n from t",
        "select count(*) as n from t a join t b on a.i::varchar::integer = b.i and make_time(a.i, 0, 0) = make_time(b.i, 0, 0)",
    ):
        assert_same_as_duckdb(query, {"t": table}, backend="cpu", fuse=("always", "never"))


def test_digits_of_a_timestamp_name_its_type() -> None:
    """TIMESTAMP(p) keeps p digits of a second, by the type that keeps as many or more."""
    types = ", ".join(f"typeof('2020-01-01'::timestamp({digits}))" for digits in range(10))
    assert_same_as_duckdb(
        f"select {types}, k, us::timestamp(3), us::timestamp(0) from t", {"t": TABLE}
    )
    with connected({}) as connection, pytest.raises(FuselineError, match="0 to 9"):
        connection.sql("select '2020-01-01'::timestamp(10)")


@pytest.mark.parametrize("unit", ["hour", "minute", "second", "millisecond", "microsecond"])
def test_units_between_times(unit: str) -> None:
    counts = "date_diff('{0}', t, time '01:30:00.5'), date_sub('{0}', t, t32::time), date_diff('{0}', t, null), k"
    assert_same_as_duckdb(f"select {counts.format(unit)} from t", {"t": TABLE})


def test_times_differ_by_no_days() -> None:
    with connected({"t": TABLE}) as connection, pytest.raises(FuselineError, match="hours or less"):
        connection.sql("select date_diff('day', t, t) from t")


def test_what_may_stand_behind_a_time() -> None:
    behind = (
        "", "Z", " Z", "z", "+02", " +02 ", "-05:30", "+0530", "+5", "+02:30:15", " UTC", "UTC", " PM", "x", ".", ".5", ".5Z", ":", "+99", "+15:60", "+16",
    )  # fmt: skip
    before = ("10:00:00", "10:00", "2020-01-01 10:00:00", "2020-01-01T10:00", "2020-01-01")
    texts = [f"{clock}{zone}" for clock in before for zone in behind]
    texts += ["5881580-07-10", "294247-01-10 04:00:54.775806-01", "290309-12-22 (BC) 00:00:00+00"]
    types = ("time", "timestamp", "timestamptz")
    reads = ", ".join(f"try_cast(s as {kind})::varchar" for kind in types)
    assert_same_as_duckdb(f"select s, {reads} from t", {"t": {"s": texts}}, backend="cpu")
