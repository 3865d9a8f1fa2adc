"""Bounds of the integers behind integers and decimals, which tell backends whether arithmetic can leave its type."""

from __future__ import annotations

from decimal import Decimal

from ..plan.expr import Cast, Expr, Literal
from ..plan.types import DIGITS, DataType

Bounds = tuple[int, int]
INT64_RANGE: Bounds = (-(1 << 63), (1 << 63) - 1)
# What messages call arithmetic that may overflow
NAMES = {"add": "addition", "sub": "subtraction", "mul": "multiplication"}


def type_bounds(expr: Expr) -> Bounds:
    """Return what the type of an argument, a literal or a widening cast say about its unscaled values."""
    match expr:
        case Literal(value=None):
            return 0, 0
        case Literal(value=int() | Decimal() as value):
            number = int(Decimal(value).scaleb(expr.type.scale, DIGITS))
            return number, number
        case Cast(operand=inner) if inner.type.is_integer or inner.type.is_decimal:
            return rescaled(inner.type.integer_range, inner.type, expr.type)
    return expr.type.integer_range


def rescaled(found: Bounds, source: DataType, target: DataType) -> Bounds:
    """Return the bounds of a cast value, which has passed the check of the cast."""
    low, high = target.integer_range
    shift = target.scale - source.scale
    if shift < 0:
        return low, high
    return max(found[0] * 10**shift, low), min(found[1] * 10**shift, high)


def combined(function: str, left: Bounds, right: Bounds) -> Bounds:
    """Return the bounds of what add, sub or mul make of values within others."""
    if function == "add":
        return left[0] + right[0], left[1] + right[1]
    if function == "sub":
        return left[0] - right[1], left[1] - right[0]
    corners = [a * b for a in left for b in right]
    return min(corners), max(corners)


def inside(found: Bounds, limits: Bounds) -> bool:
    return limits[0] <= found[0] and found[1] <= limits[1]
