"""Functions of an ENUM's values, which its type tells: constants but for parts between two values of a row."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import Span, TypeMismatch
from .. import infer
from ..expr import Expr, Literal
from ..types import BIGINT, NULL, VARCHAR, DataType, list_of
from .nested_values import list_value

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
