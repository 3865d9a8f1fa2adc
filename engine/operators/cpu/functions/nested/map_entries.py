"""Maps, which are lists of entries: made of keys and values, taken apart, and searched by a key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .....errors import ExecutionError
from .....plan.arrow.arrow_arrays import from_numpy
from .....plan.expr import Call
from ... import table as tables
from ...nested_arrays import Ints, Lists, Mask, fields_of, list_array, struct_array
from ..vectors import ArrayFunction, over_arrays
from .list_parts import both, codes_of, found, picked


def _map(call: Call, args: list[pa.Array]) -> pa.Array:
    if not args:
        entries = pa.nulls(0, tables.physical_type(call.type).value_type)
        return list_array(np.zeros(1, np.int64), entries, None, tables.physical_type(call.type))
    keys, values = Lists.of(args[0]), Lists.of(args[1])
    valid = both(keys.valid, values.valid)
    known = np.ones(len(keys.lengths), bool) if valid is None else valid
    if bool((keys.lengths != values.lengths)[known].any()):
        raise ExecutionError("A map has as many values as keys.")
    parts = [
        each.elements.take(from_numpy(np.flatnonzero(known[each.rows]))) for each in (keys, values)
    ]
    return _of_entries(call, np.where(known, keys.lengths, 0), parts, valid)


def _from_entries(call: Call, args: list[pa.Array]) -> pa.Array:
    lists = Lists.of(args[0])
    return _of_entries(call, lists.lengths, fields_of(lists.elements), lists.valid)


def _of_entries(call: Call, lengths: Ints, parts: list[pa.Array], valid: Mask | None) -> pa.Array:
    """Return maps; raises `ExecutionError` for a key that is NULL or comes twice in one of them."""
    keys = parts[0]
    if keys.null_count or (len(keys) and pa.types.is_null(keys.type)):
        raise ExecutionError("The keys of a map are not NULL.")
    (codes,) = codes_of(keys)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    if len(np.unique(rows * (int(codes.max(initial=0)) + 1) + codes)) < len(codes):
        raise ExecutionError("The keys of a map differ from each other.")
    arrow = tables.physical_type(call.type)
    named = [tables.as_element(p, f.type) for p, f in zip(parts, arrow.value_type, strict=True)]
    return list_array(lengths, struct_array(named, None, arrow.value_type), valid, arrow)


def _part(place: int) -> ArrayFunction:
    def part(call: Call, args: list[pa.Array]) -> pa.Array:
        lists = Lists.of(args[0])
        inside = fields_of(lists.elements)[place]
        return list_array(lists.lengths, inside, lists.valid, tables.physical_type(call.type))

    return part


def _entries(call: Call, args: list[pa.Array]) -> pa.Array:
    return args[0]


def _cardinality(call: Call, args: list[pa.Array]) -> pa.Array:
    lists = Lists.of(args[0])
    return from_numpy(lists.lengths.astype(np.uint64), lists.valid, pa.uint64())


def _places(lists: Lists, wanted: pa.Array) -> Ints:
    """Return where the entry of the key is, -1 where there is none."""
    keys = Lists(lists.lengths, fields_of(lists.elements)[0], lists.valid)
    hits = np.flatnonzero(found(keys, wanted))
    places = np.full(len(lists.lengths), -1)
    places[lists.rows[hits]] = hits
    return places


def _contains(call: Call, args: list[pa.Array]) -> pa.Array:
    lists = Lists.of(args[0])
    known = tables.validity(args[1])
    valid = lists.valid if known is None else both(lists.valid, known | (lists.lengths == 0))
    return from_numpy(_places(lists, args[1]) >= 0, valid, pa.bool_())


def _extract(call: Call, args: list[pa.Array]) -> pa.Array:
    lists = Lists.of(args[0])
    places = _places(lists, args[1])
    values = fields_of(lists.elements)[1]
    return picked((places >= 0).astype(np.int64), places[places >= 0], values, lists.valid, call)


def _value(call: Call, args: list[pa.Array]) -> pa.Array:
    lists = Lists.of(args[0])
    return tables.take_array(fields_of(lists.elements)[1], _places(lists, args[1]))


def _concat(call: Call, args: list[pa.Array]) -> pa.Array:
    """The entries of all maps of a row: keys in the order in which they come first, with the values that come last."""
    parts = [Lists.of(a) for a in args]
    rows = np.concatenate([p.rows for p in parts])
    entries = tables.concat_arrays([p.elements for p in parts])
    keys, values = fields_of(entries)
    (codes,) = codes_of(keys)
    pairs = rows * (int(codes.max(initial=0)) + 1) + codes
    _, first, same = np.unique(pairs, return_index=True, return_inverse=True)
    last = np.zeros(len(first), np.int64)
    last[same] = np.arange(len(pairs))
    order = np.lexsort([first, rows[first]])
    lengths = np.bincount(rows[first], minlength=len(args[0]))
    arrow = tables.physical_type(call.type)
    chosen = [tables.take_array(keys, first[order]), tables.take_array(values, last[order])]
    valid: Mask | None = None
    if all(p.valid is not None for p in parts):
        valid = np.any([p.valid for p in parts if p.valid is not None], axis=0)
    return list_array(lengths, struct_array(chosen, None, arrow.value_type), valid, arrow)


KERNELS = {
    name: over_arrays(function)
    for name, function in {
        "map_of_lists": _map,
        "map_from_entries": _from_entries,
        "map_keys": _part(0),
        "map_values": _part(1),
        "map_entries": _entries,
        "cardinality": _cardinality,
        "map_contains": _contains,
        "map_extract": _extract,
        "map_extract_value": _value,
        "map_concat": _concat,
    }.items()
}
