"""INSERT, UPDATE, DELETE and ALTER: the next version of a table in memory, made by queries over the one before, and whether it keeps its rules.

What a statement computes is planned and run as a query: the rows that it names, by their numbers, and their new values.  Arrow then puts
these into the columns that change; the other columns are shared by both versions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .answers import Answer, counted, done
from .database.stored_table import StoredTable
from .errors import CatalogError, ConstraintError, TransactionError
from .plan import infer, statements as st
from .plan.arrow.arrow_arrays import array_from
from .plan.changes.catalog_objects import TableRules, UniqueKey
from .plan.changes.stand_in import StandIn, filled
from .plan.expr import AggregateCall, ColumnRef, Expr, Literal, conjunction, new_column
from .plan.join_kinds import JoinKind
from .plan.logical import Aggregate, Filter, Join, Limit, Logical, Scan
from .plan.types import BIGINT, to_arrow
from .storage.tables.memory_table import MemoryTable

if TYPE_CHECKING:
    from .connection import Connection
    from .plan.logical import Logical
    from .plan_cache import CachedPlan


def check_all(
    connection: Connection,
    written: st.WrittenRows,
    rows: MemoryTable,
    old: MemoryTable | StoredTable,
) -> None:
    """Check rows that are to stand behind those of a table; raises `ConstraintError`."""
    check_columns(connection, written, rows, old.table_rules)
    check_keys(connection, old.table_rules.unique_keys, rows, old)


def check_columns(
    connection: Connection, written: st.WrittenRows | None, rows: MemoryTable, rules: TableRules
) -> None:
    """Check NOT NULL and CHECK; a check whose value is NULL holds."""
    for name in sorted(rules.not_null):
        if rows.column(name).null_count:
            raise ConstraintError(
                f'The column "{name}" of "{rows.name}" is NOT NULL, and a row has a NULL in it.'
            )
    if written is None or not rows.num_rows:
        return
    for shown, plan in written.checks:
        broken = connection.run(filled(plan, {written.rows: rows})).to_arrow().to_pylist()
        if broken:
            values = ", ".join(f"{name}: {value}" for name, value in broken[0].items())
            raise ConstraintError(
                f'A row of "{rows.name}" breaks its rule CHECK ({shown}): {values}.'
            )


def check_keys(
    connection: Connection,
    keys: Sequence[UniqueKey],
    rows: MemoryTable,
    before: MemoryTable | StoredTable | None,
) -> None:
    """Check that no two rows have one key, and that none of those before has it."""
    for key in keys:
        found: list[dict[str, object]] = []
        if rows.num_rows > 1:
            found = _asked(connection, _repeated(rows, key))
        if not found and rows.num_rows and before is not None and before.num_rows:
            found = _asked(connection, _present(rows, before, key))
        if found:
            values = ", ".join(f"{name}: {found[0][name]}" for name in key.columns)
            raise ConstraintError(
                f'There are two rows of "{rows.name}" with the {key.kind} {values}: INSERT OR IGNORE leaves out such rows, '
                "ON CONFLICT says what becomes of them."
            )


def _asked(connection: Connection, plan: Logical) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = connection.run(plan).to_arrow().to_pylist()
    return rows


def _scan(rows: MemoryTable | StoredTable, key: UniqueKey) -> Scan:
    made = tuple(new_column(name, rows.types[name]) for name in key.columns)
    return Scan(rows, made, key.columns)


def _repeated(rows: MemoryTable, key: UniqueKey) -> Logical:
    """A row with the values of a key that several rows have."""
    scan = _scan(rows, key)
    known = conjunction([infer.call("is_not_null", [ColumnRef(c)]) for c in scan.made])
    count = new_column("count", BIGINT)
    keys = tuple((new_column(c.name, c.type), ColumnRef(c)) for c in scan.made)
    groups = Aggregate(
        Filter(scan, known), keys, ((count, AggregateCall("count_star", (), BIGINT)),)
    )
    several: Expr = infer.call("gt", [ColumnRef(count), Literal(1, BIGINT)])
    return Limit(Filter(groups, several), 1)


def _present(rows: MemoryTable, before: MemoryTable | StoredTable, key: UniqueKey) -> Logical:
    """A row with the values of a key that the table before has already."""
    new, old = _scan(rows, key), _scan(before, key)
    equal = [
        infer.call("eq", [ColumnRef(a), ColumnRef(b)])
        for a, b in zip(new.made, old.made, strict=True)
    ]
    return Limit(Join(new, old, JoinKind.SEMI, conjunction(equal)), 1)


Changed = MemoryTable | StoredTable
TRIES = 100  # of a statement whose table other threads go on changing
Change = st.Insert | st.Update | st.Delete | st.AlterTable | st.RenameView


def changed(
    connection: Connection, statement: Change, prepared: CachedPlan | None = None
) -> Answer:
    """Carry out a statement that changes a table; raises `ConstraintError` and changes nothing where rows break its rules.

    `prepared` is the query of an INSERT, if that is known.
    """
    match statement:
        case st.Insert(query=query):
            rows = connection.run(query.plan, prepared).to_arrow()
            add = _append if statement.conflict is None else _insert
            return exchanged(
                connection, statement.table, lambda t: add(connection, statement, t, rows)
            )
        case st.Update():
            return exchanged(
                connection, statement.table, lambda t: _update(connection, statement, t)
            )
        case st.Delete():
            return exchanged(
                connection, statement.table, lambda t: _delete(connection, statement, t)
            )
        case st.AlterTable():
            return exchanged(
                connection, statement.table, lambda t: _alter(connection, statement, t)
            )
        case st.RenameView():
            view = connection.catalog.view(statement.view)
            assert view is not None, "bound"
            connection.catalog.exchange(view, replace(view, name=statement.name))
            return done()


def exchanged(
    connection: Connection, name: str, work: Callable[[Changed], tuple[Changed, Answer]]
) -> Answer:
    """Put what `work` makes of a table in its place, anew where another thread has changed it meanwhile."""
    catalog = connection.catalog
    for _ in range(TRIES):
        found = catalog.table(name)
        if found is None and catalog.view(name) is None:
            raise catalog.unknown(name)
        old = _changeable(connection, name, found)
        new, answer = work(old)
        if found is not None and catalog.exchange(found, new):
            connection.forget(found)
            return answer
    raise TransactionError(f'Other statements change "{name}" all the time: try again.')


def _changeable(connection: Connection, name: str, table: object) -> Changed:
    if isinstance(table, StoredTable):
        return table
    if not isinstance(table, MemoryTable):
        what = "a view" if table is None else "made of files"
        raise CatalogError(f'"{name}" is {what}, so its rows cannot be changed.')
    if table.unsupported:
        raise CatalogError(
            f'"{table.name}" has columns of types that queries cannot read ({", ".join(table.unsupported)}), '
            "so its rows cannot be changed."
        )
    return (connection.gathered(table) if table.is_sharded else table).on_host()


def rows_of(connection: Connection, plan: Logical, tables: dict[StandIn, MemoryTable]) -> pa.Table:
    """Return the rows of a plan that reads tables where their stand-ins are."""
    return connection.run(filled(plan, dict(tables))).to_arrow()


def numbered_rows(table: MemoryTable, stand_in: StandIn) -> MemoryTable:
    """Return a table with the column of row numbers that its stand-in has."""
    assert stand_in.number is not None
    return table.numbered(stand_in.number)


def _rows_to_insert(statement: st.Insert, old: Changed, given: pa.Table) -> pa.Table:
    arrays = dict(zip((c.lower() for c in statement.columns), given.columns, strict=True))
    schema = pa.schema([(name, to_arrow(t)) for name, t in old.fields])
    rows = pa.table([arrays[name.lower()] for name, _ in old.fields], names=schema.names)
    return rows if rows.schema == schema else rows.cast(schema)


def with_generated(
    connection: Connection,
    written: st.WrittenRows,
    rows: pa.Table,
    numbers: np.ndarray | None = None,
) -> pa.Table:
    """Return rows of a table with its generated columns computed: in all of them, or in those with these numbers."""
    if written.generated is None or not rows.num_rows:
        return rows
    taken = np.arange(rows.num_rows) if numbers is None else np.unique(numbers)
    types = [t for _, t in written.rows.fields]
    given = MemoryTable(written.rows.name, rows.take(array_from(taken)), types)
    made = rows_of(connection, written.generated, {written.rows: given})
    names = tuple(column.name for column in written.generated.columns)
    return scattered(rows, taken, names, made.columns)


def _append(
    connection: Connection, statement: st.Insert, old: Changed, given: pa.Table
) -> tuple[Changed, Answer]:
    rows = with_generated(connection, statement.written, _rows_to_insert(statement, old, given))
    inserted = MemoryTable(old.name, rows, list(old.types.values()))
    check_all(connection, statement.written, inserted, old)
    return old.appended(rows), _answer(connection, statement.written, inserted)


def _insert(
    connection: Connection, statement: st.Insert, table: Changed, given: pa.Table
) -> tuple[MemoryTable, Answer]:
    """Insert rows of which some may share a key with others."""
    conflict, old = statement.conflict, table.on_host()
    rows = with_generated(connection, statement.written, _rows_to_insert(statement, table, given))
    assert conflict is not None
    fresh, numbers, values = _apart(connection, conflict, old, rows)
    data = old.in_result_types()
    if len(numbers):
        data = scattered(data, numbers, conflict.columns, values)
        data = with_generated(connection, statement.written, data, numbers)
    kept = np.unique(numbers) if len(numbers) else np.array([], np.int64)
    touched = pa.concat_tables([data.take(array_from(kept)), fresh])
    new = old.with_rows(pa.concat_tables([data, fresh]))
    written = MemoryTable(old.name, touched, list(old.types.values()))
    check_columns(connection, statement.written, written, old.table_rules)
    check_keys(connection, old.table_rules.unique_keys, new, None)
    return new, _answer(connection, statement.written, written)


def _apart(
    connection: Connection, conflict: st.OnConflict, old: MemoryTable, rows: pa.Table
) -> tuple[pa.Table, np.ndarray, list[pa.ChunkedArray]]:
    """Return the rows that share no key with others, and the numbers of rows of the table that are updated, with their values."""
    types = list(old.types.values())
    numbers, values = np.array([], np.int64), list[pa.ChunkedArray]()
    for columns, firsts, matches in zip(
        conflict.keys, conflict.firsts, conflict.matches, strict=True
    ):
        given = numbered_rows(MemoryTable(old.name, rows, types), conflict.given)
        tables = {conflict.given: given, conflict.existing: numbered_rows(old, conflict.existing)}
        unknown = np.zeros(rows.num_rows, bool)
        for column in columns:
            unknown |= rows.column(column).is_null().to_numpy()
        kept = unknown.copy()
        kept[rows_of(connection, firsts, tables).column(0).to_numpy()] = True
        found = rows_of(connection, matches, tables)
        mine = found.column(0).to_numpy()
        if conflict.columns:
            wanted = array_from(kept[mine])
            wanted = pc.and_(wanted, pc.fill_null(found.column(2), False))
            updates = found.filter(wanted)
            numbers, values = updates.column(1).to_numpy(), updates.columns[3:]
        kept[mine] = False
        rows = rows.filter(array_from(kept))
    return rows, numbers, values


def _update(
    connection: Connection, statement: st.Update, table: Changed
) -> tuple[MemoryTable, Answer]:
    old = table.on_host()
    existing = {statement.existing: numbered_rows(old, statement.existing)}
    found = rows_of(connection, statement.query, existing)
    numbers = found.column(0).to_numpy()
    data = scattered(old.in_result_types(), numbers, statement.columns, found.columns[1:])
    data = with_generated(connection, statement.written, data, numbers)
    new = old.with_rows(data)
    touched = data.take(array_from(np.unique(numbers)))
    written = MemoryTable(old.name, touched, list(old.types.values()))
    check_columns(connection, statement.written, written, old.table_rules)
    set_keys = [
        key
        for key in old.table_rules.unique_keys
        if not set(key.columns).isdisjoint(statement.columns)
    ]
    check_keys(connection, set_keys, new, None)
    return new, _answer(connection, statement.written, written)


def scattered(
    data: pa.Table, numbers: np.ndarray, columns: tuple[str, ...], values: list[pa.ChunkedArray]
) -> pa.Table:
    """Return the rows with new values at these numbers; of several for one row the last."""
    places = np.arange(data.num_rows, dtype=np.int64)
    places[numbers] = data.num_rows + np.arange(len(numbers), dtype=np.int64)
    taken = array_from(places)
    for name, new in zip(columns, values, strict=True):
        place = data.schema.get_field_index(name)
        old = data.column(place)
        both = pa.chunked_array([*old.chunks, *new.cast(old.type).chunks], old.type)
        data = data.set_column(place, name, both.take(taken))
    return data


def _delete(
    connection: Connection, statement: st.Delete, table: Changed
) -> tuple[MemoryTable, Answer]:
    old = table.on_host()
    existing = {statement.existing: numbered_rows(old, statement.existing)}
    numbers = rows_of(connection, statement.query, existing).column(0).to_numpy()
    kept = np.ones(old.num_rows, bool)
    kept[numbers] = False
    deleted = array_from(~kept)
    new = old.with_rows(old.data.filter(array_from(kept)))
    gone = MemoryTable(old.name, old.data.filter(deleted), list(old.types.values()))
    return new, _answer(connection, statement.deleted, gone)


def _answer(connection: Connection, written: st.WrittenRows, rows: MemoryTable) -> Answer:
    """Return what RETURNING asks of the rows, or how many they are."""
    if written.returning is None:
        return counted(rows.num_rows)
    table = rows_of(connection, written.returning, {written.rows: rows})
    types = tuple(column.type for column in written.returning.columns)
    return Answer(table, rows.num_rows, is_asked=True, types=types)


def _alter(
    connection: Connection, statement: st.AlterTable, table: Changed
) -> tuple[Changed, Answer]:
    new = _altered(connection, statement, table)
    rules = statement.rules
    added = TableRules(
        rules.not_null - table.table_rules.not_null,
        keys=tuple(k for k in rules.unique_keys if k not in table.table_rules.unique_keys),
    )
    if added.not_null or added.keys:
        rows = new.on_host()
        check_columns(connection, None, rows, added)
        check_keys(connection, added.keys, rows, None)
    return new, done()


def _altered(connection: Connection, statement: st.AlterTable, table: Changed) -> Changed:
    kept = tuple((c.source, c.type) for c in statement.columns)
    named = tuple((c.name, c.type) for c in statement.columns)
    if isinstance(table, StoredTable) and kept == named == table.fields:
        return table.changed(name=statement.name, rules=statement.rules)  # its files stay
    old = table.on_host()
    data = old.in_result_types()
    computed = iter(())
    if statement.computed is not None:
        made = rows_of(connection, statement.computed, {statement.existing: old})
        computed = iter(made.columns)
    columns = [
        (next(computed) if c.source is None else data.column(c.source)).cast(to_arrow(c.type))
        for c in statement.columns
    ]
    rows = pa.table(columns, names=[c.name for c in statement.columns])
    types = [c.type for c in statement.columns]
    return MemoryTable(statement.name, rows, types, statement.rules)
