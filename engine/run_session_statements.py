"""PREPARE, SET VARIABLE, and macros: what statements change of a connection beside its tables."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow as pa

from .answers import Answer, done
from .errors import ExecutionError, InvalidQuery, UnknownName, Unsupported, nearest
from .plan.casts import cast
from .plan.changes.catalog_objects import is_left
from .plan.changes.session_objects import UserType
from .plan.coercion import enum_of
from .plan.composed.nested_values import list_value, struct_pack
from .plan.expr import Expr, Interval, Literal, Value
from .plan.infer import call
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
from .plan.types import VARCHAR, DataType, Kind, list_of

if TYPE_CHECKING:
    from .catalog import Catalog
    from .connection import Connection

_PLAIN = (bool, int, float, Decimal, str, bytes, date, datetime)


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
            found = _constant(rows.column(0)[0].as_py(), query.plan.columns[0].type)
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


def _constant(value: object, data_type: DataType) -> Expr:
    """Return a value of an answer as a constant of queries."""
    if isinstance(value, list) and data_type.kind is Kind.MAP:
        parts = zip(*value, strict=True) if value else ((), ())
        kinds = data_type.children[0].children
        lists = [_constant(list(p), list_of(k)) for p, k in zip(parts, kinds, strict=True)]
        return cast(call("map_of_lists", lists), data_type)
    if isinstance(value, list) and data_type.kind is Kind.LIST:
        inside = [_constant(element, data_type.children[0]) for element in value]
        return cast(list_value(inside, None), data_type)
    if isinstance(value, dict) and data_type.kind is Kind.STRUCT:
        fields = zip(value.values(), data_type.children, strict=True)
        return cast(struct_pack(data_type.names, [_constant(*f) for f in fields], None), data_type)
    if isinstance(value, time):
        return cast(Literal(str(value), VARCHAR), data_type)
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return _literal(value, data_type)


def _literal(value: object, data_type: DataType) -> Literal:
    known: Value
    if isinstance(value, pa.MonthDayNano):
        months, days, nanoseconds = value
        known = Interval(months, days, nanoseconds // 1000)
    elif data_type.is_enum and isinstance(value, str):
        known = data_type.names.index(value)
    elif isinstance(value, UUID):
        known = value.bytes
    elif value is None or isinstance(value, _PLAIN):
        known = value
    else:
        raise Unsupported(f"A variable of the type {data_type} is not supported.")
    return Literal(known, data_type)
