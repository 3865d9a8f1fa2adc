"""decimal_division(a, b[, scale]): a quotient that is a DECIMAL, whose digits follow from those of its arguments."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvalidQuery, OutOfRange, Span, TypeMismatch
from ..casts import coerce
from ..coercion import as_decimal
from ..expr import Call, Expr, Literal
from ..functions.constant_arguments import constant
from ..types import MAX_DECIMAL_DIGITS, NULL, decimal

LEAST_SCALE = 6  # of a quotient whose scale is not given
SIGNATURE = "decimal_division(DECIMAL, DECIMAL[, INTEGER])"


def decimal_division(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return the quotient with all digits that its greatest value needs; raises `OutOfRange` where these are more than 38."""
    if any(a.type == NULL for a in args):
        return Literal(None, NULL, span)
    for arg in args[:2]:
        if not (arg.type.is_integer or arg.type.is_decimal):
            raise TypeMismatch(f"{SIGNATURE} does not take {arg.type}.", arg.span or span)
    left, right = (as_decimal(a.type) for a in args[:2])
    scale = _given_scale(args[2]) if len(args) > 2 else None
    if scale is None:
        scale = max(LEAST_SCALE, left.scale + right.precision + 1)
    digits = left.precision - left.scale + right.scale + scale
    if max(digits, scale) > MAX_DECIMAL_DIGITS:
        raise OutOfRange(
            f"The quotient of {left} and {right} has {max(digits, scale)} digits, and a DECIMAL at most {MAX_DECIMAL_DIGITS}: "
            "give it a scale as third argument, or cast an argument to one with fewer digits.",
            span,
        )
    made = (coerce(args[0], left), coerce(args[1], right))
    return Call("decimal_division", made, decimal(digits, scale), span)


def _given_scale(arg: Expr) -> int:
    found = constant(arg)
    if not isinstance(found, Literal) or not isinstance(found.value, int):
        raise InvalidQuery("The scale of decimal_division is a constant integer.", arg.span)
    if not 0 <= found.value <= MAX_DECIMAL_DIGITS:
        raise OutOfRange(
            f"The scale of decimal_division is between 0 and {MAX_DECIMAL_DIGITS}.", arg.span
        )
    return found.value
