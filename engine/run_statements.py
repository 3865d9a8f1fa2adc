"""Carries out the statements that are not queries: tables, views, settings, DESCRIBE, EXPLAIN.

PREPARE, SET VARIABLE, and macros: what statements change of a connection beside its tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answers import Answer, Columns, counted, done, table_of
from .catalog import View
from .change_tables import Changed, changed, numbered_rows
from .errors import ExecutionError, InvalidQuery, TransactionError, UnknownName, nearest, printable
from .import_ahead import frame_class
from .plan import statements as st
from .plan.changes.catalog_objects import DESCRIPTION, UserType, described, is_left
from .plan.changes.database_changes import DatabaseStatement
from .plan.changes.stand_in import filled
from .plan.coercion import enum_of
from .plan.composed.nested_literals import as_told, constant_told
from .plan.expr import ColumnRef, new_column
from .plan.logical import Project
from .plan.types import VARCHAR
from .storage.tables.memory_table import MemoryTable

if TYPE_CHECKING:
    from .catalog import Catalog
    from .connection import Connection
    from .plan.logical import Logical


EXPLANATION: Columns = [("explain_key", VARCHAR), ("explain_value", VARCHAR)]


def run_statement(connection: Connection, statement: st.Statement) -> Answer:
    """Carry out one statement other than a query."""
    if isinstance(statement, DatabaseStatement):
        from .database_statements.run_database_statements import run_database_statement

        return run_database_statement(connection, statement)
    if isinstance(statement, st.SessionStatement):
        return run_session_statement(connection, statement)
    if isinstance(statement, st.TableStatement):
        from .table_statements.run_table_statements import run_table_statement

        return run_table_statement(connection, statement)
    return _run(connection, statement)


def _run(connection: Connection, statement: st.Statement) -> Answer:
    match statement:
        case st.CreateTable():
            return _create_table(connection, statement)
        case st.CreateView(name=name, text=text, columns=columns):
            view = View(name, text, columns)
            connection.catalog.create(view, statement.if_there)
            return done()
        case st.Insert() | st.Update() | st.Delete() | st.AlterTable() | st.RenameView():
            return changed(connection, statement)
        case st.Drop():
            return _drop(connection, statement)
        case st.SetOption(name=name, value=value, reset=reset):
            if reset:
                connection.reset_option(name)
            else:
                connection.set_option(name, value)
            return done()
        case st.Describe(query=query, rules=rules):
            rows = [described(c.name, c.type, rules) for c in query.plan.columns]
            return Answer(table_of([(n, VARCHAR) for n in DESCRIPTION], rows), is_asked=True)
        case st.ShowTables():
            names = [(name,) for name in connection.catalog.names()]
            return Answer(table_of([("name", VARCHAR)], names), is_asked=True)
        case st.CopyTo():
            from .writing.copy_to import copy_to

            return copy_to(connection, statement)
        case st.Explain():
            return _explain(connection, statement)
        case st.Transaction():
            return _transaction(connection, statement)
        case st.NoOperation():
            return done()
        case st.Query():
            raise InvalidQuery("A query is run by Connection.run.")
    raise AssertionError(f"nothing carries out {type(statement).__name__}")


def _create_table(connection: Connection, statement: st.CreateTable) -> Answer:
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


def _transaction(connection: Connection, statement: st.Transaction) -> Answer:
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


def _drop(connection: Connection, statement: st.Drop) -> Answer:
    dropped = connection.catalog.drop(statement.name, statement.kind)
    if dropped is None and not statement.if_exists:
        raise connection.catalog.unknown(statement.name)
    connection.forget(dropped)
    return done()


def _explain(connection: Connection, statement: st.Explain) -> Answer:
    plan = statement.query.plan
    if statement.writes is not None:
        from .table_statements.run_table_statements import analyzed_write

        text = analyzed_write(connection, statement.writes, run_statement)
        return Answer(table_of(EXPLANATION, [("analyzed_plan", printable(text))]), is_asked=True)
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


def run_session_statement(connection: Connection, statement: st.SessionStatement) -> Answer:
    """Carry out one of these statements."""
    catalog = connection.catalog
    session = catalog.session
    match statement:
        case st.Prepare(statement=stored):
            catalog.change_session(lambda s: s.prepared.update({stored.name.lower(): stored}))
        case st.Deallocate(name=name):
            if name.lower() not in session.prepared:
                hint = nearest(name, session.prepared)
                raise UnknownName(f'There is no prepared statement "{name}".{hint}')
            catalog.change_session(lambda s: s.prepared.pop(name.lower()))
        case st.SetVariable(name=name, query=None):
            catalog.change_session(lambda s: s.variables.pop(name.lower(), None))
        case st.SetVariable(name=name, query=query):
            assert query is not None
            column = query.plan.columns[0]
            told = as_told(ColumnRef(column))
            plan = Project(query.plan, ((new_column(column.name, told.type), told),))
            rows = connection.run(plan).to_arrow()
            if rows.num_rows != 1:
                raise ExecutionError(f"SET VARIABLE takes one row, and there are {rows.num_rows}.")
            found = constant_told(rows.column(0)[0].as_py(), column.type)
            catalog.change_session(lambda s: s.variables.update({name.lower(): found}))
        case st.CreateMacro(macro=macro):
            known = catalog.macro(macro.name)
            if known is None or not is_left("macro", macro.name, statement.if_there):
                catalog.put_named(macro)
        case st.DropDefinition(kind=kind, name=name, if_exists=if_exists):
            if not catalog.drop_named(name, kind) and not if_exists:
                hint = nearest(name, [entry.name for _, entry in catalog.objects(kind)])
                raise UnknownName(f'There is no {kind} "{name}".{hint}')
        case st.CreateSecret() | st.DropSecret():
            if connection.settings.lock_settings:
                raise InvalidQuery(
                    "Secrets are locked with the settings of this connection: lock_settings is true."
                )
            return change_secrets(catalog, statement)
        case st.CreateType():
            _create_type(connection, statement)
    return done()


def change_secrets(catalog: Catalog, statement: st.CreateSecret | st.DropSecret) -> Answer:
    """Keep a secret, or let go of one; files that were found with others before are looked for anew."""
    rules = catalog.access.rules
    known = {secret.name: secret for secret in rules.remote.secrets}
    if isinstance(statement, st.CreateSecret):
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


def _create_type(connection: Connection, statement: st.CreateType) -> None:
    catalog, name = connection.catalog, statement.name
    if name.lower() in catalog.user_types and is_left("type", name, statement.if_there):
        return
    made = statement.made
    if not isinstance(made, UserType):
        texts = connection.run(made.plan).to_arrow().column(0).drop_null().to_pylist()
        made = UserType(name, enum_of(dict.fromkeys(texts)))
    catalog.put_named(UserType(catalog.new_name([made.name]), made.type))
