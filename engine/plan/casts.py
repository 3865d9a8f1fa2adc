"""Casts, written and implicit, and the type that several expressions take together.

Literals are more flexible than their types: an integer literal takes the type of an integer beside it that holds it, a string
literal any type at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal

from ..errors import ConversionError, Located, Span, TypeMismatch
from . import types as ty
from .coercion import castable, common, common_pair
from .expr import Call, Cast, Expr, Literal, Value
from .literals import BeyondPython, convert, integer
from .shapes.guards import computed, decided
from .temporal import nested_moments, zones

_in_try: ContextVar[bool] = ContextVar("in_try", default=False)


@contextmanager
def texts_read_late() -> Iterator[None]:
    """Have text literals that are no value of their type fail when they are evaluated, as TRY() needs."""
    token = _in_try.set(True)
    try:
        yield
    finally:
        _in_try.reset(token)


def condition(expr: Expr) -> Expr:
    """Return `expr` as the BOOLEAN that WHERE, AND or CASE needs; numbers and text are cast as in DuckDB."""
    kind = expr.type.kind
    if kind is ty.Kind.BOOLEAN:
        return expr
    if expr.type.is_numeric or kind in (ty.Kind.NULL, ty.Kind.VARCHAR):
        return coerce(expr, ty.BOOLEAN)
    raise TypeMismatch(f"A condition is BOOLEAN and this is {expr.type}: compare it.", expr.span)


def common_type(types: Sequence[ty.DataType], span: Span | None = None) -> ty.DataType:
    """Return the type that columns of `types` take together, in UNION for example; raises `TypeMismatch`."""
    found = common(types)
    if found is None:
        names = " and ".join(dict.fromkeys(map(str, types)))
        raise TypeMismatch(f"{names} do not mix here: cast them to one type.", span)
    return found


def shared_type(args: Sequence[Expr], span: Span | None = None) -> ty.DataType:
    """Return the type that CASE, COALESCE or VALUES give these expressions; raises `TypeMismatch`.

    They are taken together one after the other, and an integer literal takes the type of an integer that it meets: COALESCE(tiny, 1, 2)
    is TINYINT, COALESCE(1, 2, tiny) INTEGER.  String literals are untyped, unless all are.
    """
    found: ty.DataType | None = ty.NULL
    alone: Expr | None = None  # the first of them, as long as it is all that has been taken
    for i, arg in enumerate(args):
        data_type = ty.NULL if is_text_literal(arg) else arg.type
        if i == 0:
            found, alone = data_type, arg
        elif found is not None:
            met = alone is None or not _is_integer_literal(alone)
            if met and _takes(found, arg):
                continue
            takes = alone is not None and not _is_integer_literal(arg) and _takes(data_type, alone)
            found, alone = data_type if takes else common_pair(found, data_type), None
    if found is None:  # the message names the text literals too
        found = common_type([a.type for a in args], span or span_over(args))
    if (found.kind is ty.Kind.NULL or found.is_enum) and any(a.type == ty.VARCHAR for a in args):
        return ty.VARCHAR
    return found


def _takes(target: ty.DataType, literal: Expr) -> bool:
    """Whether an integer literal becomes a value of this type beside it."""
    if not target.is_integer or not _is_integer_literal(literal):
        return False
    assert isinstance(literal, Literal)
    return decided(_is_within, literal, *target.integer_range)


def _is_within(value: Value, low: int, high: int) -> bool:
    return low <= value <= high  # type: ignore[operator]


def unify(args: Sequence[Expr], span: Span | None = None) -> list[Expr]:
    """Return the expressions, all in the type that they share; text that is no value of it fails when evaluated."""
    shared = shared_type(args, span)
    return [coerce_late(a, shared) for a in args]


def as_enum(expr: Expr, other: Expr) -> Expr:
    """Return a text literal as the value of the ENUM beside it, where it is one: codes are compared then, and not texts."""
    if not other.type.is_enum or not is_text_literal(expr):
        return expr
    assert isinstance(expr, Literal)
    return coerce(expr, other.type) if expr.value in other.type.names else expr


def among_enum(operand: Expr, values: Sequence[Expr]) -> Sequence[Expr]:
    """Return the values among which that of an ENUM may be; where no text is one, they stay as they are."""
    found = [as_enum(value, operand) for value in values]
    own = [value for value in found if not is_text_literal(value)]
    return own if operand.type.is_enum and own else values


def literal_types(args: Sequence[Expr], text: bool = False) -> list[ty.DataType]:
    """Return the types of arguments, an integer literal's being that of the integers beside it where it fits.

    `text`: string literals are untyped, unless all of the arguments are.  A NULL that was cast is no literal here.
    """
    beside = common(
        a.type
        for a in args
        if a.type.kind is not ty.Kind.NULL and (not isinstance(a, Literal) or a.is_null)
    )
    types = []
    for arg in args:
        if text and is_text_literal(arg):
            types.append(ty.NULL)
        else:
            types.append(beside if beside is not None and _takes(beside, arg) else arg.type)
    if text and all(t.kind is ty.Kind.NULL for t in types):
        return [a.type for a in args]
    return types


def is_text_literal(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.type == ty.VARCHAR and not expr.is_null


def _is_integer_literal(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.type.is_whole and not expr.is_null


def coerce(expr: Expr, target: ty.DataType) -> Expr:
    """Return `expr` as `target`: the same object, a converted literal, or an implicit cast.

    Text that is no value of `target` stays a cast, which fails when a row meets it.
    """
    if expr.type == target:
        return expr
    if (zoned := _zoned(expr, target, False, expr.span)) is not None:
        return zoned
    if isinstance(expr, Literal):
        try:
            with Located(expr.span):
                return computed(convert, expr, expr.type, target, data_type=target, span=expr.span)
        except BeyondPython:
            return Cast(expr, target, span=expr.span)
        except ConversionError:
            if not is_text_literal(expr) and target.kind is not ty.Kind.VARCHAR:
                raise
            return Cast(expr, target, span=expr.span)
    if not castable(expr.type, target):
        raise TypeMismatch(f"{expr.type} cannot become {target} here.", expr.span)
    return Cast(expr, target, span=expr.span)


def coerce_late(expr: Expr, target: ty.DataType) -> Expr:
    """Like `coerce`, but text that may never be reached fails only when it is."""
    if is_text_literal(expr) and target.kind is not ty.Kind.VARCHAR:
        return cast(expr, target, late=True)
    return coerce(expr, target)


def cast(
    expr: Expr,
    target: ty.DataType,
    *,
    safe: bool = False,
    span: Span | None = None,
    late: bool = False,
) -> Expr:
    """Return CAST(expr AS target), or TRY_CAST with `safe`.

    Text literals become dates, timestamps and intervals at once, but for moments that Python has no value for.  A text literal that is no value of `target` raises
    `ConversionError`, or with `late` when it is evaluated.  Other casts of literals stay, for `1::BIGINT` is not as flexible as 1.
    """
    span = span or expr.span
    if (zoned := _zoned(expr, target, safe, span)) is not None:
        return zoned
    if not castable(expr.type, target):
        if safe:  # NULL for each value, as in DuckDB
            return Literal(None, target, span)
        raise TypeMismatch(f"{expr.type} cannot be cast to {target}.", span)
    if isinstance(expr, Literal) and expr.is_null:
        return Literal(None, target, span)
    if expr.type == target:
        return expr
    if is_text_literal(expr) and not (late or safe or _in_try.get()):
        try:
            with Located(span):
                value = computed(convert, expr, ty.VARCHAR, target, data_type=target, span=span)
        except BeyondPython:
            return Cast(expr, target, span=span)
        if target.is_temporal or target.kind is ty.Kind.INTERVAL:
            return value
    return Cast(expr, target, safe, span)


def _zoned(expr: Expr, target: ty.DataType, safe: bool, span: Span | None) -> Expr | None:
    """Return a cast from or to TIMESTAMP WITH TIME ZONE as the function of the session's zone that it is; None for another cast.

    Between that and TIMESTAMP in UTC it stays a cast, which changes no value.
    """
    source, zoned = expr.type, ty.Kind.TIMESTAMPTZ
    if source == target or ty.Kind.NULL in (source.kind, target.kind):
        return None
    if not castable(source, target):
        return None
    if zoned not in (source.kind, target.kind):
        return nested_moments.by_parts(
            expr, target, lambda part, wanted: cast(part, wanted, safe=safe, span=span), safe
        )
    if expr.type == ty.JSON:  # whose texts are in quotes
        strings = Call(f"json_transform{'' if safe else '_strict'}", (expr,), ty.VARCHAR, span)
        return cast(strings, target, safe=safe, span=span)
    if target == ty.JSON:
        return Call("to_json", (cast(expr, ty.VARCHAR),), ty.JSON, span)
    name = zones.session()
    zone = Literal(name, ty.VARCHAR)
    if source.kind is ty.Kind.VARCHAR:
        return Call("try_timestamptz" if safe else "timestamptz", (zone, expr), target, span)
    if target.kind is ty.Kind.VARCHAR:
        return Call("timestamptz_text", (zone, expr), target, span)
    if source.kind is zoned:
        return cast(local_time(expr, span), target, safe=safe, span=span)
    moment = cast(expr, ty.TIMESTAMP, safe=safe, span=span)
    if name in zones.UTC_NAMES:
        return Cast(moment, target, safe, span)
    return Call("timezone", (zone, moment), ty.TIMESTAMPTZ, span)


def local_time(expr: Expr, span: Span | None = None) -> Expr:
    """Return a TIMESTAMP WITH TIME ZONE as the TIMESTAMP that clocks of the session's zone show."""
    if zones.session() in zones.UTC_NAMES:
        return Cast(expr, ty.TIMESTAMP, span=span)
    return Call("timezone", (Literal(zones.session(), ty.VARCHAR), expr), ty.TIMESTAMP, span)


def as_list(expr: Expr) -> Expr:
    """Return an ARRAY as the LIST that functions of lists take; anything else as it is."""
    return (
        Cast(expr, ty.list_of(expr.type.children[0]), span=expr.span)
        if expr.type.is_array
        else expr
    )


def to_text(expr: Expr) -> Expr:
    """Return `expr` as VARCHAR, for `||` and concat."""
    if isinstance(expr, Literal) and not expr.is_null and expr.type.kind is not ty.Kind.VARCHAR:
        return Cast(expr, ty.VARCHAR, span=expr.span)
    return coerce(expr, ty.VARCHAR)


def span_over(args: Sequence[Expr]) -> Span | None:
    spans = [a.span for a in args if a.span is not None]
    if not spans:
        return None
    return Span(min(s.start for s in spans), max(s.end for s in spans), spans[0].view)


def forced(expr: Expr, target: ty.DataType) -> Expr:
    """Return a cast even where there is none, which NULLs pass and each value fails: `nullif(1, 1)` as a DATE."""
    if castable(expr.type, target):
        return cast(expr, target)
    return Cast(expr, target, span=expr.span)


def negated(operand: Literal, span: Span | None) -> Literal:
    """Return the constant -x, typed anew: -9223372036854775808 is BIGINT though its digits alone are not."""
    with Located(span):
        made = decided(_negated_type, operand, operand.type)
    return computed(_negated_value, operand, operand.type, data_type=made, span=span)


def _negated_type(value: Value, data_type: ty.DataType) -> ty.DataType:
    return _negated(Literal(value, data_type)).type


def _negated_value(value: Value, data_type: ty.DataType) -> Value:
    return _negated(Literal(value, data_type)).value


def _negated(operand: Literal) -> Literal:
    constant = operand.value
    # Not `-`, which rounds to the 28 digits of Python's own context
    value: Value = ty.DIGITS.minus(constant) if isinstance(constant, Decimal) else -constant  # type: ignore[operator]
    if operand.type == ty.HUGEINT:
        return integer(int(value))  # type: ignore[arg-type]
    if operand.type.is_integer:
        low, high = operand.type.integer_range
        if not low <= value <= high:  # type: ignore[operator]
            return integer(value)  # type: ignore[arg-type]
    return Literal(value, operand.type)
