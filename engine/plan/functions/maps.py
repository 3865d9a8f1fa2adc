"""Functions of maps, which are lists of their entries."""

from __future__ import annotations

from collections.abc import Sequence

from ..coercion import castable, compared_pair
from ..types import BOOLEAN, NULL, UBIGINT, DataType, Kind, list_of, map_of
from .lists import element_type
from .row import FunctionRow, Resolve, Resolved


def entry_types(data_type: DataType) -> tuple[DataType, DataType] | None:
    """Return the types of a map's keys and values; those of an untyped NULL are untyped, too."""
    if data_type.kind is Kind.NULL:
        return NULL, NULL
    if data_type.kind is not Kind.MAP:
        return None
    key, value = data_type.children[0].children
    return key, value


def _made(types: Sequence[DataType]) -> Resolved:
    """A list of keys and one of values; a map without entries."""
    if not types:
        return (), map_of(NULL, NULL)
    kinds = [element_type(t) for t in types]
    if len(types) != 2 or kinds[0] is None or kinds[1] is None:
        return None
    return (list_of(kinds[0]), list_of(kinds[1])), map_of(kinds[0], kinds[1])


def _from_entries(types: Sequence[DataType]) -> Resolved:
    entry = element_type(types[0]) if len(types) == 1 else None
    if len(types) == 1 and types[0] == NULL:
        return tuple(types), NULL
    if entry == NULL:
        return (list_of(map_of(NULL, NULL).children[0]),), map_of(NULL, NULL)
    if entry is None or entry.kind is not Kind.STRUCT or len(entry.children) != 2:
        return None
    return tuple(types), map_of(*entry.children)


def _of_map(part: str) -> Resolve:
    """One map, of which a part is wanted."""

    def resolve(types: Sequence[DataType]) -> Resolved:
        found = entry_types(types[0]) if len(types) == 1 else None
        if found is None:
            return None
        key, value = found
        results = {
            "keys": list_of(key),
            "values": list_of(value),
            "entries": list_of(map_of(key, value).children[0]),
            "count": UBIGINT,
        }
        return (map_of(key, value),), results[part]

    return resolve


def _counted(types: Sequence[DataType]) -> Resolved:
    """One list or map, whose elements are counted."""
    if len(types) == 1 and types[0].kind is Kind.LIST:
        return tuple(types), UBIGINT
    return _of_map("count")(types)


def _with_key(part: str) -> Resolve:
    """A map and a key, in the type in which both are compared, else in that of the map's keys."""

    def resolve(types: Sequence[DataType]) -> Resolved:
        found = entry_types(types[0]) if len(types) == 2 else None
        if found is None:
            return None
        key, value = found
        shared = compared_pair(key, types[1])
        if shared is None and (types[1].is_nested or not castable(types[1], key)):
            return None
        key = shared or key
        results = {"contains": BOOLEAN, "list": list_of(value), "value": value}
        return (map_of(key, value), key), results[part]

    return resolve


def _joined(types: Sequence[DataType]) -> Resolved:
    """Maps of one type."""
    known = {t for t in types if t != NULL}
    if len(types) < 2 or len(known) > 1 or any(entry_types(t) is None for t in known):
        return None
    shared = next(iter(known), NULL)
    return (shared,) * len(types), shared


MAPS = (
    FunctionRow("map_of_lists", _made, "map(any[], any[])"),
    FunctionRow("map_from_entries", _from_entries, "map_from_entries(STRUCT(any, any)[])"),
    FunctionRow("map_keys", _of_map("keys"), "map_keys(MAP)"),
    FunctionRow("map_values", _of_map("values"), "map_values(MAP)"),
    FunctionRow("map_entries", _of_map("entries"), "map_entries(MAP)"),
    FunctionRow("cardinality", _counted, "cardinality(MAP | any[])"),
    # NULL is in no map without entries
    FunctionRow("map_contains", _with_key("contains"), "map_contains(MAP, any)", nulls="own"),
    # A list of one value, or of none where the key is not there, which NULL is nowhere
    FunctionRow(
        "map_extract", _with_key("list"), "map_extract(MAP, any)", ("element_at",), nulls="own"
    ),
    FunctionRow("map_extract_value", _with_key("value"), "map_extract_value(MAP, any)"),
    # Of a key that several have the last one's value; NULL counts as a map without entries
    FunctionRow("map_concat", _joined, "map_concat(MAP, MAP, ...)", nulls="own"),
)
