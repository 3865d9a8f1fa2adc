"""Python values as constants, lists and dictionaries too: what parameters take, and what queries answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from ...errors import Span, Unsupported
from .. import infer
from ..expr import Expr, Interval, Literal, Value
from ..types import BIT, NULL, VARCHAR, DataType, Kind, list_of
from .nested_values import list_value, struct_pack

_PLAIN = (bool, int, float, Decimal, str, bytes, date, datetime)


def constant(value: object, span: Span | None = None) -> Expr:
    """Return the constant for a Python value; raises `TypeMismatch` for one without a SQL type.

    A list is a LIST whose elements share a type, text where nothing else serves, as in DuckDB; a dictionary is a STRUCT, and a MAP
    where it has lists of equal length by the names `key` and `value`, or nothing.
    """
    value = plain(value)
    if isinstance(value, list | tuple):
        return _list([constant(element, span) for element in value], span)
    if isinstance(value, Mapping):
        return _struct_or_map(value, span)
    return infer.literal(value, span)


def plain(value: Any) -> Any:
    """Return arrays of NumPy and pandas as lists, buffers as bytes, and what pandas has instead of NULL as None."""
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if not hasattr(value, "dtype") or not getattr(value, "ndim", 0):
        return value
    if hasattr(value, "isna") and value.dtype.kind != "f":  # pandas' texts have NaN for NULL
        return [None if no else v for v, no in zip(value, value.isna(), strict=True)]
    return list(value)


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


def as_told(expr: Expr) -> Expr:
    """Return a value as an answer tells it: moments and bits as text, since Python has not all of them."""
    return infer.cast(expr, VARCHAR) if expr.type.is_temporal or expr.type == BIT else expr


def constant_told(value: object, data_type: DataType) -> Expr:
    """Return the constant of a type that an answer tells, as `as_told` has it."""
    if isinstance(value, str) and (data_type.is_temporal or data_type == BIT):
        return infer.cast(Literal(value, VARCHAR), data_type)
    return constant_of(value, data_type)


def constant_of(value: object, data_type: DataType) -> Expr:
    """Return a value of an answer as a constant of its type."""
    if isinstance(value, list) and data_type.kind is Kind.MAP:
        parts = zip(*value, strict=True) if value else ((), ())
        kinds = data_type.children[0].children
        lists = [constant_of(list(p), list_of(k)) for p, k in zip(parts, kinds, strict=True)]
        return infer.cast(infer.call("map_of_lists", lists), data_type)
    if isinstance(value, list) and data_type.kind is Kind.LIST:
        inside = [constant_of(element, data_type.children[0]) for element in value]
        return infer.cast(list_value(inside, None), data_type)
    if isinstance(value, dict) and data_type.kind is Kind.STRUCT:
        fields = zip(value.values(), data_type.children, strict=True)
        packed = struct_pack(data_type.names, [constant_of(*field) for field in fields], None)
        return infer.cast(packed, data_type)
    if isinstance(value, time):
        return infer.cast(Literal(str(value), VARCHAR), data_type)
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return _literal(value, data_type)


def _literal(value: object, data_type: DataType) -> Literal:
    known: Value
    if data_type.kind is Kind.INTERVAL and isinstance(value, tuple):  # of Arrow
        months, days, nanoseconds = value
        known = Interval(months, days, nanoseconds // 1000)
    elif data_type.is_enum and isinstance(value, str):
        known = data_type.names.index(value)
    elif isinstance(value, UUID):
        known = value.bytes
    elif value is None or isinstance(value, _PLAIN):
        known = value
    else:
        raise Unsupported(f"A constant of the type {data_type} is not supported here.")
    return Literal(known, data_type)
