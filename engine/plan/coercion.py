"""The names that SQL has for types, which types turn into which without being asked, and the type that several share.

Rules over types alone; what a literal may do beyond its type (a small integer literal takes the other side's type, a string
literal any type) is in `infer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from ..errors import Span, TypeMismatch, UnknownName, nearest
from . import types as ty
from .temporal import ticks

TYPE_NAMES: dict[str, ty.DataType] = {
    '"null"': ty.NULL,
    "null": ty.NULL,
    **dict.fromkeys(("boolean", "bool", "logical"), ty.BOOLEAN),
    **dict.fromkeys(("tinyint", "int1"), ty.TINYINT),
    **dict.fromkeys(("smallint", "int2", "int16", "short"), ty.SMALLINT),
    **dict.fromkeys(("integer", "int", "int4", "int32", "signed"), ty.INTEGER),
    **dict.fromkeys(("bigint", "int8", "int64", "long"), ty.BIGINT),
    **dict.fromkeys(("hugeint", "int128"), ty.HUGEINT),
    **dict.fromkeys(("utinyint", "uint8"), ty.UTINYINT),
    **dict.fromkeys(("usmallint", "uint16"), ty.USMALLINT),
    **dict.fromkeys(("uinteger", "uint32"), ty.UINTEGER),
    **dict.fromkeys(("ubigint", "uint64"), ty.UBIGINT),
    **dict.fromkeys(("float", "float4", "real"), ty.FLOAT),
    **dict.fromkeys(("double", "float8", "double precision"), ty.DOUBLE),
    "date": ty.DATE,
    **dict.fromkeys(
        ("timestamp", "datetime", "timestamp without time zone", "timestamp_us"), ty.TIMESTAMP
    ),
    **dict.fromkeys(("time", "time without time zone"), ty.TIME),
    "timestamp_s": ty.TIMESTAMP_S,
    "timestamp_ms": ty.TIMESTAMP_MS,
    "timestamp_ns": ty.TIMESTAMP_NS,
    **dict.fromkeys(("timestamptz", "timestamp with time zone"), ty.TIMESTAMPTZ),
    "interval": ty.INTERVAL,
    **dict.fromkeys(("varchar", "text", "string", "char", "bpchar", "nvarchar"), ty.VARCHAR),
    **dict.fromkeys(("blob", "bytea", "binary", "varbinary"), ty.BLOB),
    **dict.fromkeys(("uuid", "guid"), ty.UUID),
    "json": ty.JSON,
    **dict.fromkeys(("bit", "bitstring"), ty.BIT),
}
_LIST = re.compile(r"(.+)\[\s*(\d{0,9})\s*\]")
_DECIMAL = re.compile(r"(?:decimal|numeric|dec)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")


def parse_type(name: str, span: Span | None = None) -> ty.DataType:
    """Return the type that SQL calls `name`, as DECIMAL(15, 2) or varchar(10); raises `UnknownName`."""
    folded = " ".join(name.lower().split())
    if found := _LIST.fullmatch(folded):
        child = parse_type(found[1], span)
        return ty.array_of(child, int(found[2])) if found[2] else ty.list_of(child)
    if found := _DECIMAL.fullmatch(folded):
        return decimal_type(found.group(1), found.group(2), span)
    bare = re.sub(r"\s*\(\s*\d+\s*\)$", "", folded)
    known = TYPE_NAMES.get(folded) or (TYPE_NAMES.get(bare) if bare != folded else None)
    if known is None or (bare != folded and known != ty.VARCHAR):
        hint = nearest(folded, [*(n for n in TYPE_NAMES if n[0] != '"'), "decimal"])
        raise UnknownName(f'There is no type "{name}".{hint}', span)
    return known


def decimal_type(precision: str | None, scale: str | None, span: Span | None = None) -> ty.DataType:
    """Return DECIMAL of the parameters as written: (18,3) without any, scale 0 without the second."""
    if precision is None:
        return ty.decimal(18, 3)
    try:
        return ty.decimal(int(precision), int(scale or 0))
    except TypeMismatch as error:
        raise TypeMismatch(error.message, span) from None


def enum_of(names: Iterable[str]) -> ty.DataType:
    """Return ENUM('name', ...), whose values are ordered as these are; raises `TypeMismatch` for a name that comes twice."""
    labels = tuple(names)
    if len(set(labels)) < len(labels):
        again = next(name for i, name in enumerate(labels) if name in labels[:i])
        raise TypeMismatch(f"An ENUM has each value once, and here '{again}' stands twice.")
    kinds = (ty.Kind.UTINYINT, ty.Kind.USMALLINT, ty.Kind.UINTEGER)
    kind = next(k for k in kinds if len(labels) < 1 << ty.INTEGER_BITS[k])
    return ty.DataType(kind, name="ENUM", names=labels)


# Digits of the DECIMAL that an integer type becomes beside a decimal.
INTEGER_DIGITS: dict[ty.Kind, int] = {
    ty.Kind.TINYINT: 3,
    ty.Kind.UTINYINT: 3,
    ty.Kind.SMALLINT: 5,
    ty.Kind.USMALLINT: 5,
    ty.Kind.INTEGER: 10,
    ty.Kind.UINTEGER: 10,
    ty.Kind.BIGINT: 19,
    ty.Kind.UBIGINT: 20,
}
Pair = Callable[[ty.DataType, ty.DataType], ty.DataType | None]
_SIGNED_BY_BITS = {16: ty.SMALLINT, 32: ty.INTEGER, 64: ty.BIGINT}


def as_decimal(data_type: ty.DataType) -> ty.DataType:
    """Return the decimal type that holds every value of an integer or decimal type."""
    if data_type.is_decimal:
        return ty.decimal(data_type.precision, data_type.scale)  # HUGEINT's, too
    return ty.decimal(INTEGER_DIGITS[data_type.kind], 0)


def implicit(source: ty.DataType, target: ty.DataType) -> bool:
    """Whether a function that takes `target` accepts a `source` argument: widening only."""
    if source == target or source.kind is ty.Kind.NULL or (source, target) == (ty.JSON, ty.VARCHAR):
        return True
    if target.is_array and source.precision not in (0, target.precision):
        return False
    if target.is_nested:
        return _alike(source, target, implicit)
    if source.is_enum:
        return target.kind is ty.Kind.VARCHAR
    if target.kind is ty.Kind.DOUBLE:
        return source.is_numeric
    if target.kind is ty.Kind.FLOAT:
        return source.is_integer or source.is_decimal
    if target == ty.HUGEINT:
        return source.is_integer
    if target.is_decimal and (source.is_integer or source.is_decimal):
        needed = as_decimal(source)
        return (
            needed.scale <= target.scale
            and needed.precision - needed.scale <= target.precision - target.scale
        )
    if target.is_integer and source.is_integer:
        low, high = source.integer_range
        target_low, target_high = target.integer_range
        return target_low <= low and high <= target_high
    return target.kind is ty.Kind.TIMESTAMP and source.kind in (ty.Kind.DATE, *ticks.PLAIN)


def _common_integer(left: ty.DataType, right: ty.DataType) -> ty.DataType:
    """Return the narrowest integer type of both ranges; beyond 64 bits HUGEINT."""
    if ty.HUGEINT in (left, right):
        return ty.HUGEINT
    if left.is_signed_integer == right.is_signed_integer:
        return max(left, right, key=lambda t: ty.INTEGER_BITS[t.kind])
    signed, unsigned = (left, right) if left.is_signed_integer else (right, left)
    bits = max(ty.INTEGER_BITS[signed.kind], 2 * ty.INTEGER_BITS[unsigned.kind])
    return _SIGNED_BY_BITS.get(bits, ty.HUGEINT)


def _common_decimal(left: ty.DataType, right: ty.DataType) -> ty.DataType:
    digits, scale = _digits_and_scale(left, right)
    return ty.decimal(min(digits, ty.MAX_DECIMAL_DIGITS), scale)


def _digits_and_scale(left: ty.DataType, right: ty.DataType) -> tuple[int, int]:
    """Return what a decimal needs to hold every value of both types."""
    left, right = as_decimal(left), as_decimal(right)
    scale = max(left.scale, right.scale)
    return max(left.precision - left.scale, right.precision - right.scale) + scale, scale


def loses_digits(left: ty.DataType, right: ty.DataType) -> bool:
    """Whether no decimal holds every value of two exact types of which one is a DECIMAL with a scale."""
    exact = all(t.is_integer or t.is_decimal for t in (left, right))
    return exact and left != right and _digits_and_scale(left, right)[0] > ty.MAX_DECIMAL_DIGITS


def common_pair(left: ty.DataType, right: ty.DataType) -> ty.DataType | None:
    """Return the type of CASE, COALESCE and UNION over two types, or None where a cast must be written.

    As `compared_pair`, but decimals that need more than 38 digits together round to fewer digits after the point, as in
    DuckDB; beside integers they keep them.
    """
    if ty.JSON in (left, right):
        return ty.JSON  # which holds values of each type
    shared = compared_pair(left, right)
    whole = left.is_whole or right.is_whole
    if shared is None or whole or not loses_digits(left, right):
        return shared
    digits, scale = _digits_and_scale(left, right)
    return ty.decimal(ty.MAX_DECIMAL_DIGITS, scale - (digits - ty.MAX_DECIMAL_DIGITS))


def compared_pair(left: ty.DataType, right: ty.DataType) -> ty.DataType | None:
    """Return the type in which two types are compared, or None where a cast must be written."""
    if left == right or right.kind is ty.Kind.NULL:
        return left
    if left.kind is ty.Kind.NULL:
        return right
    for document, other in ((left, right), (right, left)):
        if document == ty.JSON:
            return ty.JSON if other == ty.VARCHAR else other
    if ty.BIT in (left, right):
        return None
    if left.is_nested:
        return _nested_pair(left, right, common_pair)
    if left.is_enum or right.is_enum:  # as texts, also of two ENUMs
        return ty.VARCHAR if all(t.is_enum or t == ty.VARCHAR for t in (left, right)) else None
    if left.is_whole and right.is_whole:
        return _common_integer(left, right)
    if left.is_numeric and right.is_numeric:
        if left.is_float or right.is_float:
            return ty.DOUBLE if ty.Kind.DOUBLE in (left.kind, right.kind) else ty.FLOAT
        return _common_decimal(left, right)
    if (moment := ticks.later(left, right)) is not None:
        return moment
    for truth, number in ((left, right), (right, left)):
        if truth == ty.BOOLEAN and number.is_whole:
            return number
    return None


def united_pair(left: ty.DataType, right: ty.DataType) -> ty.DataType | None:
    """Return the type of a set operation over two types, for more of which there is one than elsewhere.

    As in DuckDB every value can be shown as text, and texts are read as lists, structs and maps.
    """
    if left.is_nested and right.is_nested:
        return _nested_pair(left, right, united_pair)
    if (shared := common_pair(left, right)) is not None:
        return shared
    if ty.VARCHAR in (left, right):
        return next((t for t in (left, right) if t.is_nested), ty.VARCHAR)
    for kept, other in ((left, right), (right, left)):
        if other == ty.BOOLEAN and (kept.is_temporal or kept.is_numeric):
            return kept
        if other.is_numeric and kept.is_temporal:
            return kept
    return None


def _nested_pair(left: ty.DataType, right: ty.DataType, shared: Pair) -> ty.DataType | None:
    """Return lists of the elements' `shared` type, or structs with the fields of both, each of its shared type."""
    if left.kind is right.kind is ty.Kind.STRUCT and not _has_tuple(left, right):
        return _with_all_fields(left, right, shared)
    if not _alike(left, right, lambda a, b: True):
        return None
    children = tuple(map(shared, left.children, right.children))
    known = tuple(child for child in children if child is not None)
    lengths = {left.precision, right.precision} - {0}  # of arrays
    if known != children or len(lengths) > 1:
        return None
    named = right if left.is_tuple else left
    return replace(named, precision=max(lengths, default=0), children=known)


def _with_all_fields(left: ty.DataType, right: ty.DataType, shared: Pair) -> ty.DataType | None:
    """Return a STRUCT with the fields of the left and then what others the right has; the first that has one spells it."""
    fields = {n.lower(): (n, kind) for n, kind in zip(left.names, left.children, strict=True)}
    for name, kind in zip(right.names, right.children, strict=True):
        spelled, known = fields.get(name.lower(), (name, ty.NULL))
        if (both := shared(known, kind)) is None:
            return None
        fields[name.lower()] = spelled, both
    names, children = zip(*fields.values(), strict=True)
    return replace(left, names=names, children=children)


def _alike(
    left: ty.DataType, right: ty.DataType, fits: Callable[[ty.DataType, ty.DataType], bool]
) -> bool:
    """Whether two types are lists, or structs of the same fields, whose children fit; those of a TUPLE have any name."""
    names = [tuple(map(str.lower, t.names)) for t in (left, right)]
    alike = _has_tuple(left, right) or names[0] == names[1]
    same = left.kind is right.kind and alike and len(names[0]) == len(names[1])
    return same and all(map(fits, left.children, right.children))


def _has_tuple(left: ty.DataType, right: ty.DataType) -> bool:
    return left.is_tuple or right.is_tuple


def operand_type(left: ty.DataType, right: ty.DataType) -> ty.DataType | None:
    """Return the type in which an arithmetic operator takes two types.

    As `compared_pair`, but a signed and an unsigned integer of which neither holds the other become BIGINT at once.
    """
    shared = compared_pair(left, right)
    if shared is not None and shared.is_integer and shared not in (left, right):
        return ty.BIGINT
    return shared


def common(types: Iterable[ty.DataType], pair: Pair = common_pair) -> ty.DataType | None:
    """Fold `pair` over `types`; the NULL type for none, None when two of them do not mix."""
    result: ty.DataType | None = ty.NULL
    for data_type in types:
        if result is None:
            return None
        result = pair(result, data_type)
    return result


def castable(source: ty.DataType, target: ty.DataType) -> bool:
    """Whether CAST from `source` to `target` exists (its values may still fail)."""
    if source == target or ty.Kind.NULL in (source.kind, target.kind):
        return True
    if ty.BIT in (source, target):
        other = target if source == ty.BIT else source
        of_bits = other.is_integer or other.is_float or other in (ty.HUGEINT, ty.BOOLEAN)
        as_text = other == ty.VARCHAR or target == ty.JSON
        return of_bits or other.kind is ty.Kind.BLOB or as_text
    if ty.Kind.VARCHAR in (source.kind, target.kind):
        return True
    if source.is_enum or target.is_enum:  # by way of text
        return source.is_enum and castable(ty.VARCHAR, target)
    if bytes_in := {source.kind, target.kind} & {ty.Kind.BLOB, ty.Kind.UUID}:
        return len(bytes_in) == 2
    if source.kind is target.kind and source.kind in (ty.Kind.LIST, ty.Kind.MAP):
        if source.is_array and target.is_array and source.precision != target.precision:
            return False
        return castable(source.children[0], target.children[0])
    if source.kind is ty.Kind.STRUCT and target.kind is ty.Kind.MAP and not source.is_tuple:
        key, value = target.children[0].children  # the names of the fields, and what they are
        return castable(ty.VARCHAR, key) and all(castable(c, value) for c in source.children)
    if source.kind is target.kind is ty.Kind.STRUCT:
        if _has_tuple(source, target) and len(source.names) != len(target.names):
            return False
        places = matching_fields(source, target)
        return any(place is not None for place in places) and all(
            place is None or castable(source.children[place], wanted)
            for place, wanted in zip(places, target.children, strict=True)
        )
    plain = (source.is_numeric or source == ty.BOOLEAN) and (
        target.is_numeric or target == ty.BOOLEAN
    )
    return plain or (source.is_temporal and target.is_temporal and ticks.castable(source, target))


def matching_fields(source: ty.DataType, target: ty.DataType) -> list[int | None]:
    """Return for each field of a STRUCT the place of the one that it is cast from, by name, or by place of a TUPLE: None where it becomes NULL."""
    if _has_tuple(source, target):
        return list(range(len(source.names)))
    given = {name.lower(): place for place, name in enumerate(source.names)}
    return [given.get(name.lower()) for name in target.names]
