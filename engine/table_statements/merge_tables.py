"""MERGE: pairs of rows are looked up once, and then each action reads those that are its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..answers import Answer, counted
from ..change_tables import (
    Changed,
    check_all,
    check_columns,
    check_keys,
    exchanged,
    numbered_rows,
    rows_of,
    scattered,
    with_generated,
)
from ..errors import ConstraintError
from ..plan.statements import Merge, MergeAction
from ..plan.types import to_arrow
from ..storage.tables.memory_table import MemoryTable

if TYPE_CHECKING:
    from ..connection import Connection


class _Merged:
    """The rows of a table while the actions of a MERGE go over them; what was deleted stays so, of several updates of a row each holds."""

    def __init__(self, connection: Connection, statement: Merge, old: MemoryTable) -> None:
        self._connection, self._written = connection, statement.written
        self.name, self.types = old.name, [t for _, t in old.fields]
        self.data = old.in_result_types()
        self.is_kept = np.ones(old.num_rows, bool)
        self.inserted: list[pa.Table] = []
        self.updated: set[str] = set()  # columns
        self.touched: list[np.ndarray] = []  # numbers of rows that were updated
        self.count = 0
        self.returned: list[tuple[str, pa.Table]] = []

    def take(self, action: MergeAction, found: pa.Table) -> None:
        """Carry out one action; `found` are its rows."""
        if not found.num_rows:
            return
        self.count += found.num_rows
        if action.kind == "ERROR":
            message = found.column(0)[0].as_py()
            said = f": {message}" if message else ""
            raise ConstraintError(
                f"A pair of rows of the MERGE came to {action.clause} THEN ERROR{said}."
            )
        if action.kind == "INSERT":
            rows = _as_table(found, self.data.schema)
            rows = with_generated(self._connection, self._written, rows)
            self.inserted.append(rows)
            self.returned.append((action.kind, rows))
            return
        numbers = found.column(0).to_numpy()
        mine = np.unique(numbers)
        if action.kind == "DELETE":
            self.is_kept[numbers] = False
        else:
            data = scattered(self.data, numbers, action.columns, found.columns[1:])
            self.data = with_generated(self._connection, self._written, data, numbers)
            self.updated.update(action.columns)
            self.touched.append(mine)
        self.returned.append((action.kind, self.data.take(pa.array(mine))))

    def rows(self) -> pa.Table:
        """Return the table's rows after all actions."""
        kept = self.data if self.is_kept.all() else self.data.filter(pa.array(self.is_kept))
        return pa.concat_tables([kept, *self.inserted])

    def written(self) -> pa.Table:
        """Return the rows that were updated and are still there, and those that were inserted."""
        parts = [self.data.schema.empty_table(), *self.inserted]
        if self.touched:
            numbers = np.unique(np.concatenate(self.touched))
            parts.append(self.data.take(pa.array(numbers[self.is_kept[numbers]])))
        return pa.concat_tables(parts)

    def table(self, rows: pa.Table) -> MemoryTable:
        return MemoryTable(self.name, rows, self.types)


def merge(connection: Connection, statement: Merge) -> Answer:
    """Carry out MERGE; raises `ConstraintError` and changes nothing where rows break the table's rules, or an action is ERROR."""
    return exchanged(connection, statement.table, lambda t: _merged(connection, statement, t))


def _merged(connection: Connection, statement: Merge, table: Changed) -> tuple[Changed, Answer]:
    """Return the next version of the table, and what the statement answers."""
    old = table.on_host()
    pairs = statement.pairs
    existing = {pairs.existing: numbered_rows(old, pairs.existing)}
    found = rows_of(connection, pairs.query, existing)
    types = [t for _, t in pairs.rows.fields]
    named = found.rename_columns([name for name, _ in pairs.rows.fields])
    tables = {pairs.rows: MemoryTable(old.name, named, types)}
    state = _Merged(connection, statement, old)
    for action in statement.actions:
        state.take(action, rows_of(connection, action.rows, tables))
    answer = _answer(connection, statement, state)
    written = state.table(state.written())
    if not state.touched and state.is_kept.all():
        check_all(connection, statement.written, written, table)
        return table.appended(written.data), answer
    check_columns(connection, statement.written, written, old.table_rules)
    keys = old.table_rules.unique_keys
    if not state.inserted:
        keys = tuple(key for key in keys if not state.updated.isdisjoint(key.columns))
    new = old.with_rows(state.rows())
    check_keys(connection, keys, new, None)
    return new, answer


def _answer(connection: Connection, statement: Merge, state: _Merged) -> Answer:
    asked = statement.returned
    if asked.returning is None:
        return counted(state.count)
    schema = pa.schema([(name, to_arrow(t)) for name, t in asked.rows.fields])
    parts = [schema.empty_table()]
    for kind, rows in state.returned:
        column = pa.array([kind] * rows.num_rows, pa.string())
        parts.append(_as_table(rows.append_column(schema.names[-1], column), schema))
    rows = MemoryTable(state.name, pa.concat_tables(parts), [t for _, t in asked.rows.fields])
    table = rows_of(connection, asked.returning, {asked.rows: rows})
    types = tuple(column.type for column in asked.returning.columns)
    return Answer(table, state.count, is_asked=True, types=types)


def _as_table(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [c.cast(field.type) for c, field in zip(rows.columns, schema, strict=True)]
    return pa.table(columns, schema=schema)
