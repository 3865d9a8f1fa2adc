"""CAST and TRY_CAST have DuckDB's values; what cannot be cast is named."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from fuseline.errors import ConversionError
from tests.operators.evaluated import assert_expressions, error_of

INTEGERS = [
    "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint",
]  # fmt: skip
NUMBERS = [*INTEGERS, "float", "double", "boolean", "decimal(3,1)", "decimal(9,2)", "decimal(18,0)", "decimal(18,6)",
           "decimal(38,0)", "decimal(38,10)"]  # fmt: skip
NAN, INF = float("nan"), float("inf")

NUMBER_TEXTS = [
    None, "", " ", "0", "-0", "1", " 42 ", "+5", "42abc", "1e3", "1_000", "1__0", "_1", "1_", "0x1F", "0b101", "-0x1", ".5", "5.",
    ".", "-", "+", "2.5", "3.5", "-2.5", "0.49", "1e-5", "4.5e1", "45e-1", "1e", "1e1000", "1e-1000", "127", "128", "-128", "-129",
    "255", "256", "-1", "32768", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "18446744073709551615", "18446744073709551616", "99.95", "99.94", "-99.95", "999999999999999999", "1.25", "1.35", "-1.25",
    "0.0000001", "123456789012345678901234567890", "\t5\n", "1.5.2", "- 5", "1 2", "nan", "inf", "-Infinity", "iNf", "+inf", "-nan",
    "-0.4", "-.4", "-0.0", "-0e5", "-00", "-0 ", " -0", "-1e-30", "-0.", "-.0", "-0_0", "infinit", "1d", "1E5", "1e+5", "1.7976931348623157e308", "1e309", "1e39", "5e-324", "0.1", "true", "é", "١",
]  # fmt: skip


@pytest.mark.parametrize("target", [t for t in NUMBERS if t != "boolean"])
def test_text_to_numbers(target: str) -> None:
    assert_expressions(
        [f"try_cast(s as {target})"], pa.table({"s": pa.array(NUMBER_TEXTS, pa.string())})
    )


def test_text_to_boolean() -> None:
    texts = [
        "true", "t", "T", "TRUE", "yes", "Y", "1", "on", "false", "F", "no", "n", "0", "off", " true", "2", "", None,
        "tr",
    ]  # fmt: skip
    assert_expressions(["try_cast(s as boolean)"], pa.table({"s": texts}))


DATES = [None, "", "2020-01-05", "2020-1-5", " 2020-01-05 ", "2020/01/05", "2020-01/05", "2020.01.05", "2020 01 05", "20-1-5",
         "2020-02-30", "2021-02-29", "2020-02-29", "2020-00-05", "2020-13-05", "2020-01-00", "2020-01-05x", "20200105", "2020-01",
         "12020-01-05", "0000-01-01", "-0044-01-05", "2020-01-05 (BC)", "epoch", "+2020-01-05", "2020-01-005", "2020-01-05 10:00:00",
         "2020-01-05T10:00:00", "2020-01-05 abc", "2020-01-05T", "99999999-01-01", "1969-12-31", "x"]  # fmt: skip
MOMENTS = [*DATES, "2020-01-05 10:11:12", "2020-01-05T10:11:12", "2020-01-05 10:11", "2020-01-05T10:11:12Z",
           "2020-01-05 10:11:12.5", "2020-01-05 10:11:12.123456789", "2020-01-05 10:11:12.", "2020-01-05 24:00:00",
           "2020-01-05 24:00:01", "2020-01-05 10:11:60", "2020-01-05 10:60:00", "2020-01-05 25:00:00", "2020-01-05 1:2:3",
           "2020-01-05   10:11:12", "1969-12-31 23:59:59.999999", "2020-01-05 10:11:12,5", " 2020-01-05 10:11:12 "]  # fmt: skip


def test_text_to_dates() -> None:
    assert_expressions(["try_cast(s as date)"], pa.table({"s": DATES}))


def test_text_to_timestamps() -> None:
    assert_expressions(["try_cast(s as timestamp)"], pa.table({"s": MOMENTS}))


def test_infinite_dates() -> None:
    table = pa.table({"s": ["infinity", "-inf"]})
    casts = ["try_cast(s as date)", "try_cast(s as timestamp)", "cast(s as date)::timestamp"]
    assert_expressions([*casts, *(f"{cast}::varchar" for cast in casts)], table)


def test_text_to_intervals() -> None:
    texts = [None, "", "1 day", "1 year 2 months", "04:05:06", "-04:05:06.5", "1 day ago", "1y 2mon 3d 4h 5m 6s 7ms 8us", "@ 1 day",
             "-1 day 04:05", "1.5 days", "1.5 months", "1.5 years", "2 weeks", "3 quarters", "abc", "5", "1.5 seconds", "100:00:00",
             "1 day 100:00:00.5", "-00:00:01", "1 fortnight", "1 decade", "0.5 minutes", "1 century", "-1.5 hours",
             "+7", "-7", "2020-02-29", "1-2", "5 5", "1 hour 30", "30 1 hour", "1:30 1 day", "1 day 1:30", "1:60", "1:30 ago",
             "5 ago", ".5 s", "1. day", "1 DAY", "1 day2 hours", "1 year-2 months", "1.0000005 s", "1.9999999 ms", "1.5 us",
             "2147483647 months", "2147483648 days", "99999999999999999999 s"]  # fmt: skip
    assert_expressions(["try_cast(s as interval)"], pa.table({"s": texts}))
    constants = [f"try_cast('{text}' as interval)" for text in texts if text is not None]
    assert_expressions(constants)


def doubles() -> pa.Array:
    return pa.array([None, NAN, INF, -INF, 0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 2.675, 0.125, 1.005, 127.5, 127.4, -128.5, 255.5,
                     2147483647.5, 2147483647.4, -2147483648.5, 9223372036854775807.0, -9223372036854775808.0, 1e18, 1e19, 1e37,
                     1e38, 1e300, 99.95, 99.94, 1e-10, 123456789.125, 5e-324])  # fmt: skip


@pytest.mark.parametrize("target", [*NUMBERS, "hugeint"])
def test_doubles_to_numbers(target: str) -> None:
    assert_expressions([f"try_cast(x as {target})"], pa.table({"x": doubles()}))


def test_floats_to_numbers() -> None:
    values = [None, NAN, INF, 0.5, 2.5, -1.5, 16777216.0, 0.1, 3e38, 99.95]
    table = pa.table({"x": pa.array(values, pa.float32())})
    assert_expressions([f"try_cast(x as {t})" for t in (*NUMBERS, "hugeint")], table)


@pytest.mark.parametrize(
    "source", [pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()], ids=str
)
def test_integers_to_numbers(source: pa.DataType) -> None:
    signed = str(source).startswith("int")
    low = -(2 ** (source.bit_width - 1)) if signed else 0
    values = [
        None, 0, 1, 100, 99, low, low + 2**source.bit_width - 1, low + 2 ** (source.bit_width - 2), 127,
    ]  # fmt: skip
    table = pa.table({"x": pa.array(values, source)})
    assert_expressions([f"try_cast(x as {target})" for target in NUMBERS], table)


@pytest.mark.parametrize("digits", [9, 18, 38])
def test_decimals_to_numbers(digits: int) -> None:
    values = ["0", "0.001", "0.5", "-0.5", "1.5", "2.5", "99.949", "99.95", "-99.95", "127.5", "-128.5", "255.499", "123456.789",
              "-999999.999"]  # fmt: skip
    large = {
        9: [],
        18: ["999999999999999.999"],
        38: ["9007199254740993.5", "12345678901234567890.123", "-9" + "9" * 34],
    }
    array = pa.array([None, *map(Decimal, [*values, *large[digits]])], pa.decimal128(digits, 3))
    assert_expressions([f"try_cast(x as {target})" for target in NUMBERS], pa.table({"x": array}))


def test_everything_to_text() -> None:
    assert_expressions(["x::varchar"], pa.table({"x": doubles()}))
    floats = [
        None, NAN, -INF, 0.1, 1e7, 1e10, 1e15, 1e16, 1e-4, 1e-5, 3.4028235e38, 16777216.0, -0.0, 123456789.0,
    ]  # fmt: skip
    assert_expressions(["x::varchar"], pa.table({"x": pa.array(floats, pa.float32())}))
    assert_expressions(
        ["x::varchar"], pa.table({"x": pa.array([None, 0, -5, 2**63 - 1, -(2**63)])})
    )
    assert_expressions(["x::varchar"], pa.table({"x": pa.array([2**64 - 1, 0], pa.uint64())}))
    assert_expressions(["x::varchar"], pa.table({"x": [True, False, None]}))


@pytest.mark.parametrize(
    ("digits", "scale"), [(5, 2), (2, 2), (18, 0), (18, 18), (38, 0), (38, 5), (38, 38)]
)
def test_decimals_to_text(digits: int, scale: int) -> None:
    unscaled = ["0", "1", "-1", "10", "-99", "9" * digits, "-" + "9" * digits]
    values = [Decimal(u + f"e-{scale}") for u in unscaled]
    assert_expressions(
        ["x::varchar"], pa.table({"x": pa.array([None, *values], pa.decimal128(digits, scale))})
    )


def test_dates_and_timestamps() -> None:
    days = pa.table(
        {
            "x": pa.array(
                [None, 0, -1, 18_000, -719_163, -800_000, 3_000_000, 106_751_990, 106_751_992],
                pa.date32(),
            )
        }
    )
    assert_expressions(["x::varchar", "try_cast(x as timestamp)"], days)
    micros = [
        None, 0, -1, 1, 1_000_000, 86_400_000_000 - 1, -86_400_000_001, 1_580_000_000_120_000, -(10**17), 10**17,
    ]  # fmt: skip
    moments = pa.table({"x": pa.array(micros, pa.timestamp("us"))})
    assert_expressions(["x::varchar", "x::date", "x::date::timestamp"], moments)


def test_null_and_dictionaries() -> None:
    table = pa.table({"s": pa.array(["1", None, "22", "1"]).dictionary_encode()})
    assert_expressions(
        ["s::int", "s::int + 1", "(s || '0')::double", "null::int", "s::int::varchar || 'x'"], table
    )


@pytest.mark.parametrize(
    ("expression", "value"),
    [("s::int", "abc"), ("(s || '')::double", "abc"), ("s::date", "abc"), ("x::tinyint", "300.5"), ("(x * 1000)::decimal(5,2)", "300500"),
     ("s::boolean", "abc"), ("s::interval", "abc")],
)  # fmt: skip
def test_the_value_that_cannot_be_cast_is_named(expression: str, value: str) -> None:
    table = pa.table({"s": ["1 day", "abc"][1:], "x": [300.5]})
    error = error_of(expression, table)
    assert isinstance(error, ConversionError)
    assert value in error.message
    assert "TRY_CAST" in error.message


def test_only_values_that_are_not_null_can_fail() -> None:
    table = pa.table({"x": pa.array([300, None, 1], pa.int64())})
    assert_expressions(["nullif(x, 300)::tinyint"], table)
