"""What Flight SQL's questions about the catalog are answered with: catalogs, schemas, tables, keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from ..catalog import View
from ..frame.exported import exported_schema
from ..metadata.objects import Fields, Here, never_null
from ..plan.arrow.arrow_types import arrow_table
from ..plan.changes.catalog_objects import TEMP, SchemaPlace, rules_of
from ..plan.types import Kind, to_arrow
from . import flight_sql_messages as messages
from .sql_info import SQL_INFO, TYPE_INFO, sql_info, type_info

if TYPE_CHECKING:
    from .shared_tables import ServedConnection

TABLE_TYPES = ("TABLE", "VIEW")


def _field(name: str, arrow: pa.DataType, required: bool = False) -> pa.Field:
    return pa.field(name, arrow, nullable=not required)


def _texts(*names: str) -> list[pa.Field]:
    """Fields of text, of which those whose names end in ! are never NULL."""
    return [_field(name.rstrip("!"), pa.string(), name.endswith("!")) for name in names]


CATALOGS = pa.schema(_texts("catalog_name!"))
SCHEMAS = pa.schema(_texts("catalog_name", "db_schema_name!"))
TABLES = pa.schema(_texts("catalog_name", "db_schema_name", "table_name!", "table_type!"))
TABLES_WITH_COLUMNS = TABLES.append(_field("table_schema", pa.binary(), True))
KINDS_OF_TABLES = pa.schema(_texts("table_type!"))
PRIMARY_KEYS = pa.schema(
    [
        *_texts("catalog_name", "db_schema_name", "table_name!", "column_name!", "key_name"),
        _field("key_sequence", pa.int32(), True),
    ]
)
FOREIGN_KEYS = pa.schema(
    [
        *_texts("pk_catalog_name", "pk_db_schema_name", "pk_table_name!", "pk_column_name!"),
        *_texts("fk_catalog_name", "fk_db_schema_name", "fk_table_name!", "fk_column_name!"),
        _field("key_sequence", pa.int32(), True),
        *_texts("fk_key_name", "pk_key_name"),
        _field("update_rule", pa.uint8(), True),
        _field("delete_rule", pa.uint8(), True),
    ]
)

ANSWERED: dict[type, pa.Schema] = {
    messages.CommandGetCatalogs: CATALOGS,
    messages.CommandGetDbSchemas: SCHEMAS,
    messages.CommandGetTables: TABLES,
    messages.CommandGetTableTypes: KINDS_OF_TABLES,
    messages.CommandGetPrimaryKeys: PRIMARY_KEYS,
    messages.CommandGetExportedKeys: FOREIGN_KEYS,
    messages.CommandGetImportedKeys: FOREIGN_KEYS,
    messages.CommandGetCrossReference: FOREIGN_KEYS,
    messages.CommandGetSqlInfo: SQL_INFO,
    messages.CommandGetXdbcTypeInfo: TYPE_INFO,
}


def schema_of(question: object) -> pa.Schema | None:
    """Return the columns of an answer; None for a message that is no such question."""
    if isinstance(question, messages.CommandGetTables) and question.include_schema:
        return TABLES_WITH_COLUMNS
    return ANSWERED.get(type(question))


def metadata_answer(question: object, served: ServedConnection) -> pa.Table:
    """Return the rows that answer a question about the catalog or the server."""
    match question:
        case messages.CommandGetSqlInfo(info=wanted):
            return sql_info(wanted, served.permissions.read_only)
        case messages.CommandGetXdbcTypeInfo(data_type=number):
            return type_info(number)
        case messages.CommandGetCatalogs():
            names = {place.database for place in _places(_here(served))}
            rows: list[tuple[object, ...]] = [(name,) for name in sorted(names)]
        case messages.CommandGetDbSchemas(catalog=catalog, db_schema_filter_pattern=pattern):
            matches = matcher(pattern)
            found = [p for p in _places(_here(served)) if catalog in (None, p.database)]
            rows = [(p.database, p.schema) for p in sorted(found) if matches(p.schema)]
        case messages.CommandGetTableTypes():
            rows = [(kind,) for kind in TABLE_TYPES]
        case messages.CommandGetTables():
            rows = [*_tables(question, _here(served))]
        case messages.CommandGetPrimaryKeys():
            rows = [*_primary_keys(question, _here(served))]
        case _:  # there are no foreign keys
            rows = []
    schema = schema_of(question)
    assert schema is not None
    return arrow_table(rows, schema)


def arrow_schema(columns: Fields, never: Collection[str] = ()) -> pa.Schema:
    """Return columns as Arrow has them, each with its SQL type as JDBC and ODBC clients look for it; some are never NULL."""
    fields = [
        pa.field(
            name,
            to_arrow(data_type),
            nullable=name not in never,
            metadata={"ARROW:FLIGHT:SQL:TYPE_NAME": str(data_type)},
        )
        for name, data_type in columns
    ]
    return exported_schema(pa.schema(fields))


def _here(served: ServedConnection) -> Here:
    served.refresh()
    served.connection.catalog.refresh()
    return Here(served.connection.catalog, served.connection.settings)


def _places(here: Here) -> list[SchemaPlace]:
    """Return all schemas as they are spelled; that of temporary objects only where there are some."""
    catalog = here.catalog
    used = {key.database for key, _ in catalog.objects("relation")}
    return [catalog.spelled(p) for p in catalog.places() if p.database != TEMP or TEMP in used]


def _tables(asked: messages.CommandGetTables, here: Here) -> Iterator[tuple[object, ...]]:
    in_schema = matcher(asked.db_schema_filter_pattern)
    matches = matcher(asked.table_name_filter_pattern)
    for name, entry in here.entries():
        kind = "VIEW" if isinstance(entry, View) else "TABLE"
        database, schema = name.place
        if asked.catalog not in (None, database) or not (in_schema(schema) and matches(name)):
            continue
        if asked.table_types and kind not in asked.table_types:
            continue
        row = (database, schema, str(name), kind)
        if not asked.include_schema:
            yield row
            continue
        readable = [(n, t) for n, t in here.fields(entry, name) if t.kind is not Kind.OTHER]
        never = () if isinstance(entry, View) else never_null(rules_of(entry))
        yield (*row, arrow_schema(readable, never).serialize().to_pybytes())


def _primary_keys(
    asked: messages.CommandGetPrimaryKeys, here: Here
) -> Iterator[tuple[object, ...]]:
    for name, entry in here.entries():
        database, schema = name.place
        if asked.catalog not in (None, database) or asked.db_schema not in (None, schema):
            continue
        if name.lower() != asked.table.lower() or isinstance(entry, View):
            continue
        for key in rules_of(entry).keys:
            if key.primary:
                named = "_".join((name, *key.columns, "pkey"))
                for i, column in enumerate(key.columns, 1):
                    yield (database, schema, str(name), column, named, i)


def matcher(pattern: str | None) -> Callable[[str], bool]:
    r"""Return a test whether a name matches a pattern with % and _, before which \ takes them as they are."""
    if pattern is None:
        return lambda name: True
    parts = re.findall(r"\\[\\%_]|.", pattern, re.DOTALL)
    special = {"%": ".*", "_": "."}
    expression = "".join(special.get(p) or re.escape(p[-1]) for p in parts)
    compiled = re.compile(expression, re.DOTALL | re.IGNORECASE)
    return lambda name: compiled.fullmatch(name) is not None
