"""Remainders and quotients in kernels: signs, zeros and extremes as in DuckDB."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from fuseline.errors import ConversionError, ExecutionError, OutOfRange
from tests.codegen.fused import BOTH, assert_fused
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits

SMALL = [-7, -3, -1, 0, 1, 2, 5, 127, -127, None]
WIDE = [-(2**62), -(2**31), -1, 0, 1, 3, 2**31, 2**62 + 1, None]


def pairs(values: list[Any], kind: pa.DataType) -> dict[str, Any]:
    left, right = zip(*itertools.product(values, values), strict=True)
    return {"t": pa.table({"a": pa.array(left, kind), "b": pa.array(right, kind)})}


@pytest.fixture(autouse=True)
def without_tables(limits: SetLimits) -> None:
    """Columns of few values are as those of many."""
    limits(LOOKUP_LIMIT=0)


@pytest.mark.by_day
@pytest.mark.parametrize("operator", ["%", "//"])
@pytest.mark.parametrize("divisor", ["nullif(b, 0)", "3", "-3", "1", "(abs(b) + 1::bigint)"])
@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64()], ids=str)
def test_signs_and_zeros(operator: str, divisor: str, kind: pa.DataType) -> None:
    x = f"a {operator} {divisor}"
    given = pairs(SMALL, kind)
    assert_fused(f"select {x} as x, count(*), sum(b) from t group by 1", given)
    assert_fused(
        f"select count(*), count({x}), max({x}), min({x}), sum({x}) from t where {x} <= 2", given
    )


@pytest.mark.by_day
@pytest.mark.parametrize("operator", ["%", "//"])
@pytest.mark.parametrize("divisor", ["nullif(b, 0)", "1000000", "-7", "4611686018427387905"])
def test_wide_numbers(operator: str, divisor: str) -> None:
    x = f"a {operator} {divisor}"
    given = pairs(WIDE, pa.int64())
    assert_fused(f"select count({x}), max({x}), min({x}), sum({x}) from t", given)
    assert_fused("select count(*) from t where a % 3 = 1 and b % 2 = 0", given)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_the_least_number_has_no_opposite(kind: pa.DataType) -> None:
    least = -(2 ** (kind.bit_width - 1))
    given = {"t": pa.table({"a": pa.array([least, 1], kind), "b": pa.array([-1, -1], kind)})}
    assert_same_as_duckdb("select max(a % 2), min(a // 1) from t", given, fuse=BOTH)
    for fuse in BOTH:
        with connected(given, fuse=fuse) as connection, pytest.raises(OutOfRange):
            connection.sql("select max(a // b) from t").to_arrow()
    assert_same_as_duckdb("select max(a % b), min(a % b) from t", given, fuse=BOTH)


@pytest.mark.parametrize("operator", ["%", "//"])
@pytest.mark.parametrize("fuse", BOTH)
def test_zero_divides_nothing_that_counts(operator: str, fuse: str) -> None:
    given = pairs([0, 4, None], pa.int64())
    assert_same_as_duckdb(f"select sum(a {operator} b) from t where b <> 0", given, fuse=[fuse])
    with connected(given, fuse=fuse) as connection, pytest.raises(ExecutionError, match="by zero"):
        connection.sql(f"select sum(a {operator} b) from t").to_arrow()


MONEY = ["-99999999.99", "-2.51", "-2.50", "-0.50", "-0.49", "0.00", "0.05", "0.49", "0.50", "1.45"]
DECIMALS = [*map(Decimal, MONEY), Decimal("99999999.99"), None]


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "x",
    [
        *(
            "a::bigint",
            "a::integer",
            "a::decimal(11, 1)",
            "round(a, 1)",
            "round(a)",
            "round(a, -1)",
        ),
        *("floor(a)", "ceil(a)", "trunc(a)", "trunc(a, 1)", "trunc(a, -1)"),
    ],
)
@pytest.mark.parametrize("precision", [10, 18, 38])
def test_decimals_with_fewer_digits(x: str, precision: int) -> None:
    given = pairs(DECIMALS, pa.decimal128(precision, 2))
    assert_fused(f"select {x} as x, count(*), sum(b) from t group by 1", given)
    assert_fused(f"select count({x}), max({x}), min(-{x}) from t where {x} <= 2", given)


@pytest.mark.by_day
@pytest.mark.parametrize("divisor", ["nullif(b, 0)", "1000", "-0.03", "1::decimal(18, 2)"])
@pytest.mark.parametrize("precision", [10, 18, 38])
def test_remainders_of_decimals(divisor: str, precision: int) -> None:
    x = f"a % {divisor}"
    given = pairs(DECIMALS, pa.decimal128(precision, 2))
    assert_fused(f"select {x} as x, count(*), sum(b) from t group by 1", given)
    assert_fused(f"select count({x}), max({x}), min({x}), sum({x}) from t where {x} < 0.4", given)


@pytest.mark.parametrize(
    ("expression", "error"), [("a::smallint", ConversionError), ("a % b", ExecutionError)]
)
def test_decimals_that_have_no_result(expression: str, error: type[Exception]) -> None:
    given = pairs(DECIMALS, pa.decimal128(10, 2))
    for fuse in BOTH:
        with connected(given, fuse=fuse) as connection:
            with pytest.raises(error):
                connection.sql(f"select max({expression}) from t").to_arrow()
            connection.sql(
                f"select max({expression}) from t where a < 5 and b > 0.1 and a > -5"
            ).to_arrow()
