"""Functions of text, types, ENUMs and the session that are others, put together, or constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from ...errors import Span, TypeMismatch
from .. import infer
from ..all_values import is_null_constant
from ..expr import Expr, Literal
from ..types import BIGINT, BIT, NULL, VARCHAR, DataType, list_of
from .nested_values import list_value

NAMES_OF_HERE = {
    "current_database": "memory",
    "current_schema": "main",
    "current_catalog": "memory",
}
USERS = ("current_user", "session_user", "current_role", "user")


def _text(value: str) -> Callable[..., Expr]:
    return lambda _, span: Literal(value, VARCHAR, span)


def typeof(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return the name of a type as a constant."""
    kind = args[0].type
    return Literal('"NULL"' if kind == NULL else str(kind), VARCHAR, span)


def _constant_or_null(args: Sequence[Expr], span: Span | None) -> Expr:
    """The first argument where no other is NULL."""
    first, *rest = args
    if any(arg.type == NULL for arg in args):
        return Literal(None, NULL, span)
    if any(map(is_null_constant, args)):
        return Literal(None, first.type, span)
    known = [infer.call("is_not_null", [arg], span) for arg in rest]
    every = reduce(lambda a, b: infer.call("and", [a, b], span), known)
    return infer.case([every], [first], Literal(None, first.type), span)


def _bit_length(args: Sequence[Expr], span: Span | None) -> Expr:
    if args[0].type == BIT:
        return infer.call("length", args, span)
    return infer.call("mul", [infer.call("strlen", args, span), infer.literal(8)], span)


DERIVED_TEXTS = {
    **{name: (_text(value), 0, 0, f"{name}()") for name, value in NAMES_OF_HERE.items()},
    **{name: (_text("duckdb"), 0, 0, f"{name}()") for name in USERS},  # the one that DuckDB has
    "typeof": (typeof, 1, 1, "typeof(any)"),
    "constant_or_null": (_constant_or_null, 2, 10_000, "constant_or_null(any, any, ...)"),
    "cast_to_type": (
        lambda args, span: infer.cast(args[0], args[1].type, span=span),
        2,
        2,
        "cast_to_type(any, any)",
    ),
    "bit_length": (_bit_length, 1, 1, "bit_length(VARCHAR)"),
}


TEXTS = list_of(VARCHAR)


def _enum_type(args: Sequence[Expr], span: Span | None) -> DataType:
    types = {arg.type for arg in args} - {NULL}
    if len(types) != 1 or not next(iter(types)).is_enum:
        raise TypeMismatch("This takes values of one ENUM, or NULL::of_its_type.", span)
    return types.pop()


def _end(place: int, args: Sequence[Expr], span: Span | None) -> Expr:
    names = _enum_type(args, span).names
    return Literal(names[place] if names else None, VARCHAR, span)


def _range(args: Sequence[Expr], span: Span | None) -> Expr:
    names = [Literal(name, VARCHAR) for name in _enum_type(args, span).names]
    return list_value(names, span) if names else infer.cast(list_value((), span), TEXTS)


def _boundary(args: Sequence[Expr], span: Span | None) -> Expr:
    """Slice all values from the place of one to that of another, NULL being the first or last."""
    enum = _enum_type(args, span)
    ends = []
    for arg, otherwise in zip(args, (0, len(enum.names) - 1), strict=True):
        value = infer.coerce(arg, enum)
        code = infer.cast(infer.call("enum_code", [value], span), BIGINT)
        known = infer.call("coalesce", [code, Literal(otherwise, BIGINT)], span)
        ends.append(infer.call("add", [known, Literal(1, BIGINT)], span))
    return infer.call("list_cut", [_range([Literal(None, enum)], span), *ends], span)


ENUM_VALUES = {
    "enum_first": (lambda args, span: _end(0, args, span), 1, 1, "enum_first(ENUM)"),
    "enum_last": (lambda args, span: _end(-1, args, span), 1, 1, "enum_last(ENUM)"),
    "enum_range": (_range, 1, 1, "enum_range(ENUM)"),
    "enum_range_boundary": (_boundary, 2, 2, "enum_range_boundary(ENUM, ENUM)"),
}
