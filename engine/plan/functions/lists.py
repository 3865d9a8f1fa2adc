"""Functions of lists and structs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .. import types as ty
from ..coercion import castable, common_pair
from .row import FunctionRow, Resolve, Resolved, fixed, overloads, variadic

Nulls = Literal["propagate", "all", "own", "never"]


def element_type(data_type: ty.DataType) -> ty.DataType | None:
    """Return the type of a list's elements; that of an untyped NULL is untyped, too."""
    if data_type.kind is ty.Kind.NULL:
        return ty.NULL
    return data_type.children[0] if data_type.kind is ty.Kind.LIST else None


def of_list(result: ty.DataType | None = None, *rest: ty.DataType, optional: int = 0) -> Resolve:
    """A list and arguments of the types `rest`, the last `optional` of which may be missing; result None: the list's type."""

    def resolve(types: Sequence[ty.DataType]) -> Resolved:
        if not 1 + len(rest) - optional <= len(types) <= 1 + len(rest):
            return None
        if element_type(types[0]) is None:
            return None
        targets = (types[0], *rest[: len(types) - 1])
        for given, target in zip(types, targets, strict=True):
            if given not in (ty.NULL, target) and (
                target == ty.VARCHAR or not castable(given, target)
            ):
                return None
        return targets, result or types[0]

    return resolve


def _with_element(result: ty.DataType | None = None) -> Resolve:
    """A list, and a value of the type of its elements."""

    def resolve(types: Sequence[ty.DataType]) -> Resolved:
        element = element_type(types[0]) if len(types) == 2 else None
        shared = None if element is None else common_pair(element, types[1])
        return (
            None if shared is None else ((ty.list_of(shared), shared), result or ty.list_of(shared))
        )

    return resolve


def _alike(result: ty.DataType | None = None, least: int = 2, most: int = 2) -> Resolve:
    """Lists of one type."""

    def resolve(types: Sequence[ty.DataType]) -> Resolved:
        if not least <= len(types) <= most or any(element_type(t) is None for t in types):
            return None
        shared: ty.DataType | None = ty.NULL
        for data_type in types:
            shared = None if shared is None else common_pair(shared, data_type)
        return None if shared is None else ((shared,) * len(types), result or shared)

    return resolve


def _extract(types: Sequence[ty.DataType]) -> Resolved:
    element = element_type(types[0]) if len(types) == 2 else None
    return None if element is None else ((types[0], ty.BIGINT), element)


def _value(types: Sequence[ty.DataType]) -> Resolved:
    found = variadic(0)(types)
    return None if found is None else (found[0], ty.list_of(found[1]))


def _resize(types: Sequence[ty.DataType]) -> Resolved:
    """A list, a length, and what is put behind a short list."""
    if len(types) == 2:
        return of_list(None, ty.BIGINT)(types)
    element = element_type(types[0]) if len(types) == 3 else None
    if element is None or not castable(types[2], element):
        return None
    return (types[0], ty.BIGINT, element), types[0]


def _vectors(types: Sequence[ty.DataType]) -> Resolved:
    """Two lists of numbers: of FLOAT where both are, else of DOUBLE."""
    kinds = [element_type(t) for t in types]
    if len(kinds) != 2 or not all(k is not None and (k.is_numeric or k == ty.NULL) for k in kinds):
        return None
    kind = ty.FLOAT if kinds == [ty.FLOAT, ty.FLOAT] else ty.DOUBLE
    return (ty.list_of(kind), ty.list_of(kind)), kind


def _names(*endings: str) -> tuple[str, ...]:
    """Return DuckDB's other names of a function of lists."""
    return tuple(f"{word}_{ending}" for ending in endings for word in ("list", "array"))[1:]


def _flatten(types: Sequence[ty.DataType]) -> Resolved:
    inner = element_type(types[0]) if len(types) == 1 else None
    child = None if inner is None else element_type(inner)
    if inner == ty.NULL or child is None:
        return None if child is None else (tuple(types), ty.NULL)
    return (ty.list_of(ty.list_of(child)),), ty.list_of(child)


def _zip(types: Sequence[ty.DataType]) -> Resolved:
    """Lists, and whether the shortest says how many elements there are."""
    lists = types[:-1] if types and types[-1] == ty.BOOLEAN else types
    elements = [element_type(t) for t in lists]
    known = tuple(e for e in elements if e is not None)
    if not known or len(known) < len(elements):
        return None
    return tuple(types), ty.list_of(ty.tuple_of(known))


def _row(
    name: str,
    resolve: Resolve,
    signature: str,
    *aliases: str,
    nulls: Nulls = "propagate",
    sorts: bool = False,
    reverses: str = "",
) -> FunctionRow:
    """A function; one whose signature has another name is known by that to SQL, through `derived`."""
    return FunctionRow(
        name,
        resolve,
        signature,
        aliases,
        nulls=nulls,
        takes_lists=True,
        sorts=sorts,
        reverses=reverses,
    )


LISTS = (
    _row("list_value", _value, "list_value(any, ...)", "list_pack", nulls="own"),
    _row("list_length", of_list(ty.BIGINT), "array_length(any[])", "array_length"),
    _row("list_element", _extract, "list_extract(any[], BIGINT)"),
    # From one place to another, both included
    _row(
        "list_cut",
        of_list(None, ty.BIGINT, ty.BIGINT, ty.BIGINT, optional=1),
        "list_slice(any[], BIGINT, BIGINT[, BIGINT])",
    ),
    _row(
        "list_contains",
        _with_element(ty.BOOLEAN),
        "list_contains(any[], any)",
        "array_contains",
        "list_has",
        "array_has",
        nulls="own",  # NULL is not in the empty list
    ),
    _row(
        "list_concat",
        _alike(least=1, most=10_000),
        "list_concat(any[], any[], ...)",
        "array_concat",
        "list_cat",
        "array_cat",
        nulls="own",
    ),
    _row("list_zip", _zip, "list_zip(any[], ...[, BOOLEAN])", "array_zip", nulls="own"),
    _row("flatten", _flatten, "flatten(any[][])"),
    _row(
        "list_position",
        _with_element(ty.INTEGER),
        "list_position(any[], any)",
        *_names("position", "indexof"),
        nulls="own",
    ),
    _row("list_has_any", _alike(ty.BOOLEAN), "list_has_any(any[], any[])", "array_has_any"),
    _row("list_has_all", _alike(ty.BOOLEAN), "list_has_all(any[], any[])", "array_has_all"),
    _row(
        "list_intersect",
        _alike(),
        "list_intersect(any[], any[])",
        "array_intersect",
        nulls="own",  # nothing is in NULL
    ),
    _row("list_distinct", of_list(), "list_distinct(any[])", "array_distinct"),
    _row("list_unique", of_list(ty.UBIGINT), "list_unique(any[])", "array_unique"),
    _row(
        "list_sort",
        of_list(None, ty.VARCHAR, ty.VARCHAR, optional=2),
        "list_sort(any[][, VARCHAR[, VARCHAR]])",
        "array_sort",
        sorts=True,
    ),
    _row(
        "list_reverse_sort",
        of_list(None, ty.VARCHAR, optional=1),
        "list_reverse_sort(any[][, VARCHAR])",
        "array_reverse_sort",
        reverses="list_sort",
    ),
    _row(
        "list_grade_up",
        of_list(ty.list_of(ty.BIGINT), ty.VARCHAR, ty.VARCHAR, optional=2),
        "list_grade_up(any[][, VARCHAR[, VARCHAR]])",
        "array_grade_up",
        "grade_up",
        sorts=True,
    ),
    _row("list_reverse", of_list(), "list_reverse(any[])", "array_reverse"),
    _row("list_resize", _resize, "list_resize(any[], BIGINT[, any])", "array_resize", nulls="own"),
    _row(
        "list_select",
        of_list(None, ty.list_of(ty.BIGINT)),
        "list_select(any[], BIGINT[])",
        "array_select",
    ),
    _row(
        "list_where",
        of_list(None, ty.list_of(ty.BOOLEAN)),
        "list_where(any[], BOOLEAN[])",
        "array_where",
    ),
    *(
        _row(f"list_{name}", _vectors, f"list_{name}(DOUBLE[], DOUBLE[])")
        for name in ("distance", "cosine_similarity", "cosine_distance")
    ),
    _row(
        "list_inner_product",
        _vectors,
        "list_inner_product(DOUBLE[], DOUBLE[])",
        "list_dot_product",
    ),
    _row(
        "list_negative_inner_product",
        _vectors,
        "list_negative_inner_product(DOUBLE[], DOUBLE[])",
        "list_negative_dot_product",
    ),
    _row("cross_product", lambda types: None, "array_cross_product(DOUBLE[3], DOUBLE[3])"),
    # Options are as of regexp_matches
    _row(
        "string_split_regex",
        fixed(ty.VARCHAR, ty.VARCHAR, ty.VARCHAR, result=ty.list_of(ty.VARCHAR), optional=1),
        "string_split_regex(VARCHAR, VARCHAR[, VARCHAR])",
        "str_split_regex",
        "regexp_split_to_array",
        nulls="own",
    ),
    _row(
        "regexp_extract_all",
        fixed(
            ty.VARCHAR,
            ty.VARCHAR,
            ty.INTEGER,
            ty.VARCHAR,
            result=ty.list_of(ty.VARCHAR),
            optional=2,
        ),
        "regexp_extract_all(VARCHAR, VARCHAR[, INTEGER[, VARCHAR]])",
    ),
    _row(
        "string_split",
        fixed(ty.VARCHAR, ty.VARCHAR, result=ty.list_of(ty.VARCHAR)),
        "string_split(VARCHAR, VARCHAR)",
        "str_split",
        "split",
        "string_to_array",
        nulls="own",
    ),
)
_MOMENTS = fixed(ty.TIMESTAMP, ty.TIMESTAMP, ty.INTERVAL, result=ty.list_of(ty.TIMESTAMP))
_NUMBERS = fixed(ty.BIGINT, ty.BIGINT, ty.BIGINT, result=ty.list_of(ty.BIGINT), optional=2)
# SQL has table functions of their names, too
SERIES = tuple(
    _row(
        f"list_of_{name}",
        overloads(_NUMBERS, _MOMENTS),
        f"{name}([BIGINT,] BIGINT[, BIGINT]) or (TIMESTAMP, TIMESTAMP, INTERVAL)",
    )
    for name in ("range", "generate_series")
)
STRUCTS = (
    # Its type says the names of the fields
    _row("struct_pack", lambda types: None, "struct_pack(name := any, ...)", nulls="own"),
    # The name is a constant
    _row("struct_field", lambda types: None, "struct_extract(STRUCT, VARCHAR)"),
)
