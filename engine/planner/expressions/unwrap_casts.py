"""Comparisons of a widened column with a constant, moved to the column's own type.

`cast(x as TIMESTAMP) <= TIMESTAMP '1998-09-02 00:00:00'` becomes `x <= DATE '1998-09-02'`: no cast for each row, and bounds from
statistics that apply.  Holds for casts that keep all values apart and in order.
"""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal

from ...plan.expr import Call, Cast, Expr, InList, Literal, Value
from ...plan.functions import COMPARISONS, MIRRORED, SCALAR
from ...plan.types import BOOLEAN, DIGITS, DataType, Kind
from .fold import WIDE

MAX_DOUBLE_INTEGER_BITS = 53


def unwrapped(expr: Expr) -> Expr | None:
    """Return a comparison without its widening cast, with the constant on the right; None when it has that form already."""
    match expr:
        case Call(function=function, args=(Literal() as value, other)) if (
            function in COMPARISONS and not isinstance(other, Literal)
        ):
            return Call(MIRRORED[function], (other, value), BOOLEAN, expr.span)
        case Call(function=function, args=(Cast(safe=False) as a, Cast(safe=False) as b)) if (
            function in COMPARISONS and a.operand.type == b.operand.type and _keeps_order(a)
        ):
            return Call(function, (a.operand, b.operand), BOOLEAN, expr.span)
        case Call(function=function, args=(Cast(safe=False) as cast, Literal(value=value))) if (
            function in COMPARISONS and value is not None and _keeps_order(cast)
        ):
            return _compared(function, cast.operand, value)
        case InList(operand=Cast(safe=False) as cast, values=values) if _keeps_order(cast):
            return _listed(cast.operand, values)
    return None


def _keeps_order(cast: Cast) -> bool:
    source, target = cast.operand.type, cast.type
    if isinstance(cast.operand, Literal):
        return False
    if source.is_integer:
        if target.is_integer:
            low, high = source.integer_range
            wide_low, wide_high = target.integer_range
            return wide_low <= low and high <= wide_high
        if target.is_decimal:
            digits = len(str(max(abs(v) for v in source.integer_range)))
            return digits <= target.precision - target.scale
        small = source.integer_range[1].bit_length() <= MAX_DOUBLE_INTEGER_BITS
        return target.kind is Kind.DOUBLE and small
    if source.is_decimal and target.is_decimal:
        wider = target.precision - target.scale >= source.precision - source.scale
        return wider and target.scale >= source.scale
    return source.kind is Kind.DATE and target.kind is Kind.TIMESTAMP


def _compared(function: str, operand: Expr, value: Value) -> Expr | None:
    floor = _floor(value, operand.type)
    if floor is None:
        return None
    below, exact = floor
    literal = Literal(below, operand.type)
    low, high = _limits(operand.type)
    if exact:
        return Call(function, (operand, literal), BOOLEAN)
    match function:
        case "eq":
            return _false_for_values(operand)
        case "ne":
            return _true_for_values(operand)
        case "is_distinct":
            return Literal(True, BOOLEAN)
        case "is_not_distinct":
            return Literal(False, BOOLEAN)
    # No value of the operand's type lies between `below` and the constant.
    upper = SCALAR[function].bound == "upper"
    if high is not None and below >= high:  # type: ignore[operator]
        return _true_for_values(operand) if upper else _false_for_values(operand)
    if low is not None and below < low:  # type: ignore[operator]
        return _false_for_values(operand) if upper else _true_for_values(operand)
    return Call("le" if upper else "gt", (operand, literal), BOOLEAN)


def _listed(operand: Expr, values: tuple[Literal, ...]) -> Expr | None:
    kept = []
    for literal in values:
        if literal.value is None:
            kept.append(Literal(None, operand.type))
            continue
        floor = _floor(literal.value, operand.type)
        if floor is None:
            return None
        if floor[1]:
            kept.append(Literal(floor[0], operand.type))
    return InList(operand, tuple(kept)) if kept else _false_for_values(operand)


def _floor(value: Value, target: DataType) -> tuple[Value, bool] | None:
    """Return the largest value of `target` that is not above `value`, and whether it is the same; None when unclear.

    Beyond the type's range the floor is outside of it, and not the same.
    """
    if target.kind is Kind.DATE:
        if not isinstance(value, datetime):
            return None
        day = date(value.year, value.month, value.day)
        midnight = value - datetime(day.year, day.month, day.day) == timedelta(0)
        return day, midnight
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = Decimal(value)
    if not isinstance(value, int | Decimal) or isinstance(value, bool):
        return None
    number = Decimal(value)
    # A double has up to 309 digits before the point
    floored = number.quantize(Decimal(1).scaleb(-target.scale), ROUND_FLOOR, DIGITS)
    low, high = _limits(target)
    inside = low is not None and high is not None and low <= floored <= high  # type: ignore[operator]
    result: Value = int(floored) if target.is_integer else floored
    return result, bool(inside and floored == number)


def _limits(data_type: DataType) -> tuple[Value, Value]:
    if data_type.is_integer:
        return data_type.integer_range
    if data_type.is_decimal:
        low, high = data_type.integer_range
        return Decimal(low).scaleb(-data_type.scale, WIDE), Decimal(high).scaleb(
            -data_type.scale, WIDE
        )
    return None, None


def _false_for_values(operand: Expr) -> Expr:
    """FALSE for a value, NULL for NULL."""
    return Call("and", (Call("is_null", (operand,), BOOLEAN), Literal(None, BOOLEAN)), BOOLEAN)


def _true_for_values(operand: Expr) -> Expr:
    """TRUE for a value, NULL for NULL."""
    return Call("or", (Call("is_not_null", (operand,), BOOLEAN), Literal(None, BOOLEAN)), BOOLEAN)
