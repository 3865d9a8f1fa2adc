"""Casts of lists, structs and maps that have a TIMESTAMP WITH TIME ZONE in them, as those of their parts.

What such a cast gives is the session's zone's to say, which a plan names: operators know none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import lru_cache

from ..coercion import matching_fields
from ..expr import Call, Case, Cast, Column, ColumnRef, Expr, ListMap, Literal, new_column
from ..types import BIGINT, BOOLEAN, JSON, VARCHAR, DataType, Kind, list_of

PartCast = Callable[[Expr, DataType], Expr]


def by_parts(value: Expr, target: DataType, part: PartCast, safe: bool) -> Expr | None:
    """Return the cast of `value`, whose parts `part` casts; None where neither type has a moment within that it changes."""
    source = value.type
    if Kind.NULL in (source.kind, target.kind) or source == JSON:
        return None
    if not any(t.is_nested and t.holds(Kind.TIMESTAMPTZ) for t in (source, target)):
        return None
    if target == JSON:
        return Call("to_json", (_between(value, _as_texts(source), part),), JSON, value.span)
    if target.kind is Kind.VARCHAR:
        return Cast(_between(value, _as_texts(source), part), target, safe, value.span)
    if source.kind is Kind.VARCHAR:
        return _between(Cast(value, _as_texts(target), safe, value.span), target, part)
    if source.kind is not target.kind:  # a STRUCT as a MAP of its fields
        values = DataType(
            Kind.STRUCT,
            children=(target.children[0].children[1],) * len(source.names),
            names=source.names,
        )
        return Cast(_between(value, values, part), target, safe, value.span)
    made = _between(value, target, part)
    return made if made.type == target else Cast(made, target, safe, value.span)


def _between(value: Expr, target: DataType, part: PartCast) -> Expr:
    """Return a value of the kind of `target` as that; what should be an ARRAY is a LIST."""
    source, span = value.type, value.span
    if source == target:
        return value
    if source.kind is Kind.MAP:
        (entry,), (wanted,) = source.children, target.children
        entries = Call("map_entries", (value,), list_of(entry), span)
        return Call("map_from_entries", (_between(entries, list_of(wanted), part),), target, span)
    if source.kind is Kind.LIST:
        kind, wanted = source.children[0], target.children[0]
        element, place = _columns(kind)
        elements = Cast(value, list_of(kind), span=span) if source.is_array else value
        body = part(ColumnRef(element), wanted)
        return ListMap(elements, (), element, place, (), body, None, list_of(wanted), span)
    fields = [
        Literal(None, wanted)
        if place is None
        else part(
            Call(
                "struct_field",
                (value, Literal(source.names[place], VARCHAR)),
                source.children[place],
                span,
            ),
            wanted,
        )
        for place, wanted in zip(matching_fields(source, target), target.children, strict=True)
    ]
    made = Call("struct_pack", tuple(fields), target, span)
    missing = Call("is_null", (value,), BOOLEAN)
    return Case((missing,), (Literal(None, target),), made, target, span)


@lru_cache(4096)
def _columns(kind: DataType) -> tuple[Column, Column]:
    """Return the columns of a list's element and its place: those of each cast, so that GROUP BY finds the one in SELECT."""
    return new_column("element", kind), new_column("place", BIGINT)


def _as_texts(data_type: DataType) -> DataType:
    """Return the type with texts where it has moments."""
    if data_type.kind is Kind.TIMESTAMPTZ:
        return VARCHAR
    return dataclasses.replace(data_type, children=tuple(map(_as_texts, data_type.children)))
