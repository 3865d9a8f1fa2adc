"""DuckDB's names of what this package has under others: errors, types, expressions, and functions on the default connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

from .. import errors
from ..connection import Connection
from ..errors import WrongArguments, shown
from ..fence import fenced
from ..frame.duckdb_expressions import (
    CaseExpression as CaseExpression,
    CoalesceOperator as CoalesceOperator,
    ColumnExpression as ColumnExpression,
    ConstantExpression as ConstantExpression,
    FunctionExpression as FunctionExpression,
    SQLExpression as SQLExpression,
    StarExpression as StarExpression,
    count_all as count_all,
    star as star,
)
from ..frame.frame import Frame
from ..module_functions import default_connection, of_default
from ..plan.infer import parse_type
from ..plan.types import NULL, DataType, array_of, decimal, list_of, map_of, struct_of

DuckDBPyConnection, DuckDBPyRelation = Connection, Frame

BinderException = errors.BinderError
CatalogException = DependencyException = errors.CatalogError
ConnectionException = errors.ConnectionClosed
ConstraintException = errors.ConstraintError
ConversionException = errors.ConversionError
FatalException = InternalException = errors.InternalError
HTTPException = IOException = SerializationException = errors.FileError
InterruptException = errors.Interrupted
InvalidInputException = errors.InvalidQuery
InvalidTypeException = TypeMismatchException = errors.TypeMismatch
NotImplementedException = errors.Unsupported
OutOfMemoryException = errors.MemoryLimitError
OutOfRangeException = errors.OutOfRange
ParserException = SyntaxException = errors.ParseError
PermissionException = errors.AccessDenied
SequenceException = errors.SequenceError
TransactionException = errors.TransactionError

append = of_default(Connection.append)
checkpoint = of_default(Connection.checkpoint)
create_function = of_default(Connection.create_function)  # type: ignore[var-annotated]
duplicate = of_default(Connection.duplicate)
extract_statements = of_default(Connection.extract_statements)
from_csv_auto = of_default(Connection.read_csv)  # type: ignore[arg-type]
from_parquet = of_default(Connection.read_parquet)  # type: ignore[arg-type]
from_query = of_default(Connection.sql)
get_table_names = of_default(Connection.get_table_names)
install_extension = of_default(Connection.install_extension)
load_extension = of_default(Connection.load_extension)
query_progress = of_default(Connection.query_progress)
remove_function = of_default(Connection.remove_function)  # type: ignore[var-annotated]
table_function = of_default(Connection.table_function)
values = of_default(Connection.values)


def _of_last_execute(name: str) -> Callable[..., object]:
    def call(*given: object, **named: object) -> object:
        found = getattr(default_connection(), name)
        return found(*given, **named) if callable(found) else found

    call.__name__ = call.__qualname__ = name
    return fenced(call)


# Of the default connection's last execute; DuckDB's module has functions of what its connections have as attributes
df, fetch_df = _of_last_execute("df"), _of_last_execute("fetch_df")
arrow = fetch_arrow_table = to_arrow_table = _of_last_execute("to_arrow_table")
pl = _of_last_execute("pl")
to_arrow_reader = fetch_record_batch = _of_last_execute("to_arrow_reader")
description, rowcount = _of_last_execute("description"), _of_last_execute("rowcount")


def _of_frame(name: str) -> Callable[..., object]:
    def call(df: object, *given: object, **named: object) -> object:
        made = df if isinstance(df, Frame) else default_connection().from_df(df)
        return getattr(made, name)(*given, **named)

    call.__name__ = call.__qualname__ = name
    return fenced(call)


# Of a frame of any library, which is the first argument
aggregate, alias, distinct = _of_frame("aggregate"), _of_frame("set_alias"), _of_frame("distinct")
filter, limit, order = _of_frame("filter"), _of_frame("limit"), _of_frame("order")
project, query_df, write_csv = _of_frame("project"), _of_frame("query"), _of_frame("write_csv")

# Types


@fenced
def type(text: str | DataType) -> DataType:
    """Return the type that a text names: "INTEGER", "DECIMAL(9, 2)", "VARCHAR[]"."""
    if isinstance(text, DataType):
        return text
    if not isinstance(text, str):
        raise WrongArguments(f"A type is named by a text, not by {shown(text)}.")
    try:
        return parse_type(text)
    except errors.UnknownName:  # nested ones, and those of the connection, are read by SQL
        return default_connection().sql(f"SELECT CAST(NULL AS {text})").plan.columns[0].type


dtype = sqltype = type


@fenced
def array_type(element: str | DataType, size: int) -> DataType:
    return array_of(type(element), size)


@fenced
def decimal_type(width: int, scale: int) -> DataType:
    return decimal(width, scale)


@fenced
def list_type(element: str | DataType) -> DataType:
    return list_of(type(element))


@fenced
def map_type(key: str | DataType, value: str | DataType) -> DataType:
    return map_of(type(key), type(value))


@fenced
def struct_type(fields: Mapping[str, str | DataType]) -> DataType:
    if not isinstance(fields, Mapping):
        raise WrongArguments(f"struct_type() takes a dictionary of types, not {shown(fields)}.")
    return struct_of((str(name), type(found)) for name, found in fields.items())


row_type = struct_type

sqltypes = typing = ModuleType("fuseline.sqltypes", "The types of SQL by their names.")
for _name in [
    "BIGINT",
    "BIT",
    "BLOB",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "HUGEINT",
    "INTEGER",
    "INTERVAL",
    "JSON",
    "SMALLINT",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
    "TIMESTAMP_S",
    "TINYINT",
    "UBIGINT",
    "UINTEGER",
    "USMALLINT",
    "UTINYINT",
    "UUID",
    "VARCHAR",
]:
    setattr(sqltypes, _name, parse_type(_name))
sqltypes.TIMESTAMP_TZ, sqltypes.SQLNULL = parse_type("TIMESTAMPTZ"), NULL  # type: ignore[attr-defined]
