"""The names that SQL has for types, which types turn into which without being asked, and the type that several share.

Rules over types alone; what a literal may do beyond its type (a small integer literal takes the other side's type, a string
literal any type) is in `infer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from ..errors import Span, TypeMismatch, UnknownName, nearest
from .temporal import ticks
from .types import (
    BIGINT,
    BIT,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HUGEINT,
    INTEGER,
    INTEGER_BITS,
    INTERVAL,
    JSON,
    MAX_DECIMAL_DIGITS,
    NULL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_MS,
    TIMESTAMP_NS,
    TIMESTAMP_S,
    TIMESTAMPTZ,
    TINYINT,
    UBIGINT,
    UINTEGER,
    USMALLINT,
    UTINYINT,
    UUID,
    VARCHAR,
    DataType,
    Kind,
    array_of,
    decimal,
    list_of,
)

TYPE_NAMES: dict[str, DataType] = {
    '"null"': NULL,
    "null": NULL,
    **dict.fromkeys(("boolean", "bool", "logical"), BOOLEAN),
    **dict.fromkeys(("tinyint", "int1"), TINYINT),
    **dict.fromkeys(("smallint", "int2", "int16", "short"), SMALLINT),
    **dict.fromkeys(("integer", "int", "int4", "int32", "signed"), INTEGER),
    **dict.fromkeys(("bigint", "int8", "int64", "long"), BIGINT),
    **dict.fromkeys(("hugeint", "int128"), HUGEINT),
    **dict.fromkeys(("utinyint", "uint8"), UTINYINT),
    **dict.fromkeys(("usmallint", "uint16"), USMALLINT),
    **dict.fromkeys(("uinteger", "uint32"), UINTEGER),
    **dict.fromkeys(("ubigint", "uint64"), UBIGINT),
    **dict.fromkeys(("float", "float4", "real"), FLOAT),
    **dict.fromkeys(("double", "float8", "double precision"), DOUBLE),
    "date": DATE,
    **dict.fromkeys(
        ("timestamp", "datetime", "timestamp without time zone", "timestamp_us"), TIMESTAMP
    ),
    **dict.fromkeys(("time", "time without time zone"), TIME),
    "timestamp_s": TIMESTAMP_S,
    "timestamp_ms": TIMESTAMP_MS,
    "timestamp_ns": TIMESTAMP_NS,
    **dict.fromkeys(("timestamptz", "timestamp with time zone"), TIMESTAMPTZ),
    "interval": INTERVAL,
    **dict.fromkeys(("varchar", "text", "string", "char", "bpchar", "nvarchar"), VARCHAR),
    **dict.fromkeys(("blob", "bytea", "binary", "varbinary"), BLOB),
    **dict.fromkeys(("uuid", "guid"), UUID),
    "json": JSON,
    **dict.fromkeys(("bit", "bitstring"), BIT),
}
_LIST = re.compile(r"(.+)\[\s*(\d{0,9})\s*\]")
_DECIMAL = re.compile(r"(?:decimal|numeric|dec)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")


def parse_type(name: str, span: Span | None = None) -> DataType:
    """Return the type that SQL calls `name`, as DECIMAL(15, 2) or varchar(10); raises `UnknownName`."""
    folded = " ".join(name.lower().split())
    if found := _LIST.fullmatch(folded):
        child = parse_type(found[1], span)
        return array_of(child, int(found[2])) if found[2] else list_of(child)
    if found := _DECIMAL.fullmatch(folded):
        return decimal_type(found.group(1), found.group(2), span)
    bare = re.sub(r"\s*\(\s*\d+\s*\)$", "", folded)
    known = TYPE_NAMES.get(folded) or (TYPE_NAMES.get(bare) if bare != folded else None)
    if known is None or (bare != folded and known != VARCHAR):
        hint = nearest(folded, [*(n for n in TYPE_NAMES if n[0] != '"'), "decimal"])
        raise UnknownName(f'There is no type "{name}".{hint}', span)
    return known


def decimal_type(precision: str | None, scale: str | None, span: Span | None = None) -> DataType:
    """Return DECIMAL of the parameters as written: (18,3) without any, scale 0 without the second."""
    if precision is None:
        return decimal(18, 3)
    try:
        return decimal(int(precision), int(scale or 0))
    except TypeMismatch as error:
        raise TypeMismatch(error.message, span) from None


def enum_of(names: Iterable[str]) -> DataType:
    """Return ENUM('name', ...), whose values are ordered as these are; raises `TypeMismatch` for a name that comes twice."""
    labels = tuple(names)
    if len(set(labels)) < len(labels):
        again = next(name for i, name in enumerate(labels) if name in labels[:i])
        raise TypeMismatch(f"An ENUM has each value once, and here '{again}' stands twice.")
    kinds = (Kind.UTINYINT, Kind.USMALLINT, Kind.UINTEGER)
    kind = next(k for k in kinds if len(labels) < 1 << INTEGER_BITS[k])
    return DataType(kind, name="ENUM", names=labels)


# Digits of the DECIMAL that an integer type becomes beside a decimal.
INTEGER_DIGITS: dict[Kind, int] = {
    Kind.TINYINT: 3,
    Kind.UTINYINT: 3,
    Kind.SMALLINT: 5,
    Kind.USMALLINT: 5,
    Kind.INTEGER: 10,
    Kind.UINTEGER: 10,
    Kind.BIGINT: 19,
    Kind.UBIGINT: 20,
}
Pair = Callable[[DataType, DataType], DataType | None]
_SIGNED_BY_BITS = {16: SMALLINT, 32: INTEGER, 64: BIGINT}


def as_decimal(data_type: DataType) -> DataType:
    """Return the decimal type that holds every value of an integer or decimal type."""
    if data_type.is_decimal:
        return decimal(data_type.precision, data_type.scale)  # HUGEINT's, too
    return decimal(INTEGER_DIGITS[data_type.kind], 0)


def implicit(source: DataType, target: DataType) -> bool:
    """Whether a function that takes `target` accepts a `source` argument: widening only."""
    if source == target or source.kind is Kind.NULL or (source, target) == (JSON, VARCHAR):
        return True
    if target.is_array and source.precision not in (0, target.precision):
        return False
    if target.is_nested:
        return _alike(source, target, implicit)
    if source.is_enum:
        return target.kind is Kind.VARCHAR
    if target.kind is Kind.DOUBLE:
        return source.is_numeric
    if target.kind is Kind.FLOAT:
        return source.is_integer or source.is_decimal
    if target == HUGEINT:
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
    return target.kind is Kind.TIMESTAMP and source.kind in (Kind.DATE, *ticks.PLAIN)


def _common_integer(left: DataType, right: DataType) -> DataType:
    """Return the narrowest integer type of both ranges; beyond 64 bits HUGEINT."""
    if HUGEINT in (left, right):
        return HUGEINT
    if left.is_signed_integer == right.is_signed_integer:
        return max(left, right, key=lambda t: INTEGER_BITS[t.kind])
    signed, unsigned = (left, right) if left.is_signed_integer else (right, left)
    bits = max(INTEGER_BITS[signed.kind], 2 * INTEGER_BITS[unsigned.kind])
    return _SIGNED_BY_BITS.get(bits, HUGEINT)


def _common_decimal(left: DataType, right: DataType) -> DataType:
    digits, scale = _digits_and_scale(left, right)
    return decimal(min(digits, MAX_DECIMAL_DIGITS), scale)


def _digits_and_scale(left: DataType, right: DataType) -> tuple[int, int]:
    """Return what a decimal needs to hold every value of both types."""
    left, right = as_decimal(left), as_decimal(right)
    scale = max(left.scale, right.scale)
    return max(left.precision - left.scale, right.precision - right.scale) + scale, scale


def loses_digits(left: DataType, right: DataType) -> bool:
    """Whether no decimal holds every value of two exact types of which one is a DECIMAL with a scale."""
    exact = all(t.is_integer or t.is_decimal for t in (left, right))
    return exact and left != right and _digits_and_scale(left, right)[0] > MAX_DECIMAL_DIGITS


def common_pair(left: DataType, right: DataType) -> DataType | None:
    """Return the type of CASE, COALESCE and UNION over two types, or None where a cast must be written.

    As `compared_pair`, but decimals that need more than 38 digits together round to fewer digits after the point, as in
    DuckDB; beside integers they keep them.
    """
    if JSON in (left, right):
        return JSON  # which holds values of each type
    shared = compared_pair(left, right)
    whole = left.is_whole or right.is_whole
    if shared is None or whole or not loses_digits(left, right):
        return shared
    digits, scale = _digits_and_scale(left, right)
    return decimal(MAX_DECIMAL_DIGITS, scale - (digits - MAX_DECIMAL_DIGITS))


def compared_pair(left: DataType, right: DataType) -> DataType | None:
    """Return the type in which two types are compared, or None where a cast must be written."""
    if left == right or right.kind is Kind.NULL:
        return left
    if left.kind is Kind.NULL:
        return right
    for document, other in ((left, right), (right, left)):
        if document == JSON:
            return JSON if other == VARCHAR else other
    if BIT in (left, right):
        return None
    if left.is_nested:
        return _nested_pair(left, right)
    if left.is_enum or right.is_enum:  # as texts, also of two ENUMs
        return VARCHAR if all(t.is_enum or t == VARCHAR for t in (left, right)) else None
    if left.is_whole and right.is_whole:
        return _common_integer(left, right)
    if left.is_numeric and right.is_numeric:
        if left.is_float or right.is_float:
            return DOUBLE if Kind.DOUBLE in (left.kind, right.kind) else FLOAT
        return _common_decimal(left, right)
    if (moment := ticks.later(left, right)) is not None:
        return moment
    for truth, number in ((left, right), (right, left)):
        if truth == BOOLEAN and number.is_whole:
            return number
    return None


def _nested_pair(left: DataType, right: DataType) -> DataType | None:
    """Return lists of the elements' common type, or structs of that of each field."""
    if not _alike(left, right, lambda a, b: True):
        return None
    children = tuple(map(common_pair, left.children, right.children))
    known = tuple(child for child in children if child is not None)
    lengths = {left.precision, right.precision} - {0}  # of arrays
    if known != children or len(lengths) > 1:
        return None
    named = right if left.is_tuple else left
    return replace(named, precision=max(lengths, default=0), children=known)


def _alike(left: DataType, right: DataType, fits: Callable[[DataType, DataType], bool]) -> bool:
    """Whether two types are lists, or structs of the same fields, whose children fit; those of a TUPLE have any name."""
    names = [tuple(map(str.lower, t.names)) for t in (left, right)]
    alike = _has_tuple(left, right) or names[0] == names[1]
    same = left.kind is right.kind and alike and len(names[0]) == len(names[1])
    return same and all(map(fits, left.children, right.children))


def _has_tuple(left: DataType, right: DataType) -> bool:
    return left.is_tuple or right.is_tuple


def operand_type(left: DataType, right: DataType) -> DataType | None:
    """Return the type in which an arithmetic operator takes two types.

    As `compared_pair`, but a signed and an unsigned integer of which neither holds the other become BIGINT at once.
    """
    shared = compared_pair(left, right)
    if shared is not None and shared.is_integer and shared not in (left, right):
        return BIGINT
    return shared


def common(types: Iterable[DataType], pair: Pair = common_pair) -> DataType | None:
    """Fold `pair` over `types`; the NULL type for none, None when two of them do not mix."""
    result: DataType | None = NULL
    for data_type in types:
        if result is None:
            return None
        result = pair(result, data_type)
    return result


def castable(source: DataType, target: DataType) -> bool:
    """Whether CAST from `source` to `target` exists (its values may still fail)."""
    if source == target or Kind.NULL in (source.kind, target.kind):
        return True
    if BIT in (source, target):
        other = target if source == BIT else source
        of_bits = other.is_integer or other.is_float or other in (HUGEINT, BOOLEAN)
        return of_bits or other.kind is Kind.BLOB or other == VARCHAR
    if Kind.VARCHAR in (source.kind, target.kind):
        return True
    if source.is_enum or target.is_enum:  # by way of text
        return source.is_enum and castable(VARCHAR, target)
    if bytes_in := {source.kind, target.kind} & {Kind.BLOB, Kind.UUID}:
        return len(bytes_in) == 2
    if source.kind is target.kind and source.kind in (Kind.LIST, Kind.MAP):
        if source.is_array and target.is_array and source.precision != target.precision:
            return False
        return castable(source.children[0], target.children[0])
    if source.kind is target.kind is Kind.STRUCT:
        if _has_tuple(source, target) and len(source.names) != len(target.names):
            return False
        places = matching_fields(source, target)
        return any(place is not None for place in places) and all(
            place is None or castable(source.children[place], wanted)
            for place, wanted in zip(places, target.children, strict=True)
        )
    plain = (source.is_numeric or source == BOOLEAN) and (target.is_numeric or target == BOOLEAN)
    return plain or (source.is_temporal and target.is_temporal and ticks.castable(source, target))


def matching_fields(source: DataType, target: DataType) -> list[int | None]:
    """Return for each field of a STRUCT the place of the one that it is cast from, by name, or by place of a TUPLE: None where it becomes NULL."""
    if _has_tuple(source, target):
        return list(range(len(source.names)))
    given = {name.lower(): place for place, name in enumerate(source.names)}
    return [given.get(name.lower()) for name in target.names]
