"""Logic, comparison, arithmetic and bits: what SQL writes with signs and keywords.

Comments give the types after coercion where the signature leaves them open.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..types import BOOLEAN, DataType
from .row import FunctionRow
from .signatures import (
    addition,
    comparison,
    division,
    integer_division,
    multiplication,
    remainder,
    repeated,
    same,
    unary,
)


def _is_integer(data_type: DataType) -> bool:
    return data_type.is_integer


def _is_number(data_type: DataType) -> bool:
    return data_type.is_numeric


def _anything(types: Sequence[DataType]) -> tuple[tuple[DataType, ...], DataType] | None:
    return (tuple(types), BOOLEAN) if len(types) == 1 else None


LOGIC = (
    # n-ary, at least two BOOLEANs: FALSE and x is FALSE, TRUE or x is TRUE, for NULL x too.
    FunctionRow(
        "and",
        repeated(BOOLEAN, 2, BOOLEAN),
        "BOOLEAN AND BOOLEAN",
        (),
        "operator",
        "own",
        total=True,
    ),
    FunctionRow(
        "or", repeated(BOOLEAN, 2, BOOLEAN), "BOOLEAN OR BOOLEAN", (), "operator", "own", total=True
    ),
    FunctionRow(
        "not",
        unary(lambda t: t == BOOLEAN, null=BOOLEAN),
        "NOT BOOLEAN",
        (),
        "operator",
        total=True,
    ),
    # Any one type, the NULL type included; never NULL.
    FunctionRow("is_null", _anything, "any IS NULL", (), "operator", "never"),
    FunctionRow("is_not_null", _anything, "any IS NOT NULL", (), "operator", "never"),
)

# Both arguments have one type (decimals: the same precision and scale).  NaN equals NaN and is above every number.
COMPARISON = (
    FunctionRow("eq", comparison, "any = any", (), "operator", total=True),
    FunctionRow("ne", comparison, "any <> any", (), "operator", total=True),
    FunctionRow("lt", comparison, "any < any", (), "operator", total=True),
    FunctionRow("le", comparison, "any <= any", (), "operator", total=True),
    FunctionRow("gt", comparison, "any > any", (), "operator", total=True),
    FunctionRow("ge", comparison, "any >= any", (), "operator", total=True),
    FunctionRow("is_distinct", comparison, "any IS DISTINCT FROM any", (), "operator", "never"),
    FunctionRow(
        "is_not_distinct", comparison, "any IS NOT DISTINCT FROM any", (), "operator", "never"
    ),
)

ARITHMETIC = (
    # Both arguments have exactly the result's type.  Integers and decimals that do not fit: OutOfRange.
    FunctionRow("add", addition, "number + number", (), "operator", total=True),
    FunctionRow("sub", addition, "number - number", (), "operator", total=True),
    # Integers, floats and HUGEINT: one type throughout.  Decimals (p1,s1), (p2,s2) keep their own types and give (p,s1+s2),
    # p = p1+p2 but at most 18 when both have <= 18 digits (s permitting), else at most 38; OutOfRange beyond.
    FunctionRow("mul", multiplication, "number * number", (), "operator", total=True),
    # DOUBLE,DOUBLE -> DOUBLE or FLOAT,FLOAT -> FLOAT.  x/0 is +-inf, 0/0 is NaN; no error.
    FunctionRow("div", division, "number / number", (), "operator", total=True),
    # Integers, HUGEINT too, one type: truncates toward zero.  DOUBLE or FLOAT: plain x / y, as in DuckDB 2.0.
    # y = 0: ExecutionError, for floats too.  Smallest integer // -1: OutOfRange.
    FunctionRow("int_div", integer_division, "number // number", ("divide",), "operator"),
    # One type, the result's; sign of the dividend.  y = 0: ExecutionError, but NaN for floats.  Smallest integer % -1:
    # OutOfRange.
    FunctionRow("mod", remainder, "number % number", (), "operator"),
    # DOUBLE in place of decimals that no decimal type holds together.  y = 0: ExecutionError.
    FunctionRow("mod_of_decimals", remainder, "number % number", (), "operator"),
    # Same type.  Smallest integer, and unsigned other than 0: OutOfRange.
    FunctionRow("neg", unary(_is_number), "- number", (), "operator", total=True),
)

BITS = (
    # One integer type, the result's.
    FunctionRow("bit_and", same(_is_integer), "integer & integer", (), "operator"),
    FunctionRow("bit_or", same(_is_integer), "integer | integer", (), "operator"),
    FunctionRow("bit_xor", same(_is_integer), "xor(integer, integer)", ("xor",), "operator"),
    FunctionRow("bit_not", unary(_is_integer), "~ integer", (), "operator"),
    # One integer type.  Left: negative x, negative or too large shift, lost bits: OutOfRange; 0 stays 0.
    # Right: a shift outside of [0, width) gives 0, else arithmetic shift.
    FunctionRow("shift_left", same(_is_integer), "integer << integer", (), "operator"),
    FunctionRow("shift_right", same(_is_integer), "integer >> integer", (), "operator"),
)

OPERATORS = (*LOGIC, *COMPARISON, *ARITHMETIC, *BITS)
