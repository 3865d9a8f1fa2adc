"""One column of each type, here and in DuckDB."""

from __future__ import annotations

from functools import cache

import duckdb

from fuseline.errors import FuselineError
from fuseline.plan.coercion import parse_type
from fuseline.plan.expr import Column, ColumnRef, new_column
from fuseline.plan.types import NULL

TYPES = {
    "ti": "TINYINT", "si": "SMALLINT", "i": "INTEGER", "bi": "BIGINT", "ut": "UTINYINT", "us": "USMALLINT",
    "ui": "UINTEGER", "ub": "UBIGINT", "hi": "HUGEINT", "d4": "DECIMAL(4,1)", "d15": "DECIMAL(15,2)",
    "d18": "DECIMAL(18,3)", "d20": "DECIMAL(20,5)", "d38": "DECIMAL(38,5)", "f": "FLOAT", "d": "DOUBLE", "b": "BOOLEAN",
    "dt": "DATE", "ts": "TIMESTAMP", "iv": "INTERVAL", "s": "VARCHAR",
}  # fmt: skip
COLUMNS: dict[str, Column] = {name: new_column(name, parse_type(t)) for name, t in TYPES.items()}
COLUMNS["n"] = new_column("n", NULL)
REFS = {name: ColumnRef(column) for name, column in COLUMNS.items()}


@cache
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    columns = ", ".join(f"{name} {data_type}" for name, data_type in TYPES.items())
    made.execute(f"CREATE TABLE typed ({columns})")
    made.execute("CREATE VIEW t AS SELECT *, NULL AS n FROM typed")
    return made


def duckdb_type(sql: str) -> str:
    """Return the type that DuckDB gives an expression over the columns, `error` where it refuses."""
    try:
        return str(connection().execute(f"SELECT {sql} FROM t LIMIT 0").description[0][1])
    except duckdb.Error:
        return "error"


def type_or_error(build) -> str:
    try:
        return str(build().type)
    except FuselineError:
        return "error"
