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
    from .frame.functions import (
        avg,
        coalesce,
        col,
        count,
        fn,
        lit,
        max_,
        min_,
        sum_,
        udaf,
        udf,
        when,
    )
    from .module_functions import (
        begin,
        close,
        commit,
        cursor,
        default_connection,
        execute,
        executemany,
        fetchall,
        fetchdf,
        fetchmany,
        fetchnumpy,
        fetchone,
        from_arrow,
        from_df,
        interrupt,
        query,
        read_csv,
        read_ipc,
        read_json,
        read_parquet,
        register,
        rollback,
        table,
        unregister,
        view,
    )

__version__ = "0.1.0"

# What PEP 249 asks for
_ERRORS = """
    DataError DatabaseError IntegrityError InterfaceError InternalError NotSupportedError
    OperationalError ProgrammingError
    """
_DB_API = """
    BINARY Binary DATETIME Date DateFromTicks Error NUMBER ROWID STRING Time TimeFromTicks
    Timestamp TimestampFromTicks Warning apilevel paramstyle threadsafety
    """
# DuckDB's names of what is here under others
_OF_DUCKDB = """
    BinderException CaseExpression CatalogException CoalesceOperator ColumnExpression ConnectionException
    ConstantExpression ConstraintException ConversionException DependencyException DuckDBPyConnection
    DuckDBPyRelation FatalException FunctionExpression HTTPException IOException InternalException
    InterruptException InvalidInputException InvalidTypeException NotImplementedException OutOfMemoryException
    OutOfRangeException ParserException PermissionException SQLExpression SequenceException
    SerializationException StarExpression SyntaxException TransactionException TypeMismatchException aggregate
    alias append array_type arrow checkpoint count_all create_function decimal_type description df distinct
    dtype duplicate extract_statements fetch_arrow_table fetch_df fetch_record_batch filter from_csv_auto from_parquet
    from_query get_table_names install_extension limit list_type load_extension map_type order pl project query_df
    query_progress remove_function row_type rowcount sqltype sqltypes star struct_type table_function
    to_arrow_reader to_arrow_table type typing values write_csv
    """
# What DuckDB's module has, and is done another way here
_INSTEAD = {
    "LambdaExpression": 'SQLExpression("list_transform(x, lambda v: v + 1)")',
    "DefaultExpression": 'con.execute("INSERT INTO t VALUES (DEFAULT)")',
    "appender": "append(table, frame) or executemany(...)",
    "enable_profiling": "frame.profile, or EXPLAIN ANALYZE",
    "get_profiling_information": "frame.profile, or EXPLAIN ANALYZE",
    "register_filesystem": "paths with s3://, gs://, az:// or https://",
    "set_default_connection": "the methods of a connection of your own",
    "tokenize": "extract_statements(text)",
}
# Imported when first used, so that `import fuseline` costs nothing
_HOMES = {
    name: home
    for home, names in {
        "connection": "Connection connect",
        "errors": f"FuselineError {_ERRORS}",
        "db_api": _DB_API,
        "interop.duckdb_names": _OF_DUCKDB,
        "frame.cursor": "Cursor",
        "frame.expressions.expression": "Expression all_ exclude numeric of_type",
        "frame.frame": "Frame",
        "frame.functions": "avg coalesce col count fn lit max_ min_ sum_ udaf udf when",
        "interop.narwhals_plugin.plugin": "__narwhals_namespace__",  # for `backend=fuseline`
        "module_functions": """
            begin close commit cursor default_connection execute
            executemany fetchall fetchdf fetchmany fetchnumpy fetchone from_arrow
            from_df interrupt query read_csv read_ipc read_json read_parquet register
            rollback table unregister view
            """,
    }.items()
    for name in names.split()
}

__all__ = [
    "Connection",
    "Cursor",
    "Expression",
    "Frame",
    "FuselineError",
    "all_",
    "avg",
    "begin",
    "close",
    "coalesce",
    "col",
    "commit",
    "connect",
    "count",
    "cursor",
    "default_connection",
    "exclude",
    "execute",
    "executemany",
    "fetchall",
    "fetchdf",
    "fetchmany",
    "fetchnumpy",
    "fetchone",
    "fn",
    "from_arrow",
    "from_df",
    "interrupt",
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
    "rollback",
    "sum_",
    "table",
    "udaf",
    "udf",
    "unregister",
    "view",
    "when",
]


def __getattr__(name: str) -> Any:
    if name == "sql":  # the package, which can be called
        return import_module(".sql", __name__)
    if name not in _HOMES:
        instead = f": use {_INSTEAD[name]}" if name in _INSTEAD else ""
        raise AttributeError(f"module 'fuseline' has no attribute {name!r}{instead}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*__all__, *_ERRORS.split(), *_DB_API.split(), *_OF_DUCKDB.split(), "__version__"]
