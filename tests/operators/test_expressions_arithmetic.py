"""Arithmetic is exact or raises."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest

from fuseline.errors import ExecutionError, OutOfRange
from tests.operators.evaluated import assert_expressions, assert_rows, error_of, evaluated

NAN, INF = float("nan"), float("inf")


def table_of(
    x: list[object], y: list[object], arrow: pa.DataType, other: pa.DataType | None = None
) -> pa.Table:
    left, right = zip(*product(x, y), strict=True)
    return pa.table({"x": pa.array(left, arrow), "y": pa.array(right, other or arrow)})


def decimals(digits: int, scale: int, *values: str) -> pa.Array:
    return pa.array([None, *map(Decimal, values)], pa.decimal128(digits, scale))


@pytest.mark.parametrize("arrow", [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
], ids=str)  # fmt: skip
def test_integers_at_their_limits(arrow: pa.DataType) -> None:
    signed = str(arrow).startswith("int")
    low = -(2 ** (arrow.bit_width - 1)) if signed else 0
    high = low + 2**arrow.bit_width - 1
    values: list[object] = [low, low + 1, -1 if signed else 1, 0, 2, high // 2, high]
    assert_rows(["x + y", "x - y", "x * y", "x // y", "x % y"], table_of(values, values, arrow))
    assert_rows(["-x", "abs(x)"], table_of(values, [0], arrow))


def test_integers_of_many_rows() -> None:
    table = table_of([None, 7, -7, 2**60, -5, 0], [None, 3, -3, 1], pa.int64())
    assert_expressions(
        ["x + y", "x - y", "x // y", "x % y", "-x", "abs(x)", "sign(x)", "x / y", "x * 2"], table
    )


def test_an_overflow_under_null_is_none() -> None:
    table = pa.table({"x": pa.array([2**63 - 1, 1]), "y": pa.array([None, 1], pa.int64())})
    assert_expressions(
        ["x + y", "x * y", "y - x", "y % 5", "y // (x - 9223372036854775807)"], table
    )
    assert_expressions(["x // nullif(y, 1)"], table)


def test_narrow_decimals() -> None:
    x = decimals(15, 2, "0", "0.01", "-0.01", "12345.67", "-99999.99", "9999999.99")
    y = decimals(6, 3, "0.001", "-0.001", "999.999", "2", "-7.5", "0.5")
    left, right = zip(*product(x.to_pylist(), y.to_pylist()), strict=True)
    table = pa.table({"x": pa.array(left, x.type), "y": pa.array(right, y.type)})
    assert_expressions(
        ["x + y", "x - y", "x % y", "-x", "abs(x)", "sign(x)", "x / y", "1 - y", "x + 1", "x * 2",
         "x::decimal(9,2) * y", "x < y", "x = y"],
        table,
    )  # fmt: skip


def test_a_product_of_decimals_raises_where_it_leaves_18_digits() -> None:
    big = pa.table({"x": decimals(15, 2, "9999999999999.99"), "y": decimals(15, 2, "9999.99")})
    assert isinstance(error_of("x * y", big), OutOfRange)
    assert "9999999999999.99 * 9999.99" in str(error_of("x * y", big))
    fine = pa.table({"x": decimals(15, 2, "99999999.99"), "y": decimals(15, 2, "-9999.99")})
    assert_expressions(["x * y", "x * y * 0.1"], fine)


def test_wide_decimals() -> None:
    x = decimals(
        38, 2, "0", "0.01", "-0.01", "123456789012345678901234567890.12", "-92233720368547758.08"
    )
    y = decimals(20, 3, "0.001", "-0.001", "12345678901234567.891", "-2", "7.25")
    left, right = zip(*product(x.to_pylist(), y.to_pylist()), strict=True)
    table = pa.table({"x": pa.array(left, x.type), "y": pa.array(right, y.type)})
    assert_expressions(
        ["x + y", "x - y", "x % 7.25::decimal(38,2)", "-x", "abs(x)", "sign(x)", "x / y", "x < y", "x * 2::decimal(1,0)",
         "x is distinct from y"],
        table,
    )  # fmt: skip


@pytest.mark.parametrize("expression", ["x + x", "x * x", "x - (-x)", "x * 10::decimal(2,0)"])
def test_wide_decimals_out_of_range(expression: str) -> None:
    table = pa.table({"x": decimals(38, 0, "99999999999999999999999999999999999999")})
    assert isinstance(error_of(expression, table), OutOfRange)


def test_products_of_narrow_decimals_with_a_wide_result() -> None:
    table = pa.table(
        {"x": decimals(18, 10, "12345678.0123456789", "-99999999.9999999999", "0", "1e-10")}
    )
    assert_expressions(["x * x", "x + x"], table)


def test_floats() -> None:
    values: list[object] = [None, NAN, INF, -INF, 0.0, -0.0, 1.5, -2.5, 1e308, 5e-324]
    for arrow in (pa.float64(), pa.float32()):
        table = table_of(values, values, arrow)
        assert_expressions(
            ["x + y", "x - y", "x * y", "x / y", "x % y", "-x", "abs(x)", "sign(x)", "1 / x"], table
        )
        whole = table_of(values, [1.5, -2.0], arrow)
        assert_expressions(["x // y"], whole)


@pytest.mark.parametrize("expression", ["x // 0", "x % 0", "1.5 % (x - x)", "x // (0.0::double)"])
def test_division_by_zero(expression: str) -> None:
    table = pa.table({"x": [1, 2]})
    assert isinstance(error_of(expression, table), ExecutionError)
    assert "nullif" in str(error_of(expression, table))


def test_gcd_and_lcm() -> None:
    table = table_of([None, 0, 12, -18, 2**40], [None, 0, 8, -27, 2**20], pa.int64())
    assert_expressions(["gcd(x, y)", "lcm(x, y)"], table)
    assert isinstance(error_of("lcm(9223372036854775807 - x, 2)", pa.table({"x": [0]})), OutOfRange)
    assert isinstance(
        error_of("gcd(x - 9223372036854775807 - 1, 0)", pa.table({"x": [0]})), OutOfRange
    )


def test_chunks_of_a_long_table() -> None:
    """Only one of several chunks has a NULL, and only one an overflow."""
    numbers = list(range(300_000))
    numbers[200_000] = None  # type: ignore[call-overload]
    table = pa.table({"x": pa.array(numbers, pa.int64())})
    assert_expressions(["x * 3 + 1", "x % 7", "x::varchar || 'x'", "1"], table)
    numbers[290_000] = 2**62
    assert isinstance(error_of("x * 4", pa.table({"x": pa.array(numbers, pa.int64())})), OutOfRange)


def test_common_parts_are_computed_once_with_the_same_result() -> None:
    table = pa.table({"x": decimals(12, 2, "1.5", "2.25"), "y": decimals(12, 2, "0.1", "0.07")})
    assert_expressions(["x * (1 - y)", "x * (1 - y) * (1 + y)", "x * (1 - y) / 3"], table)
    floats = pa.table({"x": [1.0, None]})
    assert evaluated(["x / 0.0::double", "x / (-0.0::double)"], floats).to_pylist()[0] == {
        "c0": INF,
        "c1": -INF,
    }


@pytest.mark.parametrize(("arrow", "bits"), [(pa.int64(), 64), (pa.int32(), 32), (pa.int8(), 8)])
def test_the_smallest_integer_beside_rows_whose_bounds_promise_nothing(
    arrow: pa.DataType, bits: int
) -> None:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    table = pa.table({"x": pa.array([0, -3, high], arrow), "y": pa.array([low, 2, 0], arrow)})
    assert_expressions(["x + y", "y + x", "(x + 0) + y"], table)
    table = pa.table({"x": pa.array([low, -3, 1], arrow), "y": pa.array([1, 2, low], arrow)})
    assert_expressions(["x * y"], table)
