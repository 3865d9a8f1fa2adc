"""Functions of JSON.  Those that take a path, or the type to make of a value, are put together in `composed/json_calls.py`."""

from __future__ import annotations

from collections.abc import Sequence

from .. import types as ty
from .row import FunctionRow, Resolve, Resolved, fixed, overloads, repeated

_ENTRY = ty.struct_of(
    (
        ("key", ty.VARCHAR),
        ("value", ty.JSON),
        ("type", ty.VARCHAR),
        ("atom", ty.JSON),
        ("id", ty.UBIGINT),
        ("parent", ty.UBIGINT),
        ("fullkey", ty.VARCHAR),
        ("path", ty.VARCHAR),
    )
)
ENTRIES = ty.list_of(_ENTRY)

# Name -> what it is of one value, whether a number may be the path, and whether there may be none
OF_PATHS: dict[str, tuple[ty.DataType, bool, bool]] = {
    "json_extract": (ty.JSON, True, False),
    "json_extract_string": (ty.VARCHAR, True, False),
    "json_value": (ty.VARCHAR, True, False),
    "json_exists": (ty.BOOLEAN, False, False),
    "json_type": (ty.VARCHAR, False, True),
    "json_keys": (ty.list_of(ty.VARCHAR), False, True),
    "json_array_length": (ty.UBIGINT, False, True),
}
SEVERAL = "_of_each"  # behind the name of a function, of several paths or of one with wildcards
ALIASES = {
    "json_extract": ("json_extract_path",),
    "json_extract_string": ("json_extract_path_text",),
}
MOST_ARGUMENTS = 10_000
# Name -> fewest and most values of JSON
OF_DOCUMENTS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(
        ("json_structure", "json_strip_nulls", "json_pretty", "json_normalize", "json_valid"),
        (1, 1),
    ),
    **dict.fromkeys(("json_contains", "json_merge_patch_diff"), (2, 2)),
    **dict.fromkeys(("json_merge_patch", "json_deep_merge"), (2, MOST_ARGUMENTS)),
}
# Those of text as well as of JSON; others check a text before they read it
OF_TEXTS = frozenset(("json_structure", "json_valid", "json_contains"))
# Name -> how many arguments: JSON, a path, and what is put there
CHANGES = {"json_set": 3, "json_insert": 3, "json_replace": 3, "json_remove": 2}
# What SQL calls a function that makes values of a type of JSON -> its name
TRANSFORMS = {
    "json_transform": "json_transform",
    "from_json": "json_transform",
    "json_transform_strict": "json_transform_strict",
    "from_json_strict": "json_transform_strict",
}
# What SQL calls a function that makes JSON of values -> its name, fewest and most of them, and what they are
MAKERS: dict[str, tuple[str, int, int, str]] = {
    "to_json": ("to_json", 1, 1, "any"),
    "json_quote": ("to_json", 1, 1, "any"),
    "array_to_json": ("array_to_json", 1, 1, "any[]"),
    "row_to_json": ("row_to_json", 1, 1, "STRUCT"),
    "json_array": ("json_array", 0, MOST_ARGUMENTS, "any, ..."),
    "json_object": ("json_object", 0, MOST_ARGUMENTS, "VARCHAR, any, ..."),
}


def _at_path(result: ty.DataType, *, of_numbers: bool, alone: bool) -> Resolve:
    named = fixed(ty.VARCHAR, ty.VARCHAR, result=result, optional=int(alone))
    return overloads(named, fixed(ty.VARCHAR, ty.BIGINT, result=result)) if of_numbers else named


def _any(result: ty.DataType, least: int = 1, most: int = 1) -> Resolve:
    """Any values."""

    def resolve(types: Sequence[ty.DataType]) -> Resolved:
        return (tuple(types), result) if least <= len(types) <= most else None

    return resolve


def _of(*kinds: ty.Kind) -> Resolve:
    def resolve(types: Sequence[ty.DataType]) -> Resolved:
        fits = len(types) == 1 and types[0].kind in (*kinds, ty.Kind.NULL)
        return (tuple(types), ty.JSON) if fits and not types[0].is_tuple else None

    return resolve


def _object(types: Sequence[ty.DataType]) -> Resolved:
    """Keys, which are text, and values."""
    if len(types) % 2 or any(t != ty.VARCHAR for t in types[::2]):
        return None
    return tuple(types), ty.JSON


_DOCUMENT = fixed(ty.VARCHAR, result=ty.JSON)
_DOCUMENTS = repeated(ty.VARCHAR, 2, ty.JSON)
_CHANGE = fixed(ty.VARCHAR, ty.VARCHAR, ty.JSON, result=ty.JSON)
_ENTRIES_OF = fixed(ty.VARCHAR, ty.VARCHAR, result=ENTRIES, optional=1)

JSON_FUNCTIONS = (
    *(
        FunctionRow(
            f"{name}{ending}",
            _at_path(result, of_numbers=of_numbers, alone=alone),
            f"{name}(JSON{'[, path]' if alone else ', path'})",
            () if ending else ALIASES.get(name, ()),
        )
        for name, (result, of_numbers, alone) in OF_PATHS.items()
        for ending in ("", SEVERAL)
    ),
    FunctionRow("json_valid", fixed(ty.VARCHAR, result=ty.BOOLEAN), "json_valid(JSON)"),
    FunctionRow(
        "json_contains",
        fixed(ty.VARCHAR, ty.VARCHAR, result=ty.BOOLEAN),
        "json_contains(JSON, JSON)",
    ),
    FunctionRow("json_structure", _DOCUMENT, "json_structure(JSON)"),
    FunctionRow("json_strip_nulls", _DOCUMENT, "json_strip_nulls(JSON)"),
    FunctionRow("json_pretty", fixed(ty.VARCHAR, result=ty.VARCHAR), "json_pretty(JSON)"),
    FunctionRow("json_normalize", fixed(ty.VARCHAR, result=ty.VARCHAR), "json_normalize(JSON)"),
    # The result of what stands before a NULL is not asked for: NULL, and what is merged into that is the result
    FunctionRow("json_merge_patch", _DOCUMENTS, "json_merge_patch(JSON, JSON, ...)", nulls="own"),
    FunctionRow("json_deep_merge", _DOCUMENTS, "json_deep_merge(JSON, JSON, ...)", nulls="own"),
    FunctionRow(
        "json_merge_patch_diff",
        fixed(ty.VARCHAR, ty.VARCHAR, result=ty.JSON),
        "json_merge_patch_diff(JSON, JSON)",
    ),
    *(
        FunctionRow(f"json_{name}", _CHANGE, f"json_{name}(JSON, path, JSON)")
        for name in ("set", "insert", "replace")
    ),
    FunctionRow(
        "json_remove", fixed(ty.VARCHAR, ty.VARCHAR, result=ty.JSON), "json_remove(JSON, path)"
    ),
    FunctionRow("to_json", _any(ty.JSON), "to_json(any)", ("json_quote",)),
    FunctionRow("array_to_json", _of(ty.Kind.LIST), "array_to_json(any[])"),
    FunctionRow("row_to_json", _of(ty.Kind.STRUCT), "row_to_json(STRUCT)"),
    FunctionRow(
        "json_array", _any(ty.JSON, 0, MOST_ARGUMENTS), "json_array(any, ...)", nulls="own"
    ),
    FunctionRow("json_object", _object, "json_object(VARCHAR, any, ...)", nulls="own"),
    # Parts of json_group_array and json_group_object: a value's text, that of a key and a value, and the signs around all
    FunctionRow("json_member", _any(ty.VARCHAR), "json_group_array(any)", nulls="never"),
    FunctionRow(
        "json_pair",
        fixed(ty.VARCHAR, ty.VARCHAR, result=ty.VARCHAR),
        "json_group_object(any, any)",
        nulls="own",
    ),
    FunctionRow(
        "json_enclosed", fixed(ty.VARCHAR, ty.VARCHAR, result=ty.JSON), "json_group_array(any)"
    ),
    # What of a value is none of the type is NULL, or with `strict` an error
    FunctionRow("json_transform", _any(ty.JSON), "json_transform(JSON, structure)"),
    FunctionRow("json_transform_strict", _any(ty.JSON), "json_transform_strict(JSON, structure)"),
    FunctionRow("json_entries", _ENTRIES_OF, "json_each(JSON[, path])"),
    FunctionRow("json_entries_within", _ENTRIES_OF, "json_tree(JSON[, path])"),
)
