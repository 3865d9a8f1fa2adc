"""The SQLAlchemy dialect: `create_engine("fuseline://")`, with settings as in `fuseline:///?device=cpu&memory_limit=4GB`.

An engine has one `fuseline.Connection`, which its threads share: the tables of a second one would be others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import default, reflection
from sqlalchemy.exc import NoSuchTableError
from sqlalchemy.pool import StaticPool

import fuseline

from ..catalog import View
from ..plan.changes.catalog_objects import TEMP, ObjectName, SchemaPlace, TableRules, rules_of
from .sqlalchemy_statements import (
    ExactNumeric,
    ExecutionContext,
    FuselineCompiler,
    FuselineDDLCompiler,
    FuselineNames,
    FuselineTypeCompiler,
)

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


Method = TypeVar("Method", bound=Callable[..., object])


def cached(method: Method) -> Method:
    """Have an inspector ask a method of reflection once."""
    made: Method = reflection.cache(method)
    return made


class FuselineDialect(default.DefaultDialect):
    """Fuseline as a database of SQLAlchemy's."""

    name = "fuseline"
    driver = "fuseline"
    execution_ctx_cls = ExecutionContext
    statement_compiler = FuselineCompiler
    ddl_compiler = FuselineDDLCompiler
    preparer = FuselineNames
    type_compiler_cls = FuselineTypeCompiler
    default_schema_name = SCHEMA
    supports_statement_cache = True
    supports_alter = supports_sequences = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    div_is_floordiv = False  # 3 / 2 is 1.5
    supports_multivalues_insert = True
    supports_default_values = True
    supports_empty_insert = False
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = True
    colspecs: ClassVar = {sa.Numeric: ExactNumeric, sa.Float: sa.Float}
    supports_is_distinct_from = True
    insert_returning = update_returning = delete_returning = True
    insert_executemany_returning = insert_executemany_returning_sort_by_parameter_order = True
    postfetch_lastrowid = False
    max_identifier_length = 5_000

    def __init__(self, foreign_keys: str = "refuse", **options: object) -> None:
        """Take the options of `create_engine`: with foreign_keys="omit" tables are made without theirs, which nothing would check."""
        super().__init__(**options)
        if foreign_keys not in ("refuse", "omit"):
            raise fuseline.InterfaceError(
                f'foreign_keys= is "refuse" or "omit", not {foreign_keys!r}.'
            )
        self.foreign_keys = foreign_keys

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

    @cached
    def get_schema_names(self, connection: Connection, **_: object) -> list[str]:
        catalog = _fuseline(connection.connection).catalog
        database = catalog.current.database
        found = [catalog.spelled(p).schema for p in catalog.places() if p.database == database]
        return sorted(found)

    @cached
    def get_table_names(
        self, connection: Connection, schema: str | None = None, **_: object
    ) -> list[str]:
        return [str(n) for n, entry in _of_schema(connection, schema) if _is_table(entry)]

    @cached
    def get_view_names(
        self, connection: Connection, schema: str | None = None, **_: object
    ) -> list[str]:
        return [str(n) for n, entry in _of_schema(connection, schema) if not _is_table(entry)]

    @cached
    def get_temp_table_names(
        self, connection: Connection, schema: str | None = None, **_: object
    ) -> list[str]:
        return [str(n) for n, entry in _within(connection, [SchemaPlace(TEMP)]) if _is_table(entry)]

    @cached
    def get_temp_view_names(
        self, connection: Connection, schema: str | None = None, **_: object
    ) -> list[str]:
        found = _within(connection, [SchemaPlace(TEMP)])
        return [str(n) for n, entry in found if not _is_table(entry)]

    @cached
    def get_view_definition(
        self, connection: Connection, view_name: str, schema: str | None = None, **_: object
    ) -> str:
        for name, entry in _entries(connection, schema):
            if _same(name, view_name) and isinstance(entry, View):
                return entry.text
        raise NoSuchTableError(view_name)

    @cached
    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> bool:
        names = [name.casefold() for name, _ in _entries(connection, schema)]
        return table_name.casefold() in names

    @cached
    def get_sequence_names(
        self, connection: Connection, schema: str | None = None, **_: object
    ) -> list[str]:
        catalog = _fuseline(connection.connection).catalog
        place = SchemaPlace(catalog.current.database, (schema or SCHEMA).lower())
        return [e.name for k, e in catalog.objects("sequence") if k.place == place]

    @cached
    def has_sequence(
        self, connection: Connection, sequence_name: str, schema: str | None = None, **_: object
    ) -> bool:
        known = self.get_sequence_names(connection, schema)
        return any(_same(name, sequence_name) for name in known)

    @cached
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
                }
            )
        return made

    @cached
    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> Reflected:
        keys = [key for key in _rules(connection, table_name, schema).keys if key.primary]
        return {"name": None, "constrained_columns": [c for key in keys for c in key.columns]}

    @cached
    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> list[Reflected]:
        keys = [key for key in _rules(connection, table_name, schema).keys if not key.primary]
        return [{"name": None, "column_names": list(key.columns)} for key in keys]

    @cached
    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> list[Reflected]:
        checks = _rules(connection, table_name, schema).checks
        return [{"name": None, "sqltext": check.shown} for check in checks]

    @cached
    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> list[Reflected]:
        _rules(connection, table_name, schema)
        return []

    get_indexes = get_foreign_keys  # none either


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
    """Return the tables and views of a schema of the database in use by name, with temporary ones where no schema is named."""
    temporary = _within(connection, [SchemaPlace(TEMP)]) if schema is None else []
    return [*_of_schema(connection, schema), *temporary]


def _of_schema(
    connection: Connection, schema: str | None
) -> list[tuple[ObjectName, CatalogTable | View]]:
    database = _fuseline(connection.connection).catalog.current.database
    return _within(connection, [SchemaPlace(database, (schema or SCHEMA).lower())])


def _within(
    connection: Connection, places: Sequence[SchemaPlace]
) -> list[tuple[ObjectName, CatalogTable | View]]:
    catalog = _fuseline(connection.connection).catalog
    catalog.refresh()
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
