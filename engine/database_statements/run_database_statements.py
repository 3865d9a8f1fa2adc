"""Carries out the statements about whole databases, of which CREATE SCHEMA and DROP SCHEMA are written here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..answers import Answer, done
from ..errors import CatalogError, TransactionError, UnknownName, nearest
from ..plan.changes.catalog_objects import MAIN, ObjectKey, SchemaObject, SchemaPlace
from ..plan.changes.database_changes import (
    Attach,
    Checkpoint,
    CreateSchema,
    DatabaseStatement,
    Detach,
    DropSchema,
    ExportDatabase,
    ImportDatabase,
    UseSchema,
)
from .attach import attach
from .export_database import export_database, import_database

if TYPE_CHECKING:
    from ..catalog import Catalog
    from ..connection import Connection


def run_database_statement(connection: Connection, statement: DatabaseStatement) -> Answer:
    """Carry out one of these statements."""
    catalog = connection.catalog
    match statement:
        case Attach():
            attach(
                connection,
                statement.path,
                statement.name,
                statement.read_only,
                statement.if_not_exists,
            )
        case Detach(name=name, if_exists=if_exists):
            if not if_exists or name.lower() in catalog.databases:
                for entry in catalog.detach(name):
                    connection.forget(entry)
        case UseSchema(parts=parts):
            catalog.use(parts)
        case CreateSchema():
            create_schema(catalog, statement)
        case DropSchema():
            for dropped in drop_schema(catalog, statement):
                connection.forget(dropped)
        case Checkpoint(database=name):
            _checkpoint(connection, name)
        case ExportDatabase():
            export_database(connection, statement)
        case ImportDatabase(path=path):
            import_database(connection, path)
    return done()


def _checkpoint(connection: Connection, name: str | None) -> None:
    catalog = connection.catalog
    if catalog.in_transaction:
        raise TransactionError("CHECKPOINT within a transaction: COMMIT or ROLLBACK it first.")
    database = catalog.databases[catalog.current.database if name is None else name.lower()]
    if database.folder is not None and not database.read_only:
        database.folder.checkpoint()
        catalog.refresh()
        database.folder.remove_unused()


_OF_THE_SYSTEM = (MAIN, "information_schema", "pg_catalog")


def create_schema(catalog: Catalog, statement: CreateSchema) -> None:
    place = _place(catalog, statement.parts)
    if catalog.has_schema(place) or place.schema in _OF_THE_SYSTEM:
        if statement.if_not_exists:
            return
        raise CatalogError(
            f'There is a schema "{statement.parts[-1]}" already: write CREATE SCHEMA IF NOT EXISTS.'
        )
    catalog.change({_key(place): SchemaObject(statement.parts[-1])})


def drop_schema(catalog: Catalog, statement: DropSchema) -> list[object]:
    """Remove a schema and return what was in it; raises `CatalogError` where something is, unless the statement says CASCADE."""
    place = _place(catalog, statement.parts)
    if place.schema in _OF_THE_SYSTEM:
        raise CatalogError(f'The schema "{place.schema}" is part of each database.')
    if not catalog.has_schema(place):
        if statement.if_exists:
            return []
        names = [key.schema for key, _ in catalog.objects("schema")]
        raise UnknownName(
            f'There is no schema "{statement.parts[-1]}".{nearest(statement.parts[-1], names)}'
        )
    inside = [
        (key, entry)
        for kind in ("relation", "macro", "type", "sequence")
        for key, entry in catalog.objects(kind)
        if key.place == place
    ]
    if inside and not statement.cascade:
        raise CatalogError(
            f'"{inside[0][1].name}" is in the schema "{statement.parts[-1]}": drop it first, or write DROP SCHEMA ... CASCADE.'
        )
    if catalog.current == place:
        catalog.use((place.database, MAIN))
    catalog.change({**{key: None for key, _ in inside}, _key(place): None})
    return [entry for _, entry in inside]


def _place(catalog: Catalog, parts: Sequence[str]) -> SchemaPlace:
    *database, schema = parts
    around = database[0].lower() if database else catalog.current.database
    return SchemaPlace(around, schema.lower())


def _key(place: SchemaPlace) -> ObjectKey:
    return ObjectKey(place.database, "schema", place.schema, "")
