"""Carries out the statements that are not queries: tables, views, settings, DESCRIBE, EXPLAIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answers import Answer, Columns, counted, done, table_of
from .catalog import View
from .change_tables import Changed, changed, numbered_rows
from .errors import InvalidQuery, TransactionError, printable
from .import_ahead import frame_class
from .plan.changes.catalog_objects import is_left
from .plan.changes.database_changes import DatabaseStatement
from .plan.changes.stand_in import filled
from .plan.changes.table_rules import DESCRIPTION, described
from .plan.statements import (
    AlterTable,
    CopyTo,
    CreateTable,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    Insert,
    NoOperation,
    Query,
    RenameView,
    SessionStatement,
    SetOption,
    ShowTables,
    Statement,
    TableStatement,
    Transaction,
    Update,
)
from .plan.types import VARCHAR
from .run_session_statements import run_session_statement
from .storage.tables.memory_table import MemoryTable

if TYPE_CHECKING:
    from .connection import Connection
    from .plan.logical import Logical

EXPLANATION: Columns = [("explain_key", VARCHAR), ("explain_value", VARCHAR)]


def run_statement(connection: Connection, statement: Statement) -> Answer:
    """Carry out one statement other than a query."""
    if isinstance(statement, DatabaseStatement):
        from .database_statements.run_database_statements import run_database_statement

        return run_database_statement(connection, statement)
    if isinstance(statement, SessionStatement):
        return run_session_statement(connection, statement)
    if isinstance(statement, TableStatement):
        from .table_statements.run_table_statements import run_table_statement

        return run_table_statement(connection, statement)
    return _run(connection, statement)


def _run(connection: Connection, statement: Statement) -> Answer:
    match statement:
        case CreateTable():
            return _create_table(connection, statement)
        case CreateView(name=name, text=text, columns=columns):
            view = View(name, text, columns)
            connection.catalog.create(view, statement.if_there)
            return done()
        case Insert() | Update() | Delete() | AlterTable() | RenameView():
            return changed(connection, statement)
        case Drop():
            return _drop(connection, statement)
        case SetOption(name=name, value=value, reset=reset):
            if reset:
                connection.reset_option(name)
            else:
                connection.set_option(name, value)
            return done()
        case Describe(query=query, rules=rules):
            rows = [described(c.name, c.type, rules) for c in query.plan.columns]
            return Answer(table_of([(n, VARCHAR) for n in DESCRIPTION], rows), is_asked=True)
        case ShowTables():
            names = [(name,) for name in connection.catalog.names()]
            return Answer(table_of([("name", VARCHAR)], names), is_asked=True)
        case CopyTo():
            from .writing.copy_to import copy_to

            return copy_to(connection, statement)
        case Explain():
            return _explain(connection, statement)
        case Transaction():
            return _transaction(connection, statement)
        case NoOperation():
            return done()
        case Query():
            raise InvalidQuery("A query is run by Connection.run.")
    raise AssertionError(f"nothing carries out {type(statement).__name__}")


def _create_table(connection: Connection, statement: CreateTable) -> Answer:
    catalog = connection.catalog
    old = catalog.entry(statement.name)
    # Before the query runs, which may take long
    if old is not None and is_left("table or view", statement.name, statement.if_there):
        return done()
    if statement.query is None:
        types = [t for _, t in statement.columns]
        table, written = (
            MemoryTable(
                statement.name, table_of(list(statement.columns), []), types, statement.rules
            ),
            None,
        )
    else:
        names = [name for name, _ in statement.columns]
        table = connection.kept(statement.name, statement.query.plan, columns=names)
        if catalog.is_lasting(statement.name):
            table = connection.gathered(table).on_host()
        written = table.num_rows
    old = catalog.entry(statement.name)
    created = catalog.create(table, statement.if_there)
    if created and old is not None:
        connection.forget(old)
    return done() if written is None else counted(written)


def _transaction(connection: Connection, statement: Transaction) -> Answer:
    catalog, failed = connection.catalog, connection.catalog.failed
    if statement.action == "begin":
        catalog.begin(statement.only_reads)
    elif statement.action == "commit" and not failed:
        catalog.commit()
    else:
        for entry in catalog.roll_back():
            connection.forget(entry)
        if statement.action == "commit":
            raise TransactionError(
                "An earlier statement of this transaction failed, so it was rolled back."
            )
    return done()


def _drop(connection: Connection, statement: Drop) -> Answer:
    dropped = connection.catalog.drop(statement.name, statement.kind)
    if dropped is None and not statement.if_exists:
        raise connection.catalog.unknown(statement.name)
    connection.forget(dropped)
    return done()


def _explain(connection: Connection, statement: Explain) -> Answer:
    plan = statement.query.plan
    if statement.existing is not None:
        table = connection.catalog.table(statement.table)
        assert isinstance(table, Changed), "bound"
        rows = numbered_rows(table.on_host(), statement.existing)
        plan = filled(plan, {statement.existing: rows})
    return explanation(connection, plan, statement.analyze)


def explanation(connection: Connection, plan: Logical, analyze: bool, key: object = None) -> Answer:
    """Return the row of EXPLAIN [ANALYZE]; `key` is what the connection knows of the plan."""
    frame = frame_class()(connection, plan, key)
    name, text = (
        ("analyzed_plan", frame.explain("analyze"))
        if analyze
        else ("physical_plan", frame.explain())
    )
    return Answer(table_of(EXPLANATION, [(name, printable(text))]), is_asked=True)
