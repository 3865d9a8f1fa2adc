"""Numeric functions."""

from __future__ import annotations

from collections.abc import Sequence

from ..coercion import implicit
from ..types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    HUGEINT,
    TINYINT,
    DataType,
    Kind,
)
from .row import FunctionRow
from .signatures import Resolved, any_of, fixed, overloads, rounding, unary, whole


def _is_number(data_type: DataType) -> bool:
    return data_type.is_numeric


def _of_double(name: str, *aliases: str) -> FunctionRow:
    return FunctionRow(name, fixed(DOUBLE, result=DOUBLE), f"{name}(DOUBLE)", aliases)


def _floats(types: Sequence[DataType]) -> Resolved:
    """FLOAT where one is, and none DOUBLE."""
    single = len(types) == 2 and FLOAT in types and DOUBLE not in types
    return ((FLOAT, FLOAT), FLOAT) if single and all(implicit(t, FLOAT) for t in types) else None


_BIGINT_PAIR = overloads(
    fixed(BIGINT, BIGINT, result=BIGINT), fixed(HUGEINT, HUGEINT, result=HUGEINT)
)
_FLOATING = any_of(Kind.FLOAT, Kind.DOUBLE, result=BOOLEAN, null=DOUBLE)
_FLOATING_OR_DOUBLE = overloads(_FLOATING, fixed(DOUBLE, result=BOOLEAN))

NUMERIC = (
    FunctionRow(
        "abs", unary(_is_number), "abs(number)", ("@",), total=True
    ),  # same type; smallest integer: OutOfRange
    # FLOAT, DOUBLE: same type.  DECIMAL(p,s) -> DECIMAL(p,0).  Integers arrive cast to DOUBLE.
    FunctionRow("ceil", whole, "ceil(number)", ("ceiling",)),
    FunctionRow("floor", whole, "floor(number)"),
    # round(x) or round(x, digits INTEGER).  DECIMAL(p,s) needs a Literal for digits d and gives DECIMAL(p, max(0, d)), or
    # its own type when d >= s; half away from zero.  Integers keep their type (d < 0 rounds to tens).
    FunctionRow("round", rounding, "round(number[, INTEGER])"),
    FunctionRow("trunc", rounding, "trunc(number[, INTEGER])"),  # as round, toward zero
    FunctionRow("sign", unary(_is_number, TINYINT), "sign(number)"),  # -1, 0, 1; NaN gives 0
    # IEEE arithmetic throughout, as in DuckDB 2.0: sqrt(-1) is NaN, ln(0) -inf, sin(inf) NaN; no errors.
    _of_double("sqrt"),
    _of_double("cbrt"),
    _of_double("exp"),
    _of_double("ln"),
    _of_double("log10", "log"),
    _of_double("log2"),
    FunctionRow(
        "power", fixed(DOUBLE, DOUBLE, result=DOUBLE), "power(DOUBLE, DOUBLE)", ("pow", "**", "^")
    ),
    *(_of_double(name) for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")),
    _of_double("even"),  # the next even number away from zero
    FunctionRow("signbit", _FLOATING_OR_DOUBLE, "signbit(DOUBLE)"),
    FunctionRow(
        "nextafter",
        overloads(_floats, fixed(DOUBLE, DOUBLE, result=DOUBLE)),
        "nextafter(DOUBLE, DOUBLE)",
    ),
    FunctionRow("bit_count", unary(lambda t: t.is_integer, TINYINT), "bit_count(integer)"),
    _of_double("sin"),
    _of_double("cos"),
    _of_double("tan"),
    _of_double("asin"),
    _of_double("acos"),
    _of_double("atan"),
    FunctionRow("atan2", fixed(DOUBLE, DOUBLE, result=DOUBLE), "atan2(DOUBLE, DOUBLE)"),
    _of_double("degrees"),
    _of_double("radians"),
    # BIGINT or HUGEINT; result not negative; OutOfRange.
    FunctionRow("gcd", _BIGINT_PAIR, "gcd(BIGINT, BIGINT)", ("greatest_common_divisor",)),
    FunctionRow("lcm", _BIGINT_PAIR, "lcm(BIGINT, BIGINT)", ("least_common_multiple",)),
    # FLOAT or DOUBLE.
    FunctionRow(
        "is_nan", overloads(_FLOATING, fixed(DOUBLE, result=BOOLEAN)), "isnan(DOUBLE)", ("isnan",)
    ),
    FunctionRow(
        "is_inf", overloads(_FLOATING, fixed(DOUBLE, result=BOOLEAN)), "isinf(DOUBLE)", ("isinf",)
    ),
    FunctionRow(
        "is_finite",
        overloads(_FLOATING, fixed(DOUBLE, result=BOOLEAN)),
        "isfinite(DOUBLE)",
        ("isfinite",),
    ),
)
