"""Aggregates of sorted values."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from fuseline.errors import InvalidQuery
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


FROM_THE_END = [
    "quantile_disc(x, -0.3), quantile_disc(s, -0.0), quantile_disc(d, -1), quantile_disc(m, -0.5), quantile_disc(f, -0.9)",
    "quantile_cont(x, -0.3), quantile_cont(d, -0.3), quantile_cont(u, -0.5), quantile_cont(h, -0.25), quantile_cont(f, -1)",
    "quantile_cont(x, [-0.5, -0.0]), quantile_disc(d, [-1, -0.1]), quantile_cont(m, -0.25), quantile(x, -0.5 + 0.1)",
    "quantile_cont(distinct x, -0.3) filter (where x > 1), quantile_cont(x::utinyint, -0.9), quantile_cont(y, -0.5)",
    "percentile_cont(0.3) within group (order by d desc), percentile_cont(0) within group (order by x desc)",
    "quantile_disc(x, 0.3 order by x desc), quantile_cont(d, 0.3 order by g desc), quantile_disc(s, 0.0 order by u desc)",
    "quantile_cont(x, [0.5, 0] order by x desc), quantile_disc(x, [0, 0.0] order by x desc), quantile_cont(x, 0.3 order by -x)",
    "percentile_cont([0.5, 1]) within group (order by d desc), percentile_disc([0.1, 0]) within group (order by m desc)",
]
WIDE = """create table w as select (i * 37 % 41)::int as x, i % 5 as g, 't' || (i * 37 % 41) as s, (i * 37 % 41)::decimal(5, 1) as d,
    case when i % 9 = 0 then 'nan'::double when i % 8 = 0 then 'inf'::double when i % 7 = 0 then null else i / 4 end as f,
    (i * 37 % 41)::ubigint as u, (i - 20)::hugeint * 1000000000000000000000 as h,
    timestamp '2024-01-01' + interval (i) hour as m, date '2024-01-01' + i::int as y from range({}) t(i)"""


@pytest.mark.parametrize("rows", [0, 1, 2, 40, 50_000])
@pytest.mark.parametrize("calls", FROM_THE_END)
def test_negative_fractions_count_from_the_end(calls: str, rows: int) -> None:
    setup = [WIDE.format(rows)]
    assert_same_as_duckdb(f"select {calls} from w", setup=setup, fuse=("always", "never"))
    assert_same_as_duckdb(f"select g, {calls} from w group by g order by g", setup=setup)


def test_negative_fractions_over_frames() -> None:
    calls = "quantile_cont(x, -0.3) over o, quantile_disc(x, -0.3) over (order by u rows 2 preceding), quantile_cont(d, -0.3) over o"
    query = f"select u, {calls} from w window o as (order by u) order by u"
    assert_same_as_duckdb(query, setup=[WIDE.format(30)])


@pytest.mark.parametrize(("call", "message"), {
    "quantile_cont(x, -1.5)": "between -1 and 1", "quantile_disc(x, [-0.3, 0.3])": "one sign",
    "quantile_cont(x, -0.3 order by x)": "between 0 and 1", "approx_quantile(x, -0.3)": "between 0 and 1",
    "percentile_disc(-0.3) within group (order by x desc)": "between 0 and 1",
}.items())  # fmt: skip
def test_fractions_that_are_none(call: str, message: str, connection) -> None:
    connection.execute("create or replace table w as select 1 as x")
    with pytest.raises(InvalidQuery, match=message):
        connection.sql(f"select {call} from w").fetchall()
