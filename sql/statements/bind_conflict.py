"""ON CONFLICT, INSERT OR IGNORE and INSERT OR REPLACE: what becomes of rows that share a key with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from fuseline.errors import InvalidQuery
from fuseline.plan import infer
from fuseline.plan.changes.table_rules import UniqueKey, rules_of
from fuseline.plan.expr import (
    TRUE,
    AggregateCall,
    ColumnRef,
    Expr,
    conjunction,
    new_column,
)
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.logical import Aggregate, CatalogTable, Filter, Join, Logical, Project
from fuseline.plan.statements import OnConflict
from fuseline.plan.types import BIGINT

from ..binding.scope import Scope, Source
from ..parsing.pieces import span_of
from ..parsing.unread import use
from .assignments import assignments, numbered, with_values
from .bind_table_rules import source_of


def bind_conflict(
    node: exp.Insert, table: CatalogTable, given: Sequence[str], alias: str | None, scope: Scope
) -> OnConflict | None:
    """Return what an INSERT does with rows that share a key, None where that is an error; `given` are the columns that it names."""
    clause = node.args.get("conflict")
    word = str(node.args.get("alternative") or "").lower()
    if clause is None and not word:
        return None
    if clause is not None and word:
        raise InvalidQuery(f"INSERT OR {word.upper()} takes no ON CONFLICT.", span_of(node.this))
    updates = word == "replace"
    if clause is not None:
        use(clause, clause.args["action"])
        updates = clause.args["action"].name.upper() == "DO UPDATE"
    keys = tuple(key.columns for key in _keys(clause, table, node, updates))
    existing, excluded = numbered(table), replace(numbered(table), name="excluded")
    old, new = source_of(existing, alias), source_of(excluded)
    firsts = tuple(_firsts(source_of(excluded).plan, key) for key in keys)
    if not updates:
        matches = tuple(_matches(old, new, key, ()) for key in keys)
        return OnConflict(keys, excluded, existing, firsts, matches)
    # A name without a table is a column of the row that is there
    inside = replace(scope.over(old), outer=scope.over(new)).inside("ON CONFLICT")
    columns = {c.name: c for c in new.plan.columns}
    if clause is not None:
        values = assignments(clause.expressions, table, inside)
    else:
        values = {name: ColumnRef(columns[name]) for name in given if name not in keys[0]}
    condition: Expr = TRUE
    where = clause.args.get("where") if clause is not None else None
    if where is not None:
        use(where)
        condition = infer.condition(inside.bind(where.this))
    items = [ColumnRef(old.plan.columns[-1]), condition, *values.values()]
    matches = (_matches(old, new, keys[0], items),)
    return OnConflict(keys, excluded, existing, firsts, matches, tuple(values))


def _keys(
    clause: exp.Expr | None, table: CatalogTable, node: exp.Insert, updates: bool
) -> Sequence[UniqueKey]:
    """Return the keys that ON CONFLICT is about: the one that it names, or all."""
    keys = rules_of(table).unique_keys
    named = clause.args.get("conflict_keys") if clause is not None else None
    if named:
        columns = set()
        for item in named:
            column = item.this if isinstance(item, exp.Ordered) else item
            use(item, column, *(column.parts if isinstance(column, exp.Column) else ()))
            columns.add(column.name.lower())
        found = [key for key in keys if {c.lower() for c in key.columns} == columns]
        if not found:
            raise InvalidQuery(
                "ON CONFLICT names columns that are no PRIMARY KEY or UNIQUE of the table.",
                span_of(named[0]),
            )
        return found
    if not keys:
        raise InvalidQuery(
            f'The table "{table.name}" has no PRIMARY KEY and nothing UNIQUE, so its rows cannot conflict.',
            span_of(node.this),
        )
    if updates and len(keys) > 1:
        raise InvalidQuery(
            f'The table "{table.name}" has several keys: name the columns of one, as in ON CONFLICT ({", ".join(keys[0].columns)}).',
            span_of(node.this),
        )
    return keys


def _firsts(scan: Logical, key: Sequence[str]) -> Logical:
    """Return the number of the first row for each value of a key without NULLs."""
    columns = {c.name: c for c in scan.columns}
    known = conjunction([infer.call("is_not_null", [ColumnRef(columns[n])]) for n in key])
    number = ColumnRef(scan.columns[-1])
    first = new_column("first", BIGINT)
    keys = tuple((new_column(n, columns[n].type), ColumnRef(columns[n])) for n in key)
    groups = Aggregate(
        Filter(scan, known), keys, ((first, AggregateCall("min", (number,), BIGINT)),)
    )
    return Project(groups, ((first, ColumnRef(first)),))


def _matches(old: Source, new: Source, key: Sequence[str], values: Sequence[Expr]) -> Logical:
    """Return the numbers of new rows whose key the table has, and the values for what becomes of them."""
    theirs = {c.name: c for c in old.plan.columns}
    mine = {c.name: c for c in new.plan.columns}
    equal = conjunction([infer.call("eq", [ColumnRef(mine[n]), ColumnRef(theirs[n])]) for n in key])
    kind = JoinKind.INNER if values else JoinKind.SEMI
    join = Join(new.plan, old.plan, kind, equal)
    number = new.plan.columns[-1]
    named = {f"value{i}": value for i, value in enumerate(values)}
    return with_values(join, ((number, ColumnRef(number)),), named)
