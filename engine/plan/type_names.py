"""The names that SQL has for types."""

from __future__ import annotations

import re

from ..errors import Span, TypeMismatch, UnknownName, nearest
from .types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HUGEINT,
    INTEGER,
    INTERVAL,
    NULL,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    UBIGINT,
    UINTEGER,
    USMALLINT,
    UTINYINT,
    VARCHAR,
    DataType,
    decimal,
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
    **dict.fromkeys(("timestamp", "datetime", "timestamp without time zone"), TIMESTAMP),
    "interval": INTERVAL,
    **dict.fromkeys(("varchar", "text", "string", "char", "bpchar", "nvarchar"), VARCHAR),
}
_DECIMAL = re.compile(r"(?:decimal|numeric|dec)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")


def parse_type(name: str, span: Span | None = None) -> DataType:
    """Return the type that SQL calls `name`, as DECIMAL(15, 2) or varchar(10); raises `UnknownName`."""
    folded = " ".join(name.lower().split())
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
