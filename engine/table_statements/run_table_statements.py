"""Which function carries out a statement about tables, and those for indexes, sequences and COMMENT ON;
and EXPLAIN ANALYZE of one that writes: it is carried out over a connection that keeps what its queries did.

An index is part of the rules of its table, and its name is one of the table's schema.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ..answers import Answer, done
from ..catalog import View
from ..change_tables import TRIES, changed
from ..database.stored_table import StoredTable
from ..errors import CatalogError, TransactionError, UnknownColumn, UnknownName, nearest
from ..observe.explain import analyzed
from ..plan import statements as st
from ..plan.changes import catalog_objects as co
from ..plan.changes.sequences import (
    DropSequence,
    Sequence as NamedSequence,
    SequenceStatement,
    named_sequences,
)
from ..plan.changes.stand_in import StandIn
from ..storage.tables.memory_table import MemoryTable
from .merge_tables import merge
from .with_changes import with_changes

if TYPE_CHECKING:
    from ..answers import Answer
    from ..catalog import Catalog
    from ..connection import Connection
    from ..observe.profile import Profile
    from ..plan.logical import CatalogTable, Logical
    from ..reading import Reading
    from ..runtime.run import Result


def run_table_statement(connection: Connection, statement: st.TableStatement) -> Answer:
    """Carry out one of these statements."""
    match statement:
        case st.Merge():
            return merge(connection, statement)
        case st.WithChanges():
            return with_changes(connection, statement)
        case st.CommentOn():
            return comment_on(connection.catalog, statement)
        case st.CreateIndex():
            return create_index(connection, statement)
        case st.DropIndex():
            return drop_index(connection, statement)
    return change_sequences(connection.catalog, statement)


Found = tuple[co.SchemaPlace, "CatalogTable", co.TableIndex]


def create_index(connection: Connection, statement: st.CreateIndex) -> Answer:
    """Make an index; raises `CatalogError` for a name that is taken, and `ConstraintError` where rows are not unique."""
    catalog = connection.catalog
    own = next(
        key.place
        for key, entry in catalog.objects("relation")
        if entry is catalog.entry(statement.change.table)
    )
    taken = any(
        place == own and index.name.lower() == statement.name.lower()
        for place, _, index in _indexes(catalog)
    )
    if taken and co.is_left("index", statement.name, statement.if_there):
        return done()
    return changed(connection, statement.change)


def drop_index(connection: Connection, statement: st.DropIndex) -> Answer:
    """Remove an index; raises `UnknownName`."""
    catalog, (*schema, name) = connection.catalog, statement.parts
    where = catalog.place_of(schema) if schema else None
    known = list(_indexes(catalog))
    here = [
        found
        for found in known
        if found[2].name.lower() == name.lower() and (not schema or found[0] == where)
    ]
    current = catalog.current
    here.sort(key=lambda found: found[0] != current)
    if not here:
        if statement.if_exists:
            return done()
        hint = nearest(name, [index.name for _, _, index in known])
        raise UnknownName(f'There is no index "{name}".{hint}')
    _, table, index = here[0]
    rules = co.rules_of(table)
    rules = replace(rules, indexes=tuple(each for each in rules.indexes if each != index))
    columns = tuple(st.AlteredColumn(column, kind, column) for column, kind in table.fields)
    rows = StandIn(table.name, table.fields)
    return changed(connection, st.AlterTable(table.name, table.name, columns, rules, rows))


def _indexes(catalog: Catalog) -> Iterator[Found]:
    for key, entry in catalog.objects("relation"):
        for index in (getattr(entry, "table_rules", None) and co.rules_of(entry).indexes) or ():
            yield key.place, entry, index


def comment_on(catalog: Catalog, statement: st.CommentOn) -> Answer:
    """Say something about an object; raises `UnknownName`, and `CatalogError` for a table of files."""
    if statement.kind != "relation":
        _on_named(catalog, statement)
        return done()
    name = catalog.located(statement.parts)
    if name is None:
        raise catalog.unknown(".".join(statement.parts))
    for _ in range(TRIES):
        entry = catalog.view(name) or catalog.table(name)
        if entry is None:
            raise catalog.unknown(name)
        if catalog.exchange(entry, _commented(entry, statement)):
            return done()
    raise TransactionError(f'Other statements change "{name}" all the time: try again.')


def _commented(entry: CatalogTable | View, statement: st.CommentOn) -> CatalogTable | View:
    if isinstance(entry, View):
        return replace(entry, comments=entry.comments.with_text(statement.column, statement.text))
    rules = co.rules_of(entry)
    column = _spelled(statement.column, [name for name, _ in entry.fields], entry.name)
    rules = replace(rules, comments=rules.comments.with_text(column, statement.text))
    if isinstance(entry, StoredTable):
        made = entry.changed(rules=rules)
        made.rows = entry.rows
        return made
    if not isinstance(entry, MemoryTable):
        raise CatalogError(f'"{entry.name}" is made of files, which have no comments here.')
    table = copy.copy(entry)  # with the cached columns of the same rows
    table.table_rules = rules
    return table


def _spelled(column: str | None, names: Sequence[str], table: str) -> str | None:
    if column is None:
        return None
    for name in names:
        if name.lower() == column.lower():
            return name
    raise UnknownColumn(f'The table "{table}" has no column "{column}".{nearest(column, names)}')


def _on_named(catalog: Catalog, statement: st.CommentOn) -> None:
    name = ".".join(statement.parts)
    found = catalog.named_entry(statement.parts, statement.kind)
    if found is None:
        hint = nearest(name, [key.name for key, _ in catalog.objects(statement.kind)])
        raise UnknownName(f'There is no {statement.kind} "{name}".{hint}')
    key, entry = found
    assert isinstance(entry, co.Macro | co.UserType), "of this kind"
    catalog.change({key: replace(entry, comment=statement.text)})


def change_sequences(catalog: Catalog, statement: SequenceStatement) -> Answer:
    """Make a sequence or remove one; raises `CatalogError` for one that defaults of tables need."""
    if isinstance(statement, DropSequence):
        _drop(catalog, statement)
        return done()
    name = statement.name
    known = catalog.sequence([*name.place, name])
    if known is not None:
        if co.is_left("sequence", name, statement.if_there):
            return done()
        _check(known[1], _dependents(catalog, known[0]))
    catalog.put_named(NamedSequence.new(name, statement.values))
    return done()


def _drop(catalog: Catalog, statement: DropSequence) -> None:
    known = catalog.sequence(statement.parts)
    if known is None:
        if statement.if_exists:
            return
        name = statement.parts[-1]
        hint = nearest(name, catalog.sequence_names())
        raise UnknownName(f'There is no sequence "{name}".{hint}')
    key, sequence = known
    tables = _dependents(catalog, key)
    if not statement.cascade:
        _check(sequence, tables)
    catalog.change({key: None, **dict.fromkeys(tables)})


def _dependents(catalog: Catalog, sequence: co.ObjectKey) -> dict[co.ObjectKey, str]:
    """Return the tables that have a default of a sequence's values."""
    found = {}
    for key, entry in catalog.objects("relation"):
        texts = [default.text for _, default in co.rules_of(entry).defaults]
        asked = [
            catalog.sequence(parts, key.place) for text in texts for parts in named_sequences(text)
        ]
        if any(known is not None and known[0] == sequence for known in asked):
            found[key] = str(entry.name)
    return found


def _check(sequence: NamedSequence, tables: dict[co.ObjectKey, str]) -> None:
    if tables:
        first = next(iter(tables.values()))
        raise CatalogError(
            f'The default of a column of "{first}" needs the sequence "{sequence.name}": drop the default first, or write '
            "DROP SEQUENCE ... CASCADE, which drops the table too."
        )


class WatchedConnection:
    """A connection whose queries leave their profiles, in the order in which they began."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.profiles: list[Callable[[], Profile]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def run(self, plan: Logical, key: object = None, timed: bool = True) -> Result:
        result = self._connection.run(plan, key, timed=True)
        self.profiles.append(lambda: result.profile)
        return result

    def stream(self, plan: Logical, key: object = None) -> Reading:
        reading = self._connection.stream(plan, key)
        self.profiles.append(reading.profile)
        return reading

    def kept(self, name: str, plan: Logical, columns: Sequence[str]) -> MemoryTable:
        rows = self.run(plan).to_arrow()
        named = rows.rename_columns(list(columns)) if columns else rows
        return MemoryTable(name, named, [c.type for c in plan.columns])


def analyzed_write(
    connection: Connection,
    statement: st.Statement,
    carry_out: Callable[[Connection, st.Statement], Answer],
) -> str:
    """Carry out a statement; return how many rows it wrote, and what the query of its rows and those that look at keys and constraints did."""
    start, watched = time.perf_counter(), WatchedConnection(connection)
    answer = carry_out(cast("Connection", watched), statement)
    rows = answer.table.num_rows if answer.written is None else answer.written
    spent = (time.perf_counter() - start) * 1e3
    said = f"{type(statement).__name__}: {rows:,d} rows, {spent:.2f} ms in all; its queries:"
    return "\n\n".join([said, *(analyzed(profile()) for profile in watched.profiles)])
