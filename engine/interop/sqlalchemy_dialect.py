"""The SQLAlchemy dialect: `create_engine("fuseline://")`, with settings as in `fuseline:///?device=cpu&memory_limit=4GB`.

An engine has one `fuseline.Connection`, which its threads share: the tables of a second one would be others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.engine import default
from sqlalchemy.exc import NoSuchTableError
from sqlalchemy.pool import StaticPool
from sqlalchemy.sql import compiler

import fuseline

from ..catalog import View
from ..plan.changes.catalog_objects import TEMP, ObjectName, SchemaPlace
from ..plan.changes.table_rules import TableRules, rules_of

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection
    from sqlalchemy.engine.interfaces import DBAPIConnection

    from ..plan.logical import CatalogTable
    from ..plan.types import DataType

    Reflected = dict[str, object]

SCHEMA = "main"
# What SQL calls a type -> SQLAlchemy's
TYPES: Mapping[str, type[sa.types.TypeEngine[object]]] = {
    "BOOLEAN": sa.BOOLEAN,
    "TINYINT": sa.SMALLINT,
    "SMALLINT": sa.SMALLINT,
    "INTEGER": sa.INTEGER,
    "BIGINT": sa.BIGINT,
    "UTINYINT": sa.SMALLINT,
    "USMALLINT": sa.INTEGER,
    "UINTEGER": sa.BIGINT,
    "FLOAT": sa.REAL,
    "DOUBLE": sa.DOUBLE,
    "VARCHAR": sa.VARCHAR,
    "DATE": sa.DATE,
    "UUID": sa.UUID,
    "TIME": sa.TIME,
    "TIMESTAMP": sa.TIMESTAMP,
    "TIMESTAMP_S": sa.TIMESTAMP,
    "TIMESTAMP_MS": sa.TIMESTAMP,
    "TIMESTAMP_NS": sa.TIMESTAMP,
    "INTERVAL": sa.Interval,
}


class FuselineCompiler(compiler.SQLCompiler):
    """Statements, where DuckDB writes them in another way than SQLAlchemy does."""

    def visit_regexp_match_op_binary(
        self, binary: sa.BinaryExpression[object], operator: object, **options: object
    ) -> str:
        sides = [self.process(side, **options) for side in (binary.left, binary.right)]
        return f"regexp_matches({', '.join(sides)})"

    def visit_not_regexp_match_op_binary(
        self, binary: sa.BinaryExpression[object], operator: object, **options: object
    ) -> str:
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **options)}"

    def limit_clause(self, select: sa.Select[tuple[object, ...]], **options: object) -> str:
        parts = {"LIMIT": select._limit_clause, "OFFSET": select._offset_clause}
        given = {word: part for word, part in parts.items() if part is not None}
        return "".join(f"\n {word} {self.process(p, **options)}" for word, p in given.items())

    def visit_empty_set_expr(self, element_types: Sequence[object], **_: object) -> str:
        columns = ", ".join("NULL" for _ in element_types or [None])
        return f"SELECT {columns} WHERE 1 = 0"


class FuselineTypeCompiler(compiler.GenericTypeCompiler):
    """Types: a FLOAT of SQLAlchemy is one of Python, which DuckDB calls DOUBLE."""

    def visit_FLOAT(self, type_: sa.Float[float], **_: object) -> str:  # noqa: N802
        return "FLOAT" if type_.precision is not None and type_.precision <= 24 else "DOUBLE"


class FuselineDialect(default.DefaultDialect):
    """Fuseline as a database of SQLAlchemy's."""

    name = "fuseline"
    driver = "fuseline"
    statement_compiler = FuselineCompiler
    type_compiler_cls = FuselineTypeCompiler
    default_schema_name = SCHEMA
    supports_statement_cache = True
    supports_alter = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    div_is_floordiv = False  # 3 / 2 is 1.5
    supports_multivalues_insert = True
    supports_default_values = True
    supports_empty_insert = False
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = False
    supports_is_distinct_from = True
    insert_returning = update_returning = delete_returning = True
    insert_executemany_returning = True
    postfetch_lastrowid = False
    max_identifier_length = 5_000

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return fuseline

    @classmethod
    def get_pool_class(cls, url: URL) -> type[StaticPool]:
        return StaticPool

    def create_connect_args(self, url: URL) -> tuple[list[object], dict[str, object]]:
        """Return the arguments of `fuseline.connect`: a folder, and what stands behind the question mark of a URL."""
        if url.host:
            raise fuseline.InterfaceError(
                f'A database of Fuseline is a folder and no host such as {url.host}: write "fuseline:///folder", '
                "with a fourth slash for a path from the root."
            )
        given: dict[str, object] = dict(url.query)
        if "read_only" in given:
            given["read_only"] = _flag("read_only", given["read_only"])
        return [url.database or ":memory:"], given

    # Transactions

    def do_begin(self, dbapi_connection: DBAPIConnection) -> None:
        connection = _fuseline(dbapi_connection)
        if not connection.catalog.in_transaction:
            connection.begin()

    def do_rollback(self, dbapi_connection: DBAPIConnection) -> None:
        connection = _fuseline(dbapi_connection)
        if connection.catalog.in_transaction:
            connection.rollback()

    # What there is

    def _get_server_version_info(self, connection: Connection) -> tuple[int, ...]:
        return tuple(int(part) for part in fuseline.__version__.split(".")[:3])

    def _get_default_schema_name(self, connection: Connection) -> str:
        return SCHEMA

    def get_schema_names(self, connection: Connection, **_: object) -> list[str]:
        catalog = _fuseline(connection.connection).catalog
        database = catalog.current.database
        found = [catalog.spelled(p).schema for p in catalog.places() if p.database == database]
        return sorted(found)

    def get_table_names(
        self, connection: Connection, schema: str | None = None, **_: object
    ) -> list[str]:
        return [str(name) for name, entry in _entries(connection, schema) if _is_table(entry)]

    def get_view_names(
        self, connection: Connection, schema: str | None = None, **_: object
    ) -> list[str]:
        return [str(name) for name, entry in _entries(connection, schema) if not _is_table(entry)]

    def get_view_definition(
        self, connection: Connection, view_name: str, schema: str | None = None, **_: object
    ) -> str:
        for name, entry in _entries(connection, schema):
            if _same(name, view_name) and isinstance(entry, View):
                return entry.text
        raise NoSuchTableError(view_name)

    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> bool:
        names = [name.casefold() for name, _ in _entries(connection, schema)]
        return table_name.casefold() in names

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> list[Reflected]:
        rules = _rules(connection, table_name, schema)
        located = next(n for n, _ in _entries(connection, schema) if _same(n, table_name))
        columns = _fuseline(connection.connection).table(located).schema
        made: list[Reflected] = []
        for name, kind in columns.items():
            given = rules.default(name)
            made.append(
                {
                    "name": name,
                    "type": _type(kind),
                    "nullable": name not in rules.not_null,
                    "default": None if given is None else given.shown,
                    "autoincrement": False,
                }
            )
        return made

    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> Reflected:
        keys = [key for key in _rules(connection, table_name, schema).keys if key.primary]
        return {"name": None, "constrained_columns": [c for key in keys for c in key.columns]}

    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> list[Reflected]:
        keys = [key for key in _rules(connection, table_name, schema).keys if not key.primary]
        return [{"name": None, "column_names": list(key.columns)} for key in keys]

    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> list[Reflected]:
        checks = _rules(connection, table_name, schema).checks
        return [{"name": None, "sqltext": check.shown} for check in checks]

    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> list[Reflected]:
        _rules(connection, table_name, schema)
        return []

    def get_indexes(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> list[Reflected]:
        _rules(connection, table_name, schema)
        return []


def _flag(name: str, value: object) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False}
    found = known.get(str(value).lower())
    if found is None:
        raise fuseline.InterfaceError(f"{name}= is true or false, not {value}.")
    return found


def _fuseline(connection: object) -> fuseline.Connection:
    """Return the connection itself, out of what SQLAlchemy's pool gives."""
    found = getattr(connection, "dbapi_connection", connection)
    assert isinstance(found, fuseline.Connection)
    return found


def _entries(
    connection: Connection, schema: str | None
) -> list[tuple[ObjectName, CatalogTable | View]]:
    """Return the tables and views of a schema of the database in use by name."""
    catalog = _fuseline(connection.connection).catalog
    catalog.refresh()
    places = [SchemaPlace(catalog.current.database, (schema or SCHEMA).lower())]
    places += [SchemaPlace(TEMP)] if schema is None else []
    return [
        (ObjectName(entry.name, key.place), entry)
        for key, entry in catalog.objects("relation")
        if key.place in places
    ]


def _same(name: str, other: str) -> bool:
    return name.casefold() == other.casefold()


def _is_table(entry: CatalogTable | View) -> bool:
    return not isinstance(entry, View)


def _rules(connection: Connection, table_name: str, schema: str | None) -> TableRules:
    """Return the rules of a table, none of a view; raises `NoSuchTableError`."""
    for name, entry in _entries(connection, schema):
        if _same(name, table_name):
            return rules_of(entry)
    raise NoSuchTableError(table_name)


def _type(kind: DataType) -> sa.types.TypeEngine[object]:
    if kind.is_decimal:
        return sa.NUMERIC(kind.precision, kind.scale)
    text = str(kind)
    if text == "TIMESTAMP WITH TIME ZONE":
        return sa.TIMESTAMP(timezone=True)
    if text in ("UBIGINT", "HUGEINT", "UHUGEINT"):
        return sa.NUMERIC(39, 0)
    return TYPES.get(text, sa.types.NullType)()
