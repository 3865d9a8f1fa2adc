"""The value of a call or a cast whose arguments are literals, exactly as a backend would compute it, and casts moved off columns.

What would raise, and what depends on more than plain arithmetic, is left for run time: `folded` then gives None.
`cast(x as TIMESTAMP) <= TIMESTAMP '1998-09-02 00:00:00'` becomes `x <= DATE '1998-09-02'`: no cast for each row, and bounds from
statistics that apply.  Holds for casts that keep all values apart and in order.
"""

from __future__ import annotations

import calendar
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any, Literal as OneOf

from ...errors import FuselineError
from ...plan.expr import Call, Cast, Expr, InList, Interval, Literal, Value
from ...plan.functions import COMPARISONS, MIRRORED, SCALAR, STRICT
from ...plan.literals import convert
from ...plan.shapes.guards import computed, decided
from ...plan.text.number_text import NoSuchValue
from ...plan.types import BOOLEAN, DIGITS, DataType, Kind

EXACT_IN_DOUBLE = 1 << 53
EXACT_POWERS_IN_DOUBLE = 22  # 10**22 is the largest power of ten that a double holds exactly
WIDE = Context(prec=120)  # beyond any product of two DECIMAL(38)


class _LeftForRunTime(Exception):
    """This value is not computed while planning."""


def folded(expr: Expr) -> Literal | None:
    """Return the literal that `expr` over literals is, or None."""
    match expr:
        case Call(function=function, args=args):
            literals = [a for a in args if isinstance(a, Literal)]
            if any(a.is_null for a in literals) and function in STRICT:
                return Literal(None, expr.type)
            if len(literals) < len(args):
                return None
        case Cast(operand=Literal(is_null=True)):
            return Literal(None, expr.type)
        case Cast(operand=Literal()) | InList(operand=Literal()):
            pass
        case _:
            return None
    return _computed(expr)


def _computed(expr: Expr) -> Literal | None:
    try:
        match expr:
            case Call(function=function, args=args):
                return _call(function, args, expr.type)
            case Cast(operand=Literal(type=source) as operand):
                target = expr.type
                return computed(_converted_exactly, operand, source, target, data_type=target)
            case InList(operand=Literal() as operand, values=values):
                return computed(_in_list, operand, *values, data_type=BOOLEAN)
    except (_LeftForRunTime, NoSuchValue, FuselineError, ArithmeticError):
        pass
    return None


def _call(function: str, args: Sequence[Expr], result: DataType) -> Literal | None:
    literals = [a for a in args if isinstance(a, Literal)]
    if function not in _FUNCTIONS:
        return None
    if any(
        a.type.kind in (Kind.FLOAT, Kind.INTERVAL) and function in _ARITHMETIC for a in literals
    ):
        return None  # 32-bit arithmetic is the backend's; intervals compare by rules of their own
    return computed(_called, function, result, *literals, data_type=result)


def _called(function: str, result: DataType, *values: Value) -> Value:
    with localcontext(WIDE):
        return _fitted(_FUNCTIONS[function](*values), result)


def _converted_exactly(value: Value, source: DataType, target: DataType) -> Value:
    with localcontext(WIDE):
        return converted(value, source, target)


def _in_list(value: Value, *values: Value) -> bool | None:
    if value is None:
        return None
    if any(v is not None and compare(value, v) == 0 for v in values):
        return True
    return None if None in values else False


def compare(a: Any, b: Any) -> int:
    """Order two values of one type, as SQL does; floats that are NaN are left for run time."""
    if isinstance(a, Interval) or is_nan(a) or is_nan(b):
        raise _LeftForRunTime
    return (a > b) - (a < b)


def is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _fitted(value: Any, data_type: DataType) -> Value:
    """Return a value in its type's own form, unless it does not fit."""
    if value is None:
        return None
    if data_type.is_integer:
        low, high = data_type.integer_range
        if not low <= int(value) <= high or int(value) != value:
            raise _LeftForRunTime
        return int(value)
    if data_type.is_decimal:
        return fit_decimal(Decimal(value), data_type)
    if data_type.kind is Kind.DOUBLE and not math.isfinite(value):
        raise _LeftForRunTime
    return value


def fit_decimal(value: Decimal, data_type: DataType) -> Decimal:
    """Round half away from zero to the type's scale."""
    rounded = value.quantize(Decimal(1).scaleb(-data_type.scale), ROUND_HALF_UP, WIDE)
    if abs(rounded.scaleb(data_type.scale, WIDE)) >= 10**data_type.precision:
        raise _LeftForRunTime
    return rounded


def converted(value: Value, source: DataType, target: DataType) -> Value:
    """Return the value of a cast that does not fail."""
    if target.is_float and (source.is_integer or source.is_decimal):
        assert isinstance(value, int | Decimal)
        # A backend divides the unscaled value by a power of ten: the nearest double as long as both are exact.
        unscaled = Decimal(value).scaleb(source.scale, WIDE)
        if abs(unscaled) >= EXACT_IN_DOUBLE or source.scale > EXACT_POWERS_IN_DOUBLE:
            raise _LeftForRunTime
    return convert(value, source, target)


def _add_interval(start: date, interval: Interval, sign: int = 1) -> datetime:
    """Months first, clipped to the month's end, then days, then microseconds."""
    if not isinstance(start, datetime):
        start = datetime(start.year, start.month, start.day)
    months = start.year * 12 + start.month - 1 + sign * interval.months
    year, month = divmod(months, 12)
    if not 1 <= year <= 9999:
        raise _LeftForRunTime
    day = min(start.day, calendar.monthrange(year, month + 1)[1])
    moved = start.replace(year=year, month=month + 1, day=day)
    return moved + sign * timedelta(days=interval.days, microseconds=interval.micros)


def _truncated_division(a: int, b: int) -> int:
    if b == 0 or not isinstance(a, int) or not isinstance(b, int):
        raise _LeftForRunTime
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _division(a: float, b: float) -> float:
    if b == 0:
        raise _LeftForRunTime
    return a / b


def _same(a: Value, b: Value) -> bool:
    if a is None or b is None:
        return a is b
    return compare(a, b) == 0


_ARITHMETIC: Mapping[str, Callable[..., Value]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _division,
    "int_div": _truncated_division,
    "mod": lambda a, b: a - b * _truncated_division(a, b),
    "neg": lambda a: -a,
    "eq": lambda a, b: compare(a, b) == 0,
    "ne": lambda a, b: compare(a, b) != 0,
    "lt": lambda a, b: compare(a, b) < 0,
    "le": lambda a, b: compare(a, b) <= 0,
    "gt": lambda a, b: compare(a, b) > 0,
    "ge": lambda a, b: compare(a, b) >= 0,
    "is_distinct": lambda a, b: not _same(a, b),
    "is_not_distinct": _same,
}

_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    **_ARITHMETIC,
    "is_null": lambda a: a is None,
    "is_not_null": lambda a: a is not None,
    "not": lambda a: not a,
    "add_interval": _add_interval,
    "sub_interval": lambda a, b: _add_interval(a, b, -1),
    "add_days": lambda a, n: a + timedelta(days=n),
    "sub_days": lambda a, n: a - timedelta(days=n),
    "date_minus_date": lambda a, b: (a - b).days,
    "year": lambda a: _calendar_part(a, "year"),
    "month": lambda a: _calendar_part(a, "month"),
    "day": lambda a: _calendar_part(a, "day"),
}


def _calendar_part(value: Value, part: str) -> int:
    if not isinstance(value, date):
        raise _LeftForRunTime
    return int(getattr(value, part))


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
        case Call(function=function, args=(Cast(safe=False) as cast, Literal() as value)) if (
            function in COMPARISONS and not value.is_null and _keeps_order(cast)
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


def _compared(function: str, operand: Expr, value: Literal) -> Expr | None:
    place = decided(_place_among, value, operand.type)
    if place is None:
        return None
    literal = computed(_floor_alone, value, operand.type, data_type=operand.type)
    if place == "exact":
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
    if place == "above":
        return _true_for_values(operand) if upper else _false_for_values(operand)
    if place == "below":
        return _false_for_values(operand) if upper else _true_for_values(operand)
    return Call("le" if upper else "gt", (operand, literal), BOOLEAN)


def _place_among(
    value: Value, target: DataType
) -> OneOf["exact", "above", "below", "between", None]:
    """Return where a constant lies among the values of a type: it is one, or above or below of all, or between two."""
    floor = _floor(value, target)
    if floor is None:
        return None
    below, exact = floor
    low, high = _limits(target)
    if exact:
        return "exact"
    if high is not None and below >= high:  # type: ignore[operator]
        return "above"
    return "below" if low is not None and below < low else "between"  # type: ignore[operator]


def _floor_alone(value: Value, target: DataType) -> Value:
    floor = _floor(value, target)
    assert floor is not None
    return floor[0]


def _listed(operand: Expr, values: tuple[Literal, ...]) -> Expr | None:
    kept = []
    for literal in values:
        if literal.is_null:
            kept.append(Literal(None, operand.type))
            continue
        place = decided(_place_among, literal, operand.type)
        if place is None:
            return None
        if place == "exact":
            kept.append(computed(_floor_alone, literal, operand.type, data_type=operand.type))
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
