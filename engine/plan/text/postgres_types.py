"""PostgreSQL's numbers and names of types, which pg_catalog tells tools that know them."""

from __future__ import annotations

# Type -> its number and name there
POSTGRES_TYPES = {
    "BOOLEAN": (16, "bool"), "BLOB": (17, "bytea"), "BIGINT": (20, "int8"), "SMALLINT": (21, "int2"),
    "INTEGER": (23, "int4"), "FLOAT": (700, "float4"), "DOUBLE": (701, "float8"), "VARCHAR": (1043, "varchar"),
    "DATE": (1082, "date"), "TIME": (1083, "time"), "TIMESTAMP": (1114, "timestamp"),
    "TIMESTAMP WITH TIME ZONE": (1184, "timestamptz"), "INTERVAL": (1186, "interval"), "BIT": (1560, "bit"),
    "DECIMAL": (1700, "numeric"), "UUID": (2950, "uuid"),
}  # fmt: skip


def number_of_type(name: str, other: str) -> str:
    """Return an expression of the number of the type that is called as the expression `name` says, `other` for one of ours alone."""
    known = " ".join(f"when '{own}' then {n}" for own, (n, _) in POSTGRES_TYPES.items())
    return f"case regexp_replace({name}, '^DECIMAL\\(.*', 'DECIMAL') {known} else {other} end"


def name_of_type(number: str) -> str:
    """Return an expression of the name of the type with a number, NULL for one of ours alone."""
    known = " ".join(f"when {n} then '{name}'" for n, name in POSTGRES_TYPES.values())
    return f"case {number} {known} end"
