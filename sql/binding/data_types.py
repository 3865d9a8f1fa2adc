"""sqlglot's type nodes to our types."""

from __future__ import annotations

from sqlglot import exp

from fuseline.errors import ParseError, Unsupported
from fuseline.plan.type_names import decimal_type, parse_type
from fuseline.plan.types import TIMESTAMP, DataType

from ..parsing.spans import span_of
from ..parsing.unread import use

# sqlglot's names that are not SQL's.
_RENAMED = {
    "INT": "INTEGER",
    "TEXT": "VARCHAR",
    "TIMESTAMPNTZ": "TIMESTAMP",
    "INT128": "HUGEINT",
    "UINT": "UINTEGER",
}
# Types of DuckDB that this engine does not have.
_MISSING = {
    "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMPLTZ": "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMP_S": "TIMESTAMP_S",
    "TIMESTAMP_MS": "TIMESTAMP_MS",
    "TIMESTAMP_NS": "TIMESTAMP_NS",
    "TIME": "TIME",
    "TIMETZ": "TIME WITH TIME ZONE",
    "VARBINARY": "BLOB",
    "BIT": "BIT",
    "UUID": "UUID",
    "JSON": "JSON",
    "ENUM": "ENUM",
    "UINT128": "UHUGEINT",
    "ARRAY": "LIST",
    "LIST": "LIST",
    "STRUCT": "STRUCT",
    "MAP": "MAP",
    "UNION": "UNION",
}


def data_type(node: exp.Expr) -> DataType:
    """Return the type that CAST or a column definition names; raises `UnknownName` and `Unsupported`."""
    place = span_of(node)
    if not isinstance(node, exp.DataType):
        return parse_type(node.sql("duckdb"), place)
    use(node)
    kind = node.this
    name = kind.name if isinstance(kind, exp.DType) else str(kind)
    if name in _MISSING:
        raise Unsupported(
            f"The type {_MISSING[name]} is not supported: use one of the numbers, BOOLEAN, VARCHAR, DATE, TIMESTAMP, INTERVAL.",
            place,
        )
    if name == "TIMESTAMPNTZ" and node.expressions:
        use(*node.expressions, *(p.this for p in node.expressions))
        if [p.name for p in node.expressions] == ["6"]:
            return TIMESTAMP
        raise Unsupported(
            "TIMESTAMP keeps microseconds: TIMESTAMP(p) is supported as TIMESTAMP(6) alone.", place
        )
    if name == "DECIMAL":
        for parameter in node.expressions:
            use(parameter, parameter.this)
        parameters = [p.name for p in node.expressions]
        if not all(parameter.isdigit() for parameter in parameters):
            raise ParseError("DECIMAL takes numbers of digits: DECIMAL(18, 3).", place)
        precision, scale = (*parameters, None, None)[:2]
        return decimal_type(precision, scale, place)
    if name == "USERDEFINED":
        return parse_type(str(node.args.get("kind") or ""), place)
    return parse_type(_RENAMED.get(name, name), place)
