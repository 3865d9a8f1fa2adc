"""Casts from, to and between lists and structs: of what they have inside, and their text as DuckDB writes and reads it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .....errors import ConversionError
from .....plan.arrow.arrow_arrays import array_from, from_numpy, null_as, scalar_from
from .....plan.coercion import matching_fields
from .....plan.types import JSON, VARCHAR, DataType, Kind
from ... import table as tables
from ...nested_arrays import Ints, Lists, Mask, fields_of, list_array, struct_array
from ..vectors import Vector
from . import nested_reading
from .list_parts import codes_of

Cast = Callable[[Vector, DataType], Vector]  # of what is inside
# A text with one of these within, or with blanks around it, is written in quotes
_SPECIAL = r"""[\[\](){},:='"\\]|^\s|\s$|^$|^(?i:null)$"""


def between(array: pa.Array, source: DataType, target: DataType, cast: Cast) -> pa.Array:
    """Return lists with other elements, structs with other fields, which go by their names, or structs as maps of their names."""
    arrow = tables.physical_type(target)

    def child(inside: pa.Array, given: DataType, wanted: DataType) -> pa.Array:
        made = cast(Vector.from_arrow(inside, given), wanted).to_arrow(len(inside))
        return tables.as_element(made, tables.physical_type(wanted))

    if target.kind is Kind.MAP and source.kind is Kind.STRUCT:
        name, value = target.children[0].children
        inside = zip(fields_of(array), source.children, strict=True)
        values = [child(field, kind, value) for field, kind in inside]
        return _as_map(array, child(array_from(source.names), VARCHAR, name), values, arrow)
    if target.kind in (Kind.LIST, Kind.MAP):
        lists = Lists.of(array)
        elements = child(lists.elements, source.children[0], target.children[0])
        return list_array(lists.lengths, elements, lists.valid, arrow)
    known = fields_of(array)
    fields = [
        pa.nulls(len(array), tables.physical_type(wanted))
        if place is None
        else child(known[place], source.children[place], wanted)
        for place, wanted in zip(matching_fields(source, target), target.children, strict=True)
    ]
    return struct_array(fields, tables.validity(array), arrow)


def _as_map(
    structs: pa.Array, keys: pa.Array, values: list[pa.Array], arrow: pa.DataType
) -> pa.Array:
    """Return maps of the names of fields, as `keys`, to what the structs have in them."""
    count, width = len(structs), len(values)
    if keys.null_count:  # of TRY_CAST
        return pa.nulls(count, arrow)
    row_by_row = np.arange(count * width).reshape(width, count).T.ravel()
    keys = tables.take_array(keys, np.tile(np.arange(width), count))
    entries = struct_array(
        [keys, tables.take_array(tables.concat_arrays(values), row_by_row)], None, arrow.value_type
    )
    known = tables.validity(structs)
    valid = np.ones(count, bool) if known is None else known
    return list_array(np.full(count, width), entries, valid, arrow)


def of_length(array: pa.Array, target: DataType, safe: bool) -> pa.Array:
    """Return lists as an ARRAY; one of another length is NULL when `safe`, else `ConversionError`."""
    lists = Lists.of(array)
    known = tables.validity(array)
    wrong = (lists.lengths != target.precision) & (known if known is not None else True)
    if not wrong.any():
        return array
    if not safe:
        raise ConversionError(
            f"A list of {lists.lengths[np.argmax(wrong)]} elements is no {target}: use list_resize, or TRY_CAST to get NULL for such lists."
        )
    return tables.take_array(array, np.where(wrong, -1, np.arange(len(array))))


def texts(array: pa.Array, source: DataType, cast: Cast) -> pa.Array:
    """Return [1, NULL], {'a': x, 'b': [y]} and {k=v}: text within is quoted where it could be read otherwise."""
    if source.kind in (Kind.LIST, Kind.MAP):
        lists = Lists.of(array)
        is_map = source.kind is Kind.MAP
        show = _entries if is_map else _as_it_is if source.children[0] == JSON else _shown
        shown = show(lists.elements, source.children[0], cast)
        joined = pc.binary_join(
            list_array(lists.lengths, shown, lists.valid, pa.list_(pa.string())), ", "
        )
        opening, closing = "{}" if is_map else "[]"
        return pc.binary_join_element_wise(opening, joined, closing, "")
    parts: list[object] = []
    opening, closing = "()" if source.is_tuple else "{}"
    for name, inside, kind in zip(source.names, fields_of(array), source.children, strict=True):
        key = name.replace("\\", "\\\\").replace("'", "\\'")
        before = "" if source.is_tuple else f"'{key}': "
        parts += [f"{', ' if parts else opening}{before}", _shown(inside, kind, cast)]
    comma = "," if source.is_tuple and len(source.children) == 1 else ""
    made = pc.binary_join_element_wise(*parts, f"{comma}{closing}", "")
    return pc.if_else(array.is_valid(), made, scalar_from(None, pa.string()))


def _as_it_is(array: pa.Array, kind: DataType, cast: Cast) -> pa.Array:
    """Return JSON without quotes around it."""
    return null_as(tables.decode(array), "NULL")


def _entries(array: pa.Array, kind: DataType, cast: Cast) -> pa.Array:
    """Return key=value of each entry."""
    pairs = zip(fields_of(array), kind.children, strict=True)
    return pc.binary_join_element_wise(*(_shown(part, t, cast) for part, t in pairs), "=")


def _shown(inside: pa.Array, kind: DataType, cast: Cast) -> pa.Array:
    text = tables.decode(cast(Vector.from_arrow(inside, kind), VARCHAR).to_arrow(len(inside)))
    text = text.cast(pa.string())
    if not kind.is_nested:
        escaped = pc.replace_substring_regex(text, r"(['\\])", r"\\\1")
        quoted = pc.binary_join_element_wise("'", escaped, "'", "")
        text = pc.if_else(pc.match_substring_regex(text, _SPECIAL), quoted, text)
    return null_as(text, "NULL")


def read(text: pa.Array, target: DataType, safe: bool, cast: Cast) -> pa.Array:
    """Return the lists or structs that texts stand for; for one that is none NULL when `safe`, else `ConversionError`."""
    found: list[list[str | None] | None] = []
    for value in text.to_pylist():
        parts = None if value is None else nested_reading.parts(value, target)
        if parts is None and value is not None and not safe:
            raise ConversionError(
                f"Could not convert string '{value}' to {target}: use TRY_CAST to get NULL for such values."
            )
        found.append(parts)
    valid: Mask = np.array([parts is not None for parts in found], bool)
    arrow = tables.physical_type(target)

    def column(values: list[str | None], kind: DataType) -> pa.Array:
        made = cast(Vector(VARCHAR, array_from(values, pa.string())), kind).to_arrow(len(values))
        return tables.as_element(made, tables.physical_type(kind))

    if target.kind is Kind.LIST:
        lengths = np.array([len(parts or ()) for parts in found], np.int64)
        elements = column([v for parts in found for v in parts or ()], target.children[0])
        return list_array(lengths, elements, valid, arrow)
    if target.kind is Kind.MAP:
        lengths = np.array([len(parts or ()) // 2 for parts in found], np.int64)
        flat = [v for parts in found for v in parts or ()]
        kinds = target.children[0].children
        keys, values = (column(flat[i::2], kind) for i, kind in enumerate(kinds))
        return _maps(lengths, keys, values, valid, arrow, safe)
    fields = [
        column([None if parts is None else parts[i] for parts in found], kind)
        for i, kind in enumerate(target.children)
    ]
    return struct_array(fields, valid, arrow)


def _maps(
    lengths: Ints, keys: pa.Array, values: pa.Array, valid: Mask, arrow: pa.DataType, safe: bool
) -> pa.Array:
    """Return maps; for one with a key that is NULL or comes twice NULL when `safe`, else `ConversionError`."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    (codes,) = codes_of(keys)
    pairs = rows * (int(codes.max(initial=0)) + 1) + codes
    _, firsts = np.unique(pairs, return_index=True)
    wrong = ~np.isin(np.arange(len(rows)), firsts) | tables.to_numpy(keys.is_null())
    if wrong.any():
        if not safe:
            raise ConversionError(
                "The keys of a map are not NULL and differ from each other: use TRY_CAST to get NULL for other texts."
            )
        valid = valid & ~np.isin(np.arange(len(lengths)), rows[wrong])
        kept = from_numpy(np.flatnonzero(valid[rows]))
        keys, values = keys.take(kept), values.take(kept)
        lengths = np.where(valid, lengths, 0)
    entries = struct_array([keys, values], None, arrow.value_type)
    return list_array(lengths, entries, valid, arrow)
