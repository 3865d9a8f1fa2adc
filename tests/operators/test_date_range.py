"""Dates, timestamps and intervals over the whole of DuckDB's range: the same values, and errors where DuckDB has them."""

from __future__ import annotations

import itertools
import random
from datetime import timedelta

import duckdb
import pytest

import fuseline
from tests.compare import assert_same_as_duckdb

DATES = (
    "date '1970-01-01'", "date '2024-02-29'", "date '2000-01-31'", "date '0001-01-01'", "date '9999-12-31'",
    "date '12345-06-07'", "date '0044-03-15 (BC)'", "date '290308-12-21 (BC)'", "date '294247-01-10'",
)  # fmt: skip
FAR_DATES = ("date '5881580-07-10'", "make_date(-5877641, 6, 25)")  # no TIMESTAMP has them
TIMES = (
    "timestamp '1970-01-01'", "timestamp '2024-02-29 13:04:05.678901'", "timestamp '1969-12-31 23:59:59.999999'",
    "timestamp '10000-01-01 00:00:01'", "timestamp '0044-03-15 (BC) 01:02:03'", "make_timestamp(9223372036854775806)",
    "make_timestamp(-9223372022400000000)",
)  # fmt: skip
SPANS = (
    "interval '1 month'", "interval '-13 months 40 days'", "interval 1 day", "interval '1 microsecond'",
    "interval '178956970 years'", "interval '-2147483647 months'", "interval '2147483647 days'",
    "interval '3000000 hours'", "interval '9223372036854775807 microseconds'",
    "interval '-9223372036854775807 microseconds'",
    "interval '1 year 2 months 3 days 04:05:06.789'",
    "interval '-1 day 01:00:00'", "interval '0 seconds'",
)  # fmt: skip
UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year",
         "decade", "century", "millennium")  # fmt: skip
PARTS = (*UNITS, "dow", "isodow", "doy", "isoyear", "epoch", "yearweek")
FUNCTIONS = (
    "last_day", "dayname", "monthname", "epoch_ms", "epoch_us", "isodow", "week", "dayofyear", "year",
)  # fmt: skip
NUMBERS = ("0", "1", "-1", "3", "-7", "1000000", "2147483647", "-2147483648", "178956971", "3000000000", "2562047788",
           "2562047789", "153722867281", "9223372036854775807", "-9223372036854775808")  # fmt: skip
TO = (
    "millennia", "centuries", "decades", "years", "quarters", "months", "weeks", "days", "hours", "minutes",
    "microseconds",
)  # fmt: skip
YEARS = ("0", "-1", "1", "9999", "10000", "5881580", "-5877641", "5881581", "290308", "-290308", "9223372036854775807",
         "-9223372036854775808")  # fmt: skip


def expressions() -> list[str]:
    found: list[str] = []
    for moment in (*DATES, *TIMES):
        found += [f"date_part('{part}', {moment})" for part in PARTS]
        found += [f"date_trunc('{unit}', {moment})" for unit in UNITS]
        found += [f"{function}({moment})" for function in FUNCTIONS]
        found += [f"({moment})::varchar", f"({moment})::date", f"({moment})::timestamp"]
        found += [f"{moment} {sign} {span}" for sign in "+-" for span in SPANS]
    for kind in (DATES, TIMES):
        for one, other in itertools.product(kind, repeat=2):
            found += [f"{one} - {other}", f"{one} < {other}"]
            found += [
                f"{function}('{unit}', {one}, {other})"
                for unit in UNITS
                for function in ("date_diff", "date_sub")
            ]
    for moment in FAR_DATES:
        found += [
            f"year({moment})",
            f"{moment}::varchar",
            f"{moment} - date '1970-01-01'",
            f"{moment} > date '2024-01-01'",
        ]
    for moment, number in itertools.product(
        (*DATES, *FAR_DATES), ("1", "-1", "3000000", "2147483647")
    ):
        found += [f"{moment} + {number}", f"{moment} - {number}"]
    for span in SPANS:
        found += [f"date_part('{part}', {span})" for part in UNITS if part != "week"]
        found += [f"({span})::varchar", f"(-({span}))::varchar", f"epoch({span})"]
        found += [f"({span} {sign} {other})::varchar" for sign in "+-" for other in SPANS]
        found += [f"{span} {sign} {other}" for sign in "<=" for other in SPANS]
        found += [f"({span} * {number})::varchar" for number in NUMBERS]
    for unit, number in itertools.product(TO, NUMBERS):
        found += [
            f"to_{unit}({number})::varchar",
            f"('{number} {unit}'::interval)::varchar",
            f"(interval ({number}) {unit})::varchar",
        ]
    for year, month, day in itertools.product(
        YEARS, ("1", "12", "0", "13"), ("1", "29", "31", "9223372036854775807")
    ):
        found.append(f"make_date({year}, {month}, {day})")
        found.append(f"make_timestamp({year}, {month}, {day}, 23, 59, 59.999999)")
    found += [
        f"make_timestamp({n})"
        for n in ("0", "-1", "9223372036854775807", "-9223372036854775808", "-9223372022400000001")
    ]
    clocks = (
        "24, 0, 0", "24, 0, 0.000001", "-1, 0, 0", "0, 60, 0", "0, 0, 60", "0, 0, 59.9999999", "0, 0, 'nan'::double",
        "12, 30, 1e300",
    )  # fmt: skip
    found += [f"make_timestamp(2024, 2, 29, {clock})" for clock in clocks]
    return found


def answer(run, expression: str):
    """The value, or the word error."""
    try:
        value = run(f"select {expression}").fetchall()[0][0]
    except (duckdb.Error, fuseline.FuselineError):
        return "error"
    if type(value).__name__ == "MonthDayNano":
        return timedelta(days=30 * value[0] + value[1], microseconds=value[2] // 1000)
    return value


# DuckDB reads numbers next to the ends of 64 bits through DOUBLE, or without their sign, and then has no room for them
ANSWERED = {
    "epoch_ms(make_timestamp(9223372036854775806))",
    "(interval (9223372036854775807) microseconds)::varchar",
    "('-9223372036854775808 microseconds'::interval)::varchar",
}


FIRST_DAY = "290309-12-21 (BC)"  # of which DuckDB reads some hours, though no date of it becomes a timestamp


def is_before_the_first_day(expected: object) -> bool:
    return isinstance(expected, str) and expected.startswith(FIRST_DAY)


def assert_alike(chosen: list[str]) -> None:
    wrong = []
    with duckdb.connect() as theirs, fuseline.connect(device="cpu") as ours:
        for expression in chosen:
            expected, found = answer(theirs.sql, expression), answer(ours.sql, expression)
            same = (
                found == pytest.approx(expected, rel=1e-12)
                if isinstance(expected, float)
                else found == expected
            )
            refused = found == "error" and is_before_the_first_day(expected)
            answered = expected == "error" and expression in ANSWERED
            if not same and not refused and not answered:
                wrong.append((expression, expected, found))
    assert not wrong, (len(wrong), wrong[:5])


def test_a_sample_of_the_grid_is_as_in_duckdb():
    assert_alike(random.Random(12).sample(expressions(), 400))


@pytest.mark.nightly
def test_the_grid_is_as_in_duckdb():
    assert_alike(expressions())


def test_intervals_beyond_arrows_are_refused_as_results_alone():
    query = "select timestamp '2024-01-01' + i, i::varchar, epoch(i), i > interval 1 day from (values (interval '3000000 hours'), (null)) v(i)"
    assert_same_as_duckdb(query)
    raising = pytest.raises(fuseline.errors.OutOfRange, match="292 years")
    with fuseline.connect(device="cpu") as ours, raising:
        ours.sql("select interval '3000000 hours'").fetchall()


def test_intervals_group_join_sort_and_stay_in_tables():
    data = "(values (interval '3000000 hours', 1), (interval '125000 days', 2), (null, 3), (interval '-1 month', 4)) v(i, x)"
    queries = (
        f"select count(distinct i), count(i) from {data}",
        f"select sum(x) from {data} group by i order by 1",
        f"select x from {data} order by i, x",
        f"select a.x, b.x from {data} join (select i as j, x from {data}) b on v.i = b.j, (select 1) a(x) order by all",
        f"select x from (select * from {data} union all select interval 1 day, 9) order by i nulls first, x",
    )
    for query in queries:
        assert_same_as_duckdb(query)
    with fuseline.connect(device="cpu") as ours:
        ours.execute("create table kept as select interval '1 month 2 days 00:00:03.5' as i")
        assert ours.sql("select i::varchar from kept").fetchall() == [
            ("1 month 2 days 00:00:03.5",)
        ]
        ours.execute("insert into kept select interval '-5 microseconds'")
        assert sorted(ours.sql("select i::varchar from kept").fetchall()) == [
            ("-00:00:00.000005",),
            ("1 month 2 days 00:00:03.5",),
        ]
