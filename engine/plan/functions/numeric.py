"""Numeric functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import types as ty
from ..coercion import implicit
from .row import FunctionRow, Resolved, any_of, fixed, overloads, rounding, unary, whole
from .value_bounds import absolute, each_end, rounded, within


def _is_number(data_type: ty.DataType) -> bool:
    return data_type.is_numeric


def _of_doubles(name: str, *aliases: str, count: int = 1, **ways: Any) -> FunctionRow:
    signature = f"{name}({', '.join(count * ['DOUBLE'])})"
    return FunctionRow(
        name, fixed(*count * [ty.DOUBLE], result=ty.DOUBLE), signature, aliases, **ways
    )


def _test(name: str, alias: str) -> FunctionRow:
    """A test of a FLOAT or DOUBLE, which numpy and `math` call as SQL does."""
    types = overloads(_FLOATING, fixed(ty.DOUBLE, result=ty.BOOLEAN))
    return FunctionRow(name, types, f"{alias}(DOUBLE)", (alias,), numpy=alias, math=alias)


def _floats(types: Sequence[ty.DataType]) -> Resolved:
    """FLOAT where one is, and none DOUBLE."""
    single = len(types) == 2 and ty.FLOAT in types and ty.DOUBLE not in types
    return (
        ((ty.FLOAT, ty.FLOAT), ty.FLOAT)
        if single and all(implicit(t, ty.FLOAT) for t in types)
        else None
    )


_BIGINT_PAIR = overloads(
    fixed(ty.BIGINT, ty.BIGINT, result=ty.BIGINT), fixed(ty.HUGEINT, ty.HUGEINT, result=ty.HUGEINT)
)
_FLOATING = any_of(ty.Kind.FLOAT, ty.Kind.DOUBLE, result=ty.BOOLEAN, null=ty.DOUBLE)
_FLOATING_OR_DOUBLE = overloads(_FLOATING, fixed(ty.DOUBLE, result=ty.BOOLEAN))

NUMERIC = (
    FunctionRow(
        "abs", unary(_is_number), "abs(number)", ("@",), total=True, bounds=absolute
    ),  # same type; smallest integer: OutOfRange
    # FLOAT, DOUBLE: same type.  DECIMAL(p,s) -> DECIMAL(p,0).  Integers arrive cast to DOUBLE.
    FunctionRow(
        "ceil", whole, "ceil(number)", ("ceiling",), bounds=each_end(math.ceil), whole="alone"
    ),
    FunctionRow("floor", whole, "floor(number)", bounds=each_end(math.floor), whole="alone"),
    # round(x) or round(x, digits INTEGER).  DECIMAL(p,s) needs a Literal for digits d and gives DECIMAL(p, max(0, d)), or
    # its own type when d >= s; half away from zero.  Integers keep their type (d < 0 rounds to tens).
    FunctionRow("round", rounding, "round(number[, INTEGER])", bounds=rounded, whole="alone"),
    FunctionRow(
        "trunc", rounding, "trunc(number[, INTEGER])", bounds=rounded, whole="alone"
    ),  # as round, toward zero
    # Half to even, with as many digits as `round` leaves
    FunctionRow(
        "round_even",
        lambda types: rounding(types) if len(types) == 2 else None,
        "round_even(number, INTEGER)",
        ("roundbankers",),
    ),
    FunctionRow(
        "decimal_division",
        lambda types: None,  # its type has digits of its arguments: `derived` makes the call
        "decimal_division(DECIMAL, DECIMAL[, INTEGER])",
    ),
    FunctionRow(
        "sign", unary(_is_number, ty.TINYINT), "sign(number)", bounds=within(-1, 1)
    ),  # -1, 0, 1; NaN gives 0
    # IEEE arithmetic throughout, as in DuckDB 2.0: sqrt(-1) is NaN, ln(0) -inf, sin(inf) NaN; no errors.
    _of_doubles("sqrt", numpy="sqrt", libcudf="SQRT", math="sqrt", bounds=each_end(math.sqrt)),
    # numpy's cbrt is correctly rounded for more arguments than DuckDB's pow(x, 1/3), off by one unit in the last place.
    _of_doubles("cbrt", numpy="cbrt", libcudf="CBRT"),
    _of_doubles("exp", numpy="exp", libcudf="EXP", math="exp", bounds=each_end(math.exp)),
    _of_doubles("ln", numpy="log", libcudf="LOG", math="log", bounds=each_end(math.log)),
    _of_doubles("log10", "log", numpy="log10", math="log10", bounds=each_end(math.log10)),
    _of_doubles("log2", numpy="log2", math="log2", bounds=each_end(math.log2)),
    _of_doubles("power", "pow", "**", "^", count=2, numpy="power", libcudf="POW", math="pow"),
    *(
        _of_doubles(name, numpy=numpy, libcudf=numpy.upper(), math=name)
        for name, numpy in (
            *(("sin", "sin"), ("cos", "cos"), ("tan", "tan")),
            *(("asin", "arcsin"), ("acos", "arccos"), ("atan", "arctan")),
            *(("sinh", "sinh"), ("cosh", "cosh"), ("tanh", "tanh")),
            *(("asinh", "arcsinh"), ("acosh", "arccosh"), ("atanh", "arctanh")),
        )
    ),
    _of_doubles("atan2", count=2, numpy="arctan2", libcudf="ATAN2", math="atan2"),
    _of_doubles("degrees", numpy="degrees", math="degrees"),
    _of_doubles("radians", numpy="radians", math="radians"),
    _of_doubles("even"),  # the next even number away from zero
    FunctionRow("signbit", _FLOATING_OR_DOUBLE, "signbit(DOUBLE)"),
    FunctionRow(
        "nextafter",
        overloads(_floats, fixed(ty.DOUBLE, ty.DOUBLE, result=ty.DOUBLE)),
        "nextafter(DOUBLE, DOUBLE)",
        numpy="nextafter",
    ),
    FunctionRow(
        "bit_count",
        overloads(
            unary(lambda t: t == ty.UBIGINT, ty.SMALLINT),  # in DuckDB it is counted as a HUGEINT
            unary(lambda t: t.is_integer, ty.TINYINT),
        ),
        "bit_count(integer)",
        of_bits="bits_count",
    ),
    # BIGINT or HUGEINT; result not negative; OutOfRange.
    FunctionRow("gcd", _BIGINT_PAIR, "gcd(BIGINT, BIGINT)", ("greatest_common_divisor",)),
    FunctionRow("lcm", _BIGINT_PAIR, "lcm(BIGINT, BIGINT)", ("least_common_multiple",)),
    *(_test(f"is_{what}", f"is{what}") for what in ("nan", "inf", "finite")),
)
