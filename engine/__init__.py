"""Fuseline: SQL and dataframe analytics on NVIDIA GPUs, with DuckDB's answers.

>>> import fuseline
>>> connection = fuseline.connect(device="cpu")
>>> connection.sql("SELECT 6 * 7 AS answer").fetchall()
[(42,)]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .connection import Connection, connect
    from .errors import FuselineError
    from .frame.cursor import Cursor
    from .frame.expressions.expression import Expression, all_, exclude, numeric, of_type
    from .frame.frame import Frame
    from .frame.functions import avg, coalesce, col, count, lit, max_, min_, sum_, when
    from .frame.sql_functions import fn
    from .frame.user_function import udaf, udf
    from .module_functions import (
        default_connection,
        execute,
        executemany,
        from_arrow,
        from_df,
        query,
        read_csv,
        read_ipc,
        read_json,
        read_parquet,
        register,
        table,
    )

__version__ = "0.1.0"

# What PEP 249 asks for
_ERRORS = (
    "DataError",
    "DatabaseError",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
)
_DEFAULT = (
    "default_connection",
    "execute",
    "executemany",
    "from_arrow",
    "from_df",
    "query",
    "read_csv",
    "read_ipc",
    "read_json",
    "read_parquet",
    "register",
    "table",
)
_DB_API = (
    "BINARY",
    "Binary",
    "DATETIME",
    "Date",
    "DateFromTicks",
    "Error",
    "NUMBER",
    "ROWID",
    "STRING",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "paramstyle",
    "threadsafety",
)

# Imported when first used, so that `import fuseline` costs nothing
_HOMES = {
    "Connection": "connection",
    "connect": "connection",
    "Cursor": "frame.cursor",
    "FuselineError": "errors",
    "Expression": "frame.expressions.expression",
    "Frame": "frame.frame",
    "all_": "frame.expressions.expression",
    "avg": "frame.functions",
    "coalesce": "frame.functions",
    "col": "frame.functions",
    "count": "frame.functions",
    "exclude": "frame.expressions.expression",
    "fn": "frame.sql_functions",
    "lit": "frame.functions",
    "max_": "frame.functions",
    "min_": "frame.functions",
    "numeric": "frame.expressions.expression",
    "of_type": "frame.expressions.expression",
    "sum_": "frame.functions",
    "udaf": "frame.user_function",
    "udf": "frame.user_function",
    "when": "frame.functions",
    "__narwhals_namespace__": "interop.narwhals_plugin.plugin",  # for `backend=fuseline`
    **dict.fromkeys(_ERRORS, "errors"),
    **dict.fromkeys(_DB_API, "db_api"),
    **dict.fromkeys(_DEFAULT, "module_functions"),
}

__all__ = [
    "Connection",
    "Cursor",
    "Expression",
    "Frame",
    "FuselineError",
    "all_",
    "avg",
    "coalesce",
    "col",
    "connect",
    "count",
    "default_connection",
    "exclude",
    "execute",
    "executemany",
    "fn",
    "from_arrow",
    "from_df",
    "lit",
    "max_",
    "min_",
    "numeric",
    "of_type",
    "query",
    "read_csv",
    "read_ipc",
    "read_json",
    "read_parquet",
    "register",
    "sum_",
    "table",
    "udaf",
    "udf",
    "when",
]


def __getattr__(name: str) -> Any:
    if name == "sql":  # the package, which can be called
        return import_module(".sql", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module 'fuseline' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*__all__, *_ERRORS, *_DB_API, "__version__"]
