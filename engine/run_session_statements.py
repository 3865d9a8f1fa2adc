"""PREPARE, SET VARIABLE, and macros: what statements change of a connection beside its tables."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow as pa

from .answers import Answer, done
from .errors import CatalogError, ExecutionError, InvalidQuery, UnknownName, Unsupported, nearest
from .plan.changes.session_objects import UserType
from .plan.coercion import enum_of
from .plan.expr import Interval, Literal, Value
from .plan.statements import (
    CreateMacro,
    CreateSecret,
    CreateType,
    Deallocate,
    DropMacro,
    DropSecret,
    DropType,
    Prepare,
    SessionStatement,
    SetVariable,
)

if TYPE_CHECKING:
    from .catalog import Catalog
    from .connection import Connection
    from .plan.types import DataType


def run_session_statement(connection: Connection, statement: SessionStatement) -> Answer:
    """Carry out one of these statements."""
    catalog = connection.catalog
    session = catalog.session
    match statement:
        case Prepare(statement=stored):
            catalog.change_session(lambda s: s.prepared.update({stored.name.lower(): stored}))
        case Deallocate(name=name):
            if name.lower() not in session.prepared:
                hint = nearest(name, session.prepared)
                raise UnknownName(f'There is no prepared statement "{name}".{hint}')
            catalog.change_session(lambda s: s.prepared.pop(name.lower()))
        case SetVariable(name=name, query=None):
            catalog.change_session(lambda s: s.variables.pop(name.lower(), None))
        case SetVariable(name=name, query=query):
            assert query is not None
            rows = connection.run(query.plan).to_arrow()
            if rows.num_rows != 1:
                raise ExecutionError(f"SET VARIABLE takes one row, and there are {rows.num_rows}.")
            literal = _literal(rows.column(0)[0].as_py(), query.plan.columns[0].type)
            catalog.change_session(lambda s: s.variables.update({name.lower(): literal}))
        case CreateMacro(macro=macro):
            if catalog.macro(macro.name) is not None and not statement.replace:
                if statement.if_not_exists:
                    return done()
                raise CatalogError(
                    f'There is a macro "{macro.name}" already: drop it first, or write CREATE OR REPLACE.'
                )
            catalog.put_named(macro)
        case DropMacro(name=name, if_exists=if_exists):
            if not catalog.drop_named(name, "macro") and not if_exists:
                hint = nearest(name, [m.name for _, m in catalog.objects("macro")])
                raise UnknownName(f'There is no macro "{name}".{hint}')
        case CreateSecret() | DropSecret():
            if connection.settings.lock_settings:
                raise InvalidQuery(
                    "Secrets are locked with the settings of this connection: lock_settings is true."
                )
            return change_secrets(catalog, statement)
        case CreateType() | DropType():
            return _change_types(connection, statement)
    return done()


def change_secrets(catalog: Catalog, statement: CreateSecret | DropSecret) -> Answer:
    """Keep a secret, or let go of one; files that were found with others before are looked for anew."""
    rules = catalog.access.rules
    known = {secret.name: secret for secret in rules.remote.secrets}
    if isinstance(statement, CreateSecret):
        secret = statement.secret
        if secret.name in known and not statement.replace:
            if statement.if_not_exists:
                return done()
            raise CatalogError(
                f'There is a secret "{secret.name}" already: drop it first, or write CREATE OR REPLACE.'
            )
        known[secret.name] = secret
    else:
        if statement.name not in known:
            if statement.if_exists:
                return done()
            hint = nearest(statement.name, known)
            raise UnknownName(f'There is no secret "{statement.name}".{hint}')
        del known[statement.name]
    catalog.restrict(rules.with_remote(tuple(known.values()), rules.remote.refusal))
    return done()


def _change_types(connection: Connection, statement: CreateType | DropType) -> Answer:
    catalog = connection.catalog
    name, known = statement.name.lower(), catalog.user_types
    if isinstance(statement, DropType):
        if not catalog.drop_named(statement.name, "type") and not statement.if_exists:
            raise UnknownName(f'There is no type "{statement.name}".{nearest(name, known)}')
        return done()
    if name in known and not statement.replace:
        if statement.if_not_exists:
            return done()
        raise CatalogError(
            f'There is a type "{statement.name}" already: drop it first, or write CREATE OR REPLACE.'
        )
    made = statement.made
    if not isinstance(made, UserType):
        texts = connection.run(made.plan).to_arrow().column(0).drop_null().to_pylist()
        made = UserType(statement.name, enum_of(texts))
    placed = UserType(catalog.new_name([made.name]), made.type)
    catalog.put_named(placed)
    return done()


def _literal(value: object, data_type: DataType) -> Literal:
    """Return a value of an answer as a constant of queries."""
    known: Value
    if isinstance(value, pa.MonthDayNano):
        months, days, nanoseconds = value
        known = Interval(months, days, nanoseconds // 1000)
    elif data_type.is_enum and isinstance(value, str):
        known = data_type.names.index(value)
    elif isinstance(value, UUID):
        known = value.bytes
    elif value is None or isinstance(value, bool | int | float | Decimal | str | date | datetime):
        known = value
    else:
        raise Unsupported(f"A variable of the type {data_type} is not supported.")
    return Literal(known, data_type)
