"""PREPARE, SET VARIABLE, and macros: what statements change of a connection beside its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answers import Answer, done
from .errors import ExecutionError, InvalidQuery, UnknownName, nearest
from .plan.changes.catalog_objects import is_left
from .plan.changes.session_objects import UserType
from .plan.coercion import enum_of
from .plan.composed.nested_literals import as_told, constant_told
from .plan.expr import ColumnRef, new_column
from .plan.logical import Project
from .plan.statements import (
    CreateMacro,
    CreateSecret,
    CreateType,
    Deallocate,
    DropDefinition,
    DropSecret,
    Prepare,
    SessionStatement,
    SetVariable,
)

if TYPE_CHECKING:
    from .catalog import Catalog
    from .connection import Connection


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
            column = query.plan.columns[0]
            told = as_told(ColumnRef(column))
            plan = Project(query.plan, ((new_column(column.name, told.type), told),))
            rows = connection.run(plan).to_arrow()
            if rows.num_rows != 1:
                raise ExecutionError(f"SET VARIABLE takes one row, and there are {rows.num_rows}.")
            found = constant_told(rows.column(0)[0].as_py(), column.type)
            catalog.change_session(lambda s: s.variables.update({name.lower(): found}))
        case CreateMacro(macro=macro):
            known = catalog.macro(macro.name)
            if known is None or not is_left("macro", macro.name, statement.if_there):
                catalog.put_named(macro)
        case DropDefinition(kind=kind, name=name, if_exists=if_exists):
            if not catalog.drop_named(name, kind) and not if_exists:
                hint = nearest(name, [entry.name for _, entry in catalog.objects(kind)])
                raise UnknownName(f'There is no {kind} "{name}".{hint}')
        case CreateSecret() | DropSecret():
            if connection.settings.lock_settings:
                raise InvalidQuery(
                    "Secrets are locked with the settings of this connection: lock_settings is true."
                )
            return change_secrets(catalog, statement)
        case CreateType():
            _create_type(connection, statement)
    return done()


def change_secrets(catalog: Catalog, statement: CreateSecret | DropSecret) -> Answer:
    """Keep a secret, or let go of one; files that were found with others before are looked for anew."""
    rules = catalog.access.rules
    known = {secret.name: secret for secret in rules.remote.secrets}
    if isinstance(statement, CreateSecret):
        secret = statement.secret
        if secret.name in known and is_left("secret", secret.name, statement.if_there):
            return done()
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


def _create_type(connection: Connection, statement: CreateType) -> None:
    catalog, name = connection.catalog, statement.name
    if name.lower() in catalog.user_types and is_left("type", name, statement.if_there):
        return
    made = statement.made
    if not isinstance(made, UserType):
        texts = connection.run(made.plan).to_arrow().column(0).drop_null().to_pylist()
        made = UserType(name, enum_of(texts))
    catalog.put_named(UserType(catalog.new_name([made.name]), made.type))
