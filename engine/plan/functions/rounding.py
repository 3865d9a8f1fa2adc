"""Round, trunc, ceil and floor, whose number of digits is part of their type."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvalidQuery, Span
from ..casts import coerce
from ..expr import Call, Expr, Literal
from ..types import BIGINT, HUGEINT, MAX_DECIMAL_DIGITS, UBIGINT, DataType, decimal
from .constant_arguments import constant


def signed_of(kind: DataType) -> DataType:
    """Return the type in which integers without a sign are rounded; others stay."""
    if kind.is_signed_integer:
        return kind
    return HUGEINT if kind == UBIGINT else BIGINT


def rounded(name: str, args: Sequence[Expr], result: DataType, span: Span | None) -> Expr:
    """Return the call with typed arguments; what has no such digits stays as it is, decimals take their new scale."""
    number, *written = args
    digits = [constant(d) for d in written]
    free = name == "round_even" and number.type.is_whole
    if digits and number.type.is_decimal and not (free or isinstance(digits[0], Literal)):
        family = "HUGEINT" if number.type.is_whole else "DECIMAL"
        raise InvalidQuery(
            f"The digits of {name} have to be a constant for a {family}.", digits[0].span
        )
    if not number.type.is_decimal or number.type.is_whole:
        keep = number.type.is_whole and (not digits or _constant_digits(digits[0]) >= 0)
        return number if keep else Call(name, (number, *digits), result, span)
    count = _constant_digits(digits[0]) if digits else 0
    if name == "round" and not number.type.scale and -number.type.precision <= count < 0:
        wider = decimal(min(number.type.precision + 1, MAX_DECIMAL_DIGITS), 0)
        return Call(name, (coerce(number, wider), *digits), wider, span)
    if count >= number.type.scale:
        return number
    result = decimal(number.type.precision, max(0, count))
    return Call(name, (number, *digits), result, span)


def _constant_digits(digits: Expr) -> int:
    """Return a literal number of digits, -1 for one that is not known."""
    return digits.value if isinstance(digits, Literal) and isinstance(digits.value, int) else -1
