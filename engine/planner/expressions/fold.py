"""The value of a call or a cast whose arguments are literals, exactly as a backend would compute it.

What would raise, and what depends on more than plain arithmetic, is left for run time: `folded` then gives None.
"""

from __future__ import annotations

import calendar
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

from ...errors import FuselineError
from ...plan.expr import Call, Cast, Expr, InList, Interval, Literal, Value
from ...plan.functions import STRICT
from ...plan.literals import convert
from ...plan.types import BOOLEAN, DataType, Kind

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
            if any(a.value is None for a in literals) and function in STRICT:
                return Literal(None, expr.type)
            if len(literals) < len(args):
                return None
        case Cast(operand=Literal(value=None)):
            return Literal(None, expr.type)
        case Cast(operand=Literal()) | InList(operand=Literal()):
            pass
        case _:
            return None
    return _computed(expr)


def _computed(expr: Expr) -> Literal | None:
    try:
        with localcontext(WIDE):
            match expr:
                case Call(function=function, args=args):
                    return _call(function, args, expr.type)
                case Cast(operand=Literal(value=value, type=source)):
                    return Literal(converted(value, source, expr.type), expr.type)
                case InList(operand=Literal(value=value), values=values):
                    return _in_list(value, [v.value for v in values])
    except (_LeftForRunTime, FuselineError, ArithmeticError, ValueError):
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
    return Literal(_fitted(_FUNCTIONS[function](*(a.value for a in literals)), result), result)


def _in_list(value: Value, values: list[Value]) -> Literal:
    if value is None:
        return Literal(None, BOOLEAN)
    if any(v is not None and compare(value, v) == 0 for v in values):
        return Literal(True, BOOLEAN)
    return Literal(None if None in values else False, BOOLEAN)


def compare(a: Any, b: Any) -> int:
    """Order two values of one type, as SQL does; floats that are NaN are left for run time."""
    if isinstance(a, Interval) or is_nan(a) or is_nan(b):
        raise _LeftForRunTime
    return (a > b) - (a < b)


def is_nan(value: Any) -> bool:
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


def _add_interval(start: Any, interval: Interval, sign: int = 1) -> datetime:
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


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return compare(a, b) == 0


_ARITHMETIC: Mapping[str, Callable[..., Any]] = {
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

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
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


def _calendar_part(value: Any, part: str) -> int:
    if not isinstance(value, date):
        raise _LeftForRunTime
    return int(getattr(value, part))
