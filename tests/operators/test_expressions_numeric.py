"""Rounding, floating-point functions, and bits."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest

from fuseline.errors import OutOfRange
from tests.compare import assert_same_as_duckdb
from tests.operators.evaluated import assert_expressions, error_of

NAN, INF = float("nan"), float("inf")
FLOATS = [None, NAN, INF, -INF, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.675, 0.49999999999999994,
          123456.789, -987.654, 1e300, 4503599627370497.5]  # fmt: skip


@pytest.mark.parametrize("arrow", [pa.float64(), pa.float32()], ids=str)
def test_rounding_of_floats(arrow: pa.DataType) -> None:
    table = pa.table({"x": pa.array(FLOATS, arrow)})
    functions = ["round(x)", "trunc(x)", "ceil(x)", "floor(x)"]
    digits = [f"{f}(x, {d})" for f in ("round", "trunc") for d in (0, 1, 2, 5, -1, -3)]
    assert_expressions([*functions, *digits], table)


def test_rounding_to_a_column_of_digits() -> None:
    table = pa.table({"x": [1234.5678, None, -1234.5678, 5.0], "i": [1234, 55, None, -1250],
                      "d": pa.array([1, 2, -2, None], pa.int32())})  # fmt: skip
    assert_expressions(["round(x, d)", "round(i, d)", "trunc(x, d)", "trunc(i, d)"], table)


@pytest.mark.parametrize("digits", [9, 18, 30])
def test_rounding_of_decimals(digits: int) -> None:
    values = [
        "0", "0.005", "-0.005", "0.004", "1.5", "-1.5", "2.5", "123.456", "-123.456", "99999.995", "-0.999",
    ]  # fmt: skip
    table = pa.table({"x": pa.array([None, *map(Decimal, values)], pa.decimal128(digits, 3))})
    functions = ["round(x)", "trunc(x)", "ceil(x)", "floor(x)"]
    places = [f"{f}(x, {d})" for f in ("round", "trunc") for d in (0, 1, 2, 3, 5, -1, -3)]
    assert_expressions([*functions, *places], table)


def test_rounding_of_integers() -> None:
    table = pa.table({"x": pa.array([None, 0, 4, 5, 15, -15, 125, -149, 2**40], pa.int64())})
    assert_expressions(["round(x)", "round(x, 1)", "round(x, -1)", "round(x, -2)", "round(x, -30)", "trunc(x, -1)",
                        "ceil(x)", "floor(x)", "trunc(x)"], table)  # fmt: skip
    assert isinstance(error_of("round(x::tinyint, -1)", pa.table({"x": [127]})), OutOfRange)


def test_functions_of_doubles() -> None:
    table = pa.table(
        {"x": [None, NAN, INF, -INF, 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 10.0, 1e10, 1e-300]}
    )
    names = ["sqrt", "cbrt", "exp", "ln", "log10", "log2", "log", "sin", "cos", "tan", "asin", "acos", "atan",
             "degrees", "radians", "isnan", "isinf", "isfinite"]  # fmt: skip
    assert_expressions([f"{name}(x)" for name in names], table)


def test_functions_of_two_doubles() -> None:
    values = [None, NAN, INF, -INF, 0.0, -0.0, 0.5, -1.0, 2.0, 3.0]
    x, y = zip(*product(values, repeat=2), strict=True)
    assert_expressions(["power(x, y)", "atan2(x, y)", "x ** y"], pa.table({"x": x, "y": y}))


@pytest.mark.parametrize(
    "arrow", [pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()], ids=str
)
def test_bits(arrow: pa.DataType) -> None:
    signed = str(arrow).startswith("int")
    values = [None, 0, 1, 5, 100, *([-1, -100] if signed else [200])]
    x, y = zip(*product(values, repeat=2), strict=True)
    table = pa.table({"x": pa.array(x, arrow), "y": pa.array(y, arrow)})
    assert_expressions(["x & y", "x | y", "xor(x, y)", "~x", "x >> y"], table)
    small = pa.table(
        {"x": pa.array([0, 1, 3, 0, None], arrow), "y": pa.array([0, 5, 4, 7, 1], arrow)}
    )
    assert_expressions(["x << y"], small)


@pytest.mark.parametrize(("x", "y"), [(1, 31), (-1, 1), (1, -1), (1, 40), (2**30, 1), (256, 24)])
def test_shifts_that_lose_bits(x: int, y: int) -> None:
    table = pa.table({"x": pa.array([x], pa.int32()), "y": pa.array([y], pa.int32())})
    assert isinstance(error_of("x << y", table), OutOfRange)


def test_bits_are_counted_in_duckdbs_types() -> None:
    table = pa.table({"u": pa.array([2**64 - 1, 5, None], pa.uint64()), "y": pa.array([-1, 1, None], pa.int8())})  # fmt: skip
    query = "select bit_count(u), typeof(bit_count(u)), bit_count(y), typeof(bit_count(y)), bit_count(7::ubigint) from t"
    assert_same_as_duckdb(query, {"t": table}, fuse=("always", "never"))


def test_constant_or_null_has_the_type_of_the_constant() -> None:
    assert_same_as_duckdb(
        "select constant_or_null(5::ubigint, null::int) as a, constant_or_null(1, null) as b"
    )
