"""fill(x) OVER (ORDER BY key): NULLs of x replaced by what lies on the line through the nearest two values, made of lag and lead."""

from __future__ import annotations

from ...errors import Span, TypeMismatch
from .. import derived, infer, types as ty
from ..calendar import EPOCH_DAY
from ..expr import Call, Cast, Expr, Literal
from ..functions import WINDOW
from .window_call import WHOLE, WindowCall


def filled(value: Expr, key: Expr, span: Span | None) -> Expr:
    """Return the value, or for NULL that of the line at the key; NULL where that is beyond the type.

    Points have a finite value and a finite key. Between two of them the line goes through both, before and behind all
    through the two nearest; of one point alone it is level.
    """
    for what, expr in (("argument", value), ("order", key)):
        if not (expr.type.is_numeric or expr.type.is_temporal):
            raise TypeMismatch(
                f"The {what} of fill() is a number, a date or a time, and not {expr.type}.",
                expr.span or span,
            )
    here = _finite(key)
    known = infer.call("and", [_finite(value), here])
    x = infer.case([known], [_number(value)], None)
    at = infer.case([known], [_place(key)], None)
    (x1, at1), (x2, at2) = (_near("lag", x, at, n, span) for n in (1, 2))
    (x3, at3), (x4, at4) = (_near("lead", x, at, n, span) for n in (1, 2))
    before, behind = (infer.call("is_not_null", [point]) for point in (x1, x3))
    between = infer.call("and", [before, behind])
    last, first = (infer.call("is_not_null", [point]) for point in (x2, x4))
    low, high = (
        infer.case([between, last, first], list(ways), None)
        for ways in ((x1, x2, x3), (x3, x1, x4))
    )
    start, end = (
        infer.case([between, last, first], list(ways), None)
        for ways in ((at1, at2, at3), (at3, at1, at4))
    )
    part = infer.call("div", [_distance(_place(key), start), _distance(end, start)])
    line = _line(low, high, part, value.type)
    level = infer.call("coalesce", [x1, x3])
    alone = infer.call("is_null", [low])
    steep = infer.compare("eq", start, end)
    found = infer.case([alone, steep], [level, low], line)
    missing = infer.call("and", [infer.call("is_null", [value]), here])
    return infer.case([missing], [_of_number(found, between, value.type)], value, span)


def _line(low: Expr, high: Expr, part: Expr, kind: ty.DataType) -> Expr:
    """Return the value on the way from one point to another, in the order in which DuckDB multiplies."""
    if kind.is_float or kind == ty.HUGEINT:
        rest = infer.call("sub", [Literal(1.0, ty.DOUBLE), part])
        return infer.call("add", [infer.call("mul", [low, rest]), infer.call("mul", [high, part])])
    distance = infer.call("sub", [high, low])
    return infer.call("add", [low, infer.call("mul", [distance, part])])


def _near(name: str, x: Expr, at: Expr, rows: int, span: Span | None) -> tuple[Expr, Expr]:
    """Return the value and the key of the n-th point before or behind a row."""
    calls = []
    for each in (x, at):
        args, result = infer.typed(WINDOW[name], [each, Literal(rows, ty.BIGINT)], span)
        calls.append(WindowCall(name, args, result, WHOLE, ignore_nulls=True, span=span))
    return calls[0], calls[1]


def _finite(expr: Expr) -> Expr:
    known = infer.call("is_not_null", [expr])
    bounded = not expr.type.is_float and (not expr.type.is_temporal or expr.type == ty.TIME)
    if bounded:
        return known
    if expr.type.is_ticks and expr.type != ty.TIMESTAMPTZ:
        expr = infer.cast(expr, ty.TIMESTAMP)
    return infer.call("and", [known, derived.function("isfinite", [expr])])


def _place(expr: Expr) -> Expr:
    """Return a key as a number that is exact, so that differences are."""
    if expr.type.is_float:
        return infer.cast(expr, ty.DOUBLE)
    if expr.type.is_decimal and not expr.type.is_whole:
        return expr
    return infer.cast(_ticks(expr), ty.HUGEINT)


def _distance(end: Expr, start: Expr) -> Expr:
    return infer.cast(infer.call("sub", [end, start]), ty.DOUBLE)


def _ticks(expr: Expr) -> Expr:
    """Return the integer that a moment is: of a DATE the day."""
    if expr.type == ty.DATE:
        return infer.cast(infer.call("sub", [expr, Literal(EPOCH_DAY, ty.DATE)]), ty.BIGINT)
    return Call("ticks", (expr,), ty.BIGINT) if expr.type.is_ticks else expr


def _number(expr: Expr) -> Expr:
    """Return a value as a DOUBLE: of a DECIMAL its digits."""
    if expr.type.is_decimal and expr.type.scale:
        power = Literal(float(10**expr.type.scale), ty.DOUBLE)
        return infer.call("mul", [infer.cast(expr, ty.DOUBLE), power])
    return infer.cast(_ticks(expr), ty.DOUBLE)


def _of_number(number: Expr, between: Expr, kind: ty.DataType) -> Expr:
    """Return the value of a type that a DOUBLE is cut to between points, and rounded to beyond them; NULL where there is none."""
    if kind.is_float:
        return infer.cast(number, kind)
    cut, rounded = (
        infer.call("trunc", [number]),
        infer.call("round_even", [number, Literal(0, ty.INTEGER)]),
    )
    whole = cut if kind == ty.HUGEINT else infer.case([between], [cut], rounded)
    if kind.is_decimal and kind.scale:
        power = Literal(float(10**kind.scale), ty.DOUBLE)
        return infer.cast(infer.call("div", [whole, power]), kind, safe=True)
    if kind.is_numeric:
        return infer.cast(whole, kind, safe=True)
    if kind == ty.DATE:
        days = infer.cast(whole, ty.INTEGER, safe=True)
        return infer.call("add", [Literal(EPOCH_DAY, ty.DATE), days])
    count = infer.cast(whole, ty.BIGINT, safe=True)
    if kind == ty.TIME:
        return Call("time_of_ticks", (count,), ty.TIME)
    if kind == ty.TIMESTAMP_NS:
        return infer.call("make_timestamp_ns", [count])
    units = {ty.Kind.TIMESTAMP_S: 10**6, ty.Kind.TIMESTAMP_MS: 10**3}
    if kind.kind in units:
        count = infer.call("mul", [count, Literal(units[kind.kind], ty.BIGINT)])
    made = infer.call("make_timestamp", [count])
    return made if kind == ty.TIMESTAMP else Cast(made, kind)
