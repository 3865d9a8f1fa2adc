"""Dates, timestamps and intervals."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

from fuseline.errors import ConversionError, ExecutionError, OutOfRange
from fuseline.plan.functions import strptime
from tests.compare import assert_same_as_duckdb
from tests.operators.evaluated import assert_expressions, assert_rows, error_of

DAYS = [None, 0, -1, 1, 59, 10_957, 11_016, 11_017, 18_262, 18_321, 18_322, 18_627, 18_628, 18_630, -25_508, -25_567,
        -719_162, -719_163, -719_528, -735_235, 2_932_896, 2_932_897, -1_000_000, 3_000_000]  # fmt: skip
DAY = 86_400_000_000
MOMENTS = [None, 0, -1, 1, 999_999, -1_000_000, 10_957 * DAY - 1, 11_016 * DAY + 45_296_789_012, 18_321 * DAY + 1000,
           -25_508 * DAY + 3_599_999_999, -719_529 * DAY + 1, 18_628 * DAY - 60_000_000, 10**17, -(10**17)]  # fmt: skip
TABLE = pa.table({"d": pa.array(DAYS, pa.date32())})
CLOCK = pa.table({"t": pa.array(MOMENTS, pa.timestamp("us"))})
PARTS = ["year", "quarter", "month", "day", "decade", "century", "millennium", "week", "isodow", "dayofweek",
         "dayofyear", "isoyear"]  # fmt: skip
UNITS = ["microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade",
         "century", "millennium"]  # fmt: skip


def test_parts_of_dates() -> None:
    assert_expressions(
        [*(f"{part}(d)" for part in PARTS), "extract(dow from d)", "epoch(d)"], TABLE
    )


def test_parts_of_timestamps() -> None:
    clock = ["hour", "minute", "second", "millisecond", "microsecond", "epoch"]
    assert_expressions([f"{part}(t)" for part in [*PARTS, *clock]], CLOCK)


def test_parts_of_many_rows_in_a_narrow_range() -> None:
    days = pa.table(
        {
            "d": pa.array(
                [None if i % 97 == 0 else 18_000 + i % 900 for i in range(200_000)], pa.date32()
            )
        }
    )
    assert_expressions(
        ["year(d)", "week(d)", "d::varchar", "date_trunc('month', d)", "monthname(d)"], days
    )


# Parts that stand for the unit that they are of
OTHERS = ["isoyear", "yearweek", "julian", "epoch", "dow"]


@pytest.mark.parametrize("unit", [*UNITS, *OTHERS])
def test_truncation(unit: str) -> None:
    assert_expressions([f"date_trunc('{unit}', d)"], TABLE)
    assert_expressions([f"date_trunc('{unit}', t)"], CLOCK)


@pytest.mark.parametrize("unit", [*UNITS, *OTHERS])
def test_differences(unit: str) -> None:
    starts, ends = zip(*product(MOMENTS, repeat=2), strict=True)
    table = pa.table(
        {"a": pa.array(starts, pa.timestamp("us")), "b": pa.array(ends, pa.timestamp("us"))}
    )
    assert_expressions([f"date_diff('{unit}', a, b)", f"date_sub('{unit}', a, b)"], table)


@pytest.mark.parametrize("unit", ["month", "quarter", "year", "week", "day"])
def test_whole_units_around_the_ends_of_months(unit: str) -> None:
    days = [18_262 + i for i in (0, 28, 29, 30, 57, 58, 59, 60, 89, 90, 120, 365, 366, 394, 424)]
    starts, ends = zip(*product(days, repeat=2), strict=True)
    table = pa.table({"a": pa.array(starts, pa.date32()), "b": pa.array(ends, pa.date32())})
    assert_expressions([f"date_diff('{unit}', a, b)", f"date_sub('{unit}', a, b)"], table)


def test_names_and_last_days() -> None:
    assert_expressions(["monthname(d)", "dayname(d)", "last_day(d)"], TABLE)
    assert_expressions(["monthname(t)", "dayname(t)", "last_day(t)"], CLOCK)


def test_days_are_added_and_subtracted() -> None:
    table = pa.table(
        {"d": TABLE["d"], "n": pa.array([i * 37 - 300 for i in range(len(DAYS))], pa.int32())}
    )
    assert_expressions(
        [
            "d + n",
            "d - n",
            "d + 1",
            "d - d",
            "d - date '2020-02-29'",
            "date '2020-02-29' - d",
            "n + d",
        ],
        table,
    )
    assert isinstance(error_of("d + 2147483647", TABLE), OutOfRange)


def test_intervals_move_dates_and_timestamps() -> None:
    spans = ["1 month", "-1 month", "12 months", "1 year", "13 months 1 day", "-13 months", "36 hours", "-1 second",
             "1 month -1 day 1 microsecond", "0 days"]  # fmt: skip
    assert_expressions([f"d {sign} interval '{s}'" for s in spans for sign in "+-"], TABLE)
    assert_expressions([f"t {sign} interval '{s}'" for s in spans for sign in "+-"], CLOCK)
    assert isinstance(error_of("t + interval '300000 years'", CLOCK), OutOfRange)


def test_intervals_from_columns() -> None:
    table = pa.table({"n": pa.array([None, 0, 1, -1, 13, -25, 100], pa.int64()), "x": [0.5, None, -1.5, 2.0, 1e-6, 0.1, 3.3],
                      "d": pa.array([0, 18_292, 18_321, None, -1, 59, 11_016], pa.date32())})  # fmt: skip
    units = ["years", "quarters", "months", "weeks", "days", "hours", "minutes", "microseconds", "decades", "centuries",
             "millennia"]  # fmt: skip
    assert_expressions([f"to_{unit}(n)" for unit in units], table)
    assert_expressions(
        ["to_seconds(x)", "to_milliseconds(x)", "d + to_months(n)", "d - to_days(n) - to_hours(n)"],
        table,
    )
    span = "(to_months(n) + to_days(n) + to_hours(n))"
    assert_expressions(
        [span, f"-{span}", f"{span} - to_months(n)", f"{span} * n", f"{span} * 3", f"{span} * x", f"{span} / 4",
         f"{span}::varchar", *(f"extract({p} from {span})" for p in (*PARTS[:7], "hour", "second", "epoch"))],
        table,
    )  # fmt: skip
    assert isinstance(error_of("to_months(n * 100000000)", table), OutOfRange)
    assert isinstance(error_of("to_days(n) / (n - n)", table), ExecutionError)


def test_timestamps_are_subtracted() -> None:
    a, b = zip(*product(MOMENTS, repeat=2), strict=True)
    table = pa.table({"a": pa.array(a, pa.timestamp("us")), "b": pa.array(b, pa.timestamp("us"))})
    short = table.filter(
        pa.array(
            [x is None or y is None or abs(x - y) < 9 * 10**15 for x, y in zip(a, b, strict=True)]
        )
    )
    assert_expressions(["a - b", "(a - b)::varchar", "a < b", "b + (a - b) = a"], short)


def test_dates_and_timestamps_are_made() -> None:
    y, m, d = zip(
        *product(
            [2020, 2021, 1900, 2000, 1, None], [0, 1, 2, 4, 12, 13], [0, 1, 28, 29, 30, 31, 32]
        ),
        strict=True,
    )
    assert_rows(["make_date(y, m, d)"], pa.table({"y": y, "m": m, "d": d}))
    table = pa.table(
        {"h": [0, 23, 24, 12, None], "m": [0, 59, 0, 60, 1], "s": [0.5, 59.999999, 0.0, 1.0, 1.0]}
    )
    assert_rows(["make_timestamp(2020, 2, 29, h, m, s)", "make_timestamp(h * 1000000)"], table)
    assert isinstance(error_of("make_date(2021, 2, 29)"), ConversionError)


def test_strftime() -> None:
    letters = ["%Y", "%m", "%d", "%H", "%I", "%M", "%S", "%f", "%g", "%y", "%j", "%a", "%A", "%b", "%B", "%h", "%p", "%U",
               "%W", "%w", "%u", "%V", "%G", "%c", "%x", "%X", "%T", "%%", "%z", "%Z", "%-d", "%-m", "%-H", "%-I", "%-M",
               "%-S", "%-y", "%-j"]  # fmt: skip
    assert_expressions([f"strftime(t, '{letter}|')" for letter in letters], CLOCK)
    assert_expressions(["strftime(d, '%A, %-d %B %Y at %H:%M')"], TABLE)
    for wrong in ("%Q", "%E", "abc%", "%-f"):
        assert isinstance(error_of(f"strftime(t, '{wrong}')", CLOCK), ExecutionError)


STAMPS = {
    "%Y-%m-%d": ["2020-02-29", " 2020-02-05 ", "0001-01-01", "1969-12-31", None, "2020-2-5"],
    "%Y-%m-%d %H:%M:%S": ["2020-02-05 13:04:05", "1900-01-01 00:00:00"],
    "%d/%m/%y": ["05/02/20", "1/1/69", "31/12/68"],
    "%b %d, %Y": ["Feb 5, 2020", "dec 31, 1999"],
    "%B %-d %Y": ["February 1 2020", "MAY 31 2021"],
    "%I:%M %p": ["12:05 AM", "12:05 PM", "1:04 pm"],
    "%Y-%m-%dT%H:%M:%S.%f": ["2020-02-05T01:02:03.123456", "2020-02-05T01:02:03.5"],
    "%S.%g": ["1.5", "1.123"], "%Y%m%d": ["20200205"], "%Y %j": ["2020 366", "2021 1"],
    "%G-W%V-%u": ["2020-W05-1", "2020-W53-7"], "%Y %U %w": ["2020 5 1", "2021 0 6"], "%a %b %d %Y": ["Wed Feb 05 2020"],
    "%H": ["0", "23"],
}  # fmt: skip


@pytest.mark.parametrize("layout", STAMPS)
def test_strptime(layout: str) -> None:
    assert_expressions(
        [f"strptime(s, '{layout}')"], pa.table({"s": pa.array(STAMPS[layout], pa.string())})
    )
    texts = [None, "", "x", "2020-02-30", "25", *(s for stamps in STAMPS.values() for s in stamps)]
    assert_expressions([f"try_strptime(s, '{layout}')"], pa.table({"s": pa.array(texts)}))


def test_try_strptime_of_constants() -> None:
    strptime = ["'x', '%Y'", "'2020', '%Y'", "'2020', NULL", "NULL, '%Y'", "'2020-13', '%Y-%m'"]
    assert_expressions([f"try_strptime({arguments})" for arguments in strptime], TABLE)


def test_the_first_format_that_fits_reads_a_text() -> None:
    texts = ["2024-01-02", "03/04/2024", "2020", " 2021 ", None, "2024-01-02 05:06:07"]
    several = "['%Y-%m-%d', '%d/%m/%Y', '%Y-%m-%d %H:%M:%S', '%Y']"
    table = pa.table({"s": pa.array(texts, pa.string())})
    assert_expressions([f"strptime(s, {several})", f"try_strptime(s, {several})"], table)
    other = pa.table({"s": pa.array([*texts, "x", ""], pa.string())})
    assert_expressions([f"try_strptime(s, {several})", "try_strptime(s, ['%d'])"], other)
    assert "'x'" in str(error_of(f"strptime(s, {several})", other))


def test_intervals_are_cut_to_a_unit() -> None:
    spans = [
        "90 minutes",
        "-90 minutes",
        "45 days",
        "-14 months 40 days 3 us",
        "1234 months 20 days",
        "25 hours",
        "0 days",
    ]
    values = ", ".join(f"(interval '{span}')" for span in spans)
    units = [
        "microsecond",
        "millisecond",
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "quarter",
        "year",
        "decade",
        "century",
        "millennium",
    ]
    calls = ", ".join(f"date_trunc('{unit}', i) as {unit}" for unit in units)
    assert_same_as_duckdb(
        f"select {calls} from (values {values}, (null)) v(i)", fuse=("always", "never")
    )


@pytest.mark.parametrize("function", ["strptime", "try_strptime"])
@pytest.mark.parametrize("layout", ["", "%Q", "%"])
def test_formats_that_cannot_be_read(function: str, layout: str) -> None:
    table = pa.table({"s": ["None", "x", None]})
    assert isinstance(error_of(f"{function}(s, '{layout}')", table), ExecutionError)


def test_the_empty_format_is_not_the_word_none() -> None:
    assert isinstance(error_of("strftime(d, '')", TABLE), ExecutionError)
    assert isinstance(error_of("strftime(d::timestamp, '')", TABLE), ExecutionError)
    assert_expressions(["strftime(d, 'None')", "strftime('None', d)"], TABLE)


def test_the_letters_of_formats_are_those_that_are_written() -> None:
    from fuseline.operators.cpu.functions import kernels_formats

    for letter in {*kernels_formats._NUMBERS, *kernels_formats._WORDS}:
        assert list(strptime.specifiers(f"%{letter}")) == [("spec", letter)]
    written = {letter for letter in kernels_formats._NUMBERS if letter[0] != "-"}
    assert written | {*kernels_formats._WORDS} == strptime._LETTERS


@pytest.mark.parametrize(
    ("text", "layout"),
    [("x", "%Y"), ("2020-02-30", "%Y-%m-%d"), ("2020-02-05 x", "%Y-%m-%d"), ("13:00 PM", "%I:%M %p"), ("25", "%H"),
     ("99999", "%Y"), ("2020-13", "%Y-%m")],
)  # fmt: skip
def test_strptime_of_what_does_not_fit(text: str, layout: str) -> None:
    table = pa.table({"s": [text]})
    assert text in str(error_of(f"strptime(s, '{layout}')", table))
