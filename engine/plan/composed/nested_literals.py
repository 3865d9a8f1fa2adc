"""Python values as constants, lists and dictionaries too: what parameters take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import Span
from .. import infer
from ..expr import Expr
from ..types import NULL, VARCHAR
from .nested_values import list_value, struct_pack


def constant(value: object, span: Span | None = None) -> Expr:
    """Return the constant for a Python value; raises `TypeMismatch` for one without a SQL type.

    A list is a LIST whose elements share a type, text where nothing else serves, as in DuckDB; a dictionary is a STRUCT, and a MAP
    where it has lists of equal length by the names `key` and `value`, or nothing.
    """
    if isinstance(value, list | tuple):
        return _list([constant(element, span) for element in value], span)
    if isinstance(value, Mapping):
        return _struct_or_map(value, span)
    return infer.literal(value, span)


def _list(elements: Sequence[Expr], span: Span | None) -> Expr:
    kinds = {each.type for each in elements} - {NULL}
    if VARCHAR in kinds and len(kinds) > 1:
        elements = [infer.cast(each, VARCHAR, span=span) for each in elements]
    return list_value(elements, span)


def _struct_or_map(given: Mapping[object, object], span: Span | None) -> Expr:
    parts = [*given.values()]
    if {*given} <= {"key", "value"} and len(given) != 1:
        keys, values = given.get("key", []), given.get("value", [])
        if isinstance(keys, list) and isinstance(values, list) and len(keys) == len(values):
            return infer.call("map_of_lists", [constant(keys, span), constant(values, span)], span)
    return struct_pack(
        [str(name) for name in given], [constant(part, span) for part in parts], span
    )
