"""Lists and structs made of values, their elements and fields: x[1], s.a, [1, 2], {'a': 1}."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvalidQuery, Span, TypeMismatch, UnknownName, nearest
from .. import infer
from ..expr import Call, Expr, Literal
from ..types import BIGINT, NULL, VARCHAR, Kind, list_of, struct_of


def list_value(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return [a, b, ...], whose elements are of the type that they share."""
    values = infer.unify(args, span) if args else []
    return Call("list_value", tuple(values), list_of(values[0].type if values else NULL), span)


def struct_pack(names: Sequence[str], args: Sequence[Expr], span: Span | None) -> Expr:
    """Return {'name': value, ...}."""
    try:
        made = struct_of(zip(names, (a.type for a in args), strict=True))
    except TypeMismatch as error:
        raise TypeMismatch(error.message, span) from None
    return Call("struct_pack", tuple(args), made, span)


def field(struct: Expr, name: str, span: Span | None) -> Expr:
    """Return s.name, whatever its case; of a struct that is NULL, NULL."""
    if struct.type.kind is not Kind.STRUCT:
        raise TypeMismatch(f'{struct.type} has no field "{name}": a STRUCT has fields.', span)
    folded = [known.lower() for known in struct.type.names]
    if name.lower() not in folded:
        hint = nearest(name, struct.type.names)
        raise UnknownName(f'{struct.type} has no field "{name}".{hint}', span)
    place = folded.index(name.lower())
    known = Literal(struct.type.names[place], VARCHAR)
    return Call("struct_field", (struct, known), struct.type.children[place], span)


def element(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return x[i]: of a list an element, of a text a character, of a struct the field of that name."""
    value, place = args
    if value.type.kind is Kind.STRUCT:
        if not isinstance(place, Literal) or not isinstance(place.value, str):
            raise InvalidQuery(
                "A field of a STRUCT is named by a constant string.", place.span or span
            )
        return field(value, place.value, span)
    if value.type.kind is Kind.LIST:
        return infer.call("list_element", [value, _whole(place)], span)
    _refuse_numbers(value, "elements")
    return infer.call("substring", [value, place, infer.literal(1)], span)


def cut(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return x[from:to] or x[from:to:step], of a list or a text."""
    value = args[0]
    if value.type.kind is Kind.LIST:
        return infer.call("list_cut", [value, *map(_whole, args[1:])], span)
    _refuse_numbers(value, "a slice")
    if len(args) > 3:
        raise TypeMismatch("A slice of a text has no step.", span)
    return infer.call("text_slice", args, span)


def _refuse_numbers(value: Expr, what: str) -> None:
    if value.type.kind not in (Kind.VARCHAR, Kind.NULL):
        raise TypeMismatch(f"{value.type} has no {what}: a list or a text has.", value.span)


def _whole(place: Expr) -> Expr:
    if place.type.is_whole or place.type == NULL:
        return infer.coerce(place, BIGINT)
    raise TypeMismatch(f"A place in a list is an integer, and this is {place.type}.", place.span)


def joined(lists: Sequence[Expr], span: Span | None) -> Expr:
    """Return a || b, which is NULL where one of the lists is; list_concat skips those."""
    found = infer.call("list_concat", lists, span)
    unknown = [infer.call("is_null", [each], span) for each in lists]
    return infer.case([infer.call("or", unknown, span)], [Literal(None, found.type)], found, span)
