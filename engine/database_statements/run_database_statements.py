"""Carries out the statements about whole databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..answers import Answer, done
from ..errors import TransactionError
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
from .change_schemas import create_schema, drop_schema
from .export_database import export_database
from .import_database import import_database

if TYPE_CHECKING:
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
