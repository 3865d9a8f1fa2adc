"""Whether rows that are written keep the rules of their table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .errors import ConstraintError
from .plan import infer
from .plan.changes.stand_in import filled
from .plan.changes.table_rules import TableRules, UniqueKey
from .plan.expr import AggregateCall, ColumnRef, Expr, Literal, conjunction, new_column
from .plan.join_kinds import JoinKind
from .plan.logical import Aggregate, Filter, Join, Limit, Logical, Scan
from .plan.types import BIGINT

if TYPE_CHECKING:
    from .connection import Connection
    from .database.stored_table import StoredTable
    from .plan.statements import WrittenRows
    from .storage.tables.memory_table import MemoryTable


def check_all(
    connection: Connection, written: WrittenRows, rows: MemoryTable, old: MemoryTable | StoredTable
) -> None:
    """Check rows that are to stand behind those of a table; raises `ConstraintError`."""
    check_columns(connection, written, rows, old.table_rules)
    check_keys(connection, old.table_rules.unique_keys, rows, old)


def check_columns(
    connection: Connection, written: WrittenRows | None, rows: MemoryTable, rules: TableRules
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
