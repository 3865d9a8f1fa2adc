"""Carries out the statements that are not queries: tables, views, settings, DESCRIBE, EXPLAIN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from .catalog import View
from .errors import CatalogError, InvalidQuery, TransactionError, printable
from .plan.statements import (
    CreateTable,
    CreateView,
    Describe,
    Drop,
    Explain,
    Insert,
    NoOperation,
    Query,
    SetOption,
    ShowTables,
    Statement,
    Transaction,
)
from .plan.types import BIGINT, BOOLEAN, VARCHAR, DataType, to_arrow
from .storage.tables.memory_table import MemoryTable

if TYPE_CHECKING:
    from .connection import Connection

Columns = list[tuple[str, DataType]]

DESCRIPTION: Columns = [
    (name, VARCHAR) for name in ("column_name", "column_type", "null", "key", "default", "extra")
]
EXPLANATION: Columns = [("explain_key", VARCHAR), ("explain_value", VARCHAR)]


@dataclass(frozen=True)
class Answer:
    """The rows that a statement gives, as DuckDB gives them; `written` counts rows that it stored.

    `is_asked`: it was written for its rows, as SHOW is; for others a cursor has none (PEP 249).
    """

    table: pa.Table
    written: int | None = None
    is_asked: bool = False


def run_statement(connection: Connection, statement: Statement) -> Answer:
    """Carry out one statement other than a query."""
    match statement:
        case CreateTable():
            return _create_table(connection, statement)
        case CreateView(name=name, text=text, columns=columns):
            view = View(name, text, columns)
            connection.catalog.create(
                view, replace=statement.replace, if_not_exists=statement.if_not_exists
            )
            return _done()
        case Insert():
            return _insert(connection, statement)
        case Drop():
            return _drop(connection, statement)
        case SetOption(name=name, value=value, reset=reset):
            if reset:
                connection.reset_option(name)
            else:
                connection.set_option(name, value)
            return _done()
        case Describe(query=query):
            rows = [(c.name, str(c.type), "YES", None, None, None) for c in query.plan.columns]
            return Answer(_table(DESCRIPTION, rows), is_asked=True)
        case ShowTables():
            names = [(name,) for name in connection.catalog.names()]
            return Answer(_table([("name", VARCHAR)], names), is_asked=True)
        case Explain():
            return _explain(connection, statement)
        case Transaction():
            return _transaction(connection, statement)
        case NoOperation():
            return _done()
        case Query():
            raise InvalidQuery("A query is run by Connection.run.")


def _create_table(connection: Connection, statement: CreateTable) -> Answer:
    catalog = connection.catalog
    exists = catalog.table(statement.name) is not None or catalog.view(statement.name) is not None
    if exists and statement.if_not_exists:
        return _done()
    if exists and not statement.replace:
        # Before the query runs, which may take long
        raise CatalogError(
            f'There is a table or view "{statement.name}" already: drop it first, or write CREATE OR REPLACE.'
        )
    if statement.query is None:
        types = [t for _, t in statement.columns]
        table, written = (
            MemoryTable(statement.name, _table(list(statement.columns), []), types),
            None,
        )
    else:
        names = [name for name, _ in statement.columns]
        table = connection.kept(statement.name, statement.query.plan, columns=names)
        written = table.num_rows
    old = catalog.table(statement.name)
    created = catalog.create(
        table, replace=statement.replace, if_not_exists=statement.if_not_exists
    )
    if created and old is not None:
        connection.forget(old)
    return _done() if written is None else _counted(written)


def _insert(connection: Connection, statement: Insert) -> Answer:
    catalog = connection.catalog
    table = catalog.table(statement.table)
    if table is None and catalog.view(statement.table) is None:
        raise catalog.unknown(statement.table)
    if not isinstance(table, MemoryTable):
        what = "a view" if table is None else "made of files"
        raise CatalogError(f'"{statement.table}" is {what}, so nothing can be inserted into it.')
    if table.unsupported:
        raise CatalogError(
            f'"{table.name}" has columns of types that queries cannot read ({", ".join(table.unsupported)}), '
            "so nothing can be inserted into it."
        )
    if table.is_sharded:
        catalog.replace_table(table, connection.gathered(table))
    rows = connection.run(statement.query.plan).to_arrow()
    given = dict(zip((c.lower() for c in statement.columns), rows.columns, strict=True))
    arrays = [
        given.get(name.lower(), pa.nulls(rows.num_rows)).cast(to_arrow(data_type))
        for name, data_type in table.fields
    ]
    old = catalog.append(statement.table, pa.table(arrays, names=[n for n, _ in table.fields]))
    connection.forget(old)
    return _counted(int(rows.num_rows))


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
    return _done()


def _drop(connection: Connection, statement: Drop) -> Answer:
    dropped = connection.catalog.drop(statement.name, statement.kind)
    if dropped is None and not statement.if_exists:
        raise connection.catalog.unknown(statement.name)
    connection.forget(dropped)
    return _done()


def _explain(connection: Connection, statement: Explain) -> Answer:
    from .observe.explain import explain

    text = explain(connection, statement.query.plan, "analyze" if statement.analyze else "physical")
    key = "analyzed_plan" if statement.analyze else "physical_plan"
    return Answer(_table(EXPLANATION, [(key, printable(text))]), is_asked=True)


def _table(columns: Columns, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    arrays = [
        pa.array([row[i] for row in rows], to_arrow(data_type))
        for i, (_, data_type) in enumerate(columns)
    ]
    return pa.table(arrays, names=[name for name, _ in columns])


def _done() -> Answer:
    return Answer(_table([("Success", BOOLEAN)], []))


def _counted(rows: int) -> Answer:
    return Answer(_table([("Count", BIGINT)], [(rows,)]), rows)
