"""Logic, comparison, arithmetic and bits: what SQL writes with signs and keywords.

Comments give the types after coercion where the signature leaves them open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..types import BIGINT, BIT, BOOLEAN, INTEGER, NULL, VARCHAR, DataType, list_of
from .row import (
    FunctionRow,
    Resolved,
    addition,
    comparison,
    division,
    fixed,
    integer_division,
    multiplication,
    operator,
    overloads,
    remainder,
    repeated,
    same,
    unary,
)
from .value_bounds import corners, each_end, quotient, remaining


def _is_integer(data_type: DataType) -> bool:
    return data_type.is_integer


def _is_number(data_type: DataType) -> bool:
    return data_type.is_numeric


def _anything(types: Sequence[DataType]) -> tuple[tuple[DataType, ...], DataType] | None:
    return (tuple(types), BOOLEAN) if len(types) == 1 else None


def _divides(divisor: float | None) -> bool:
    return divisor is not None and abs(divisor) > 1


LOGIC = (
    # n-ary, at least two BOOLEANs: FALSE and x is FALSE, TRUE or x is TRUE, for NULL x too.
    *(
        operator(
            name,
            repeated(BOOLEAN, 2, BOOLEAN),
            f"BOOLEAN {name.upper()} BOOLEAN",
            nulls="all",
            total=True,
            raises=False,
        )
        for name in ("and", "or")
    ),
    operator(
        "not", unary(lambda t: t == BOOLEAN, null=BOOLEAN), "NOT BOOLEAN", total=True, raises=False
    ),
    # Any one type, the NULL type included; never NULL.
    operator(
        "is_null", _anything, "any IS NULL", nulls="never", negated="is_not_null", raises=False
    ),
    operator(
        "is_not_null", _anything, "any IS NOT NULL", nulls="never", negated="is_null", raises=False
    ),
)


def _compares(
    name: str, sign: str, mirrored: str, negated: str, nulls: str = "propagate", **traits: Any
) -> FunctionRow:
    """Both arguments have one type (decimals: the same precision and scale).  NaN equals NaN and is above every number."""
    traits |= {"mirrored": mirrored, "negated": negated, "nulls": nulls, "raises": False}
    return operator(name, comparison, f"any {sign} any", total=nulls == "propagate", **traits)


COMPARISON = (
    _compares("eq", "=", "eq", "ne", bound="both"),
    _compares("ne", "<>", "ne", "eq"),
    _compares("lt", "<", "gt", "ge", bound="upper"),
    _compares("le", "<=", "ge", "gt", bound="upper", or_equal=True),
    _compares("gt", ">", "lt", "le", bound="lower"),
    _compares("ge", ">=", "le", "lt", bound="lower", or_equal=True),
    _compares("is_distinct", "IS DISTINCT FROM", "is_distinct", "is_not_distinct", "never"),
    _compares(
        "is_not_distinct",
        "IS NOT DISTINCT FROM",
        "is_not_distinct",
        "is_distinct",
        "never",
        bound="both",
    ),
)

ARITHMETIC = (
    # Both arguments have exactly the result's type.  Integers and decimals that do not fit: OutOfRange.
    operator(
        "add",
        addition,
        "number + number",
        total=True,
        of_lists="list_concat",
        bounds=corners(lambda x, y: x + y),
        whole="of whole",
    ),
    operator(
        "sub",
        addition,
        "number - number",
        total=True,
        bounds=corners(lambda x, y: x - y),
        whole="of whole",
    ),
    # Integers, floats and HUGEINT: one type throughout.  Decimals (p1,s1), (p2,s2) keep their own types and give (p,s1+s2),
    # p = p1+p2 but at most 18 when both have <= 18 digits (s permitting), else at most 38; OutOfRange beyond.
    operator(
        "mul",
        multiplication,
        "number * number",
        total=True,
        bounds=corners(lambda x, y: x * y),
        whole="of whole",
    ),
    # DOUBLE,DOUBLE -> DOUBLE or FLOAT,FLOAT -> FLOAT.  x/0 is +-inf, 0/0 is NaN; no error.
    operator(
        "div", division, "number / number", total=True, raises=False, bounds=quotient(whole=False)
    ),
    # Integers, HUGEINT too, one type: truncates toward zero.  DOUBLE or FLOAT: plain x / y, as in DuckDB 2.0.
    # y = 0: ExecutionError, for floats too.  Smallest integer // -1: OutOfRange.
    operator(
        "int_div",
        integer_division,
        "number // number",
        "divide",
        by_zero="error",
        bounds=quotient(whole=True),
        safe_with=_divides,
    ),
    # One type, the result's; sign of the dividend.  y = 0: ExecutionError, but NaN for floats.  Smallest integer % -1:
    # OutOfRange.
    operator(
        "mod",
        remainder,
        "number % number",
        by_zero="error if exact",
        bounds=remaining,
        safe_with=_divides,
    ),
    # DOUBLE in place of decimals that no decimal type holds together.  y = 0: ExecutionError.
    operator("mod_of_decimals", remainder, "number % number", by_zero="error"),
    # Same type.  Smallest integer, and unsigned other than 0: OutOfRange.
    operator("neg", unary(_is_number), "- number", total=True, bounds=each_end(lambda x: -x)),
)

BITS = (
    # One integer type, the result's.
    operator(
        "bit_and", same(_is_integer), "integer & integer", numpy="bitwise_and", of_bits="bits_and"
    ),
    operator(
        "bit_or", same(_is_integer), "integer | integer", numpy="bitwise_or", of_bits="bits_or"
    ),
    operator(
        "bit_xor",
        same(_is_integer),
        "xor(integer, integer)",
        "xor",
        numpy="bitwise_xor",
        of_bits="bits_xor",
    ),
    operator("bit_not", unary(_is_integer), "~ integer", numpy="invert", of_bits="bits_not"),
    # One integer type.  Left: negative x, negative or too large shift, lost bits: OutOfRange; 0 stays 0.
    # Right: a shift outside of [0, width) gives 0, else arithmetic shift.
    operator("shift_left", same(_is_integer), "integer << integer", of_bits="bits_left"),
    operator("shift_right", same(_is_integer), "integer >> integer", of_bits="bits_right"),
)

OPERATORS = (*LOGIC, *COMPARISON, *ARITHMETIC, *BITS)


_PAIR = fixed(BIT, BIT, result=BIT)
_SHIFT = fixed(BIT, INTEGER, result=BIT)
_COUNT = fixed(BIT, result=BIGINT)


def _members(types: Sequence[DataType]) -> Resolved:
    """A list of whole numbers, and the least and the most that a bit is for."""
    if len(types) != 3 or not all(t.is_whole or t == NULL for t in types[1:]):
        return None
    return tuple(types), BIT


BITS_OF_TYPE = (
    operator("bits_and", _PAIR, "BIT & BIT"),
    operator("bits_or", _PAIR, "BIT | BIT"),
    operator("bits_xor", _PAIR, "xor(BIT, BIT)"),
    operator("bits_not", fixed(BIT, result=BIT), "~ BIT"),
    operator("bits_left", _SHIFT, "BIT << INTEGER"),
    operator("bits_right", _SHIFT, "BIT >> INTEGER"),
    operator("bits_length", _COUNT, "length(BIT)"),
    operator("bits_bytes", _COUNT, "octet_length(BIT)"),
    operator("bits_count", _COUNT, "bit_count(BIT)"),
    FunctionRow("bit_position", fixed(BIT, BIT, result=INTEGER), "bit_position(BIT, BIT)"),
    # Places count from 0, at the left
    FunctionRow("get_bit", fixed(BIT, INTEGER, result=INTEGER), "get_bit(BIT, INTEGER)"),
    FunctionRow(
        "set_bit", fixed(BIT, INTEGER, INTEGER, result=BIT), "set_bit(BIT, INTEGER, INTEGER)"
    ),
    FunctionRow(
        "bitstring",
        overloads(fixed(VARCHAR, INTEGER, result=BIT), fixed(BIT, INTEGER, result=BIT)),
        "bitstring(BIT | VARCHAR, INTEGER)",
    ),
    *(
        operator(f"bit_{name}_of_list", fixed(list_of(BIT), result=BIT), f"bit_{name}(BIT)")
        for name in ("and", "or", "xor")
    ),
    operator("bits_of_members", _members, "bitstring_agg(integer, min, max)"),
)
