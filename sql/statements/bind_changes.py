"""INSERT, UPDATE, DELETE and TRUNCATE.

ON CONFLICT, INSERT OR IGNORE and INSERT OR REPLACE: what becomes of rows that share a key with others.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from fuseline.errors import InvalidQuery, UnknownColumn, Unsupported, nearest
from fuseline.plan import expr as ex, infer
from fuseline.plan.changes.catalog_objects import UniqueKey, rules_of
from fuseline.plan.changes.stand_in import StandIn
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.logical import Aggregate, CatalogTable, Filter, Join, Logical, Project, Values
from fuseline.plan.statements import Delete, Insert, OnConflict, Query, Update, WrittenRows
from fuseline.plan.types import BIGINT, DataType
from fuseline.plan.window.windowed import WindowRewriter

from ..binding.bind_from import beside, bind_list
from ..binding.bind_query import bind_values, with_entries
from ..binding.scope import Scope, Source
from ..binding.select_list import select_list
from ..parsing.pieces import Piece, span_of
from ..parsing.unread import use
from .assignments import (
    Target,
    alias_of,
    assignments,
    identifiers,
    numbered,
    target_table,
    with_values,
)
from .bind_table_rules import check_plans, default_value, home_of, source_of
from .generated_columns import generated_plan


def written_rows(
    node: exp.Expr, table: CatalogTable, alias: str | None, scope: Scope, *, checked: bool
) -> WrittenRows:
    """Bind what is asked of the rows that a statement writes: the table's checks, and RETURNING."""
    rows = StandIn(table.name, table.fields)
    checks = check_plans(rules_of(table), rows, scope) if checked else ()
    made = generated_plan(rules_of(table), rows, scope) if checked else None
    clause = node.args.get("returning")
    if not clause:
        return WrittenRows(rows, checks, None, made)
    asked = bind_returning(clause, source_of(rows, alias), scope)
    return WrittenRows(rows, checks, asked, made)


def bind_returning(clause: exp.Select, source: Source, scope: Scope) -> Logical:
    """Bind what RETURNING asks of the rows of a source."""
    use(clause)
    for item in clause.expressions:
        if (query := item.find(exp.Query)) is not None:
            raise InvalidQuery("RETURNING takes no subquery.", span_of(query))
    inside = scope.over(source).inside("RETURNING")
    rows = WindowRewriter(source.plan)
    items = tuple(
        (ex.new_column(item.name, value.type), rows.rewrite(value))
        for item in select_list(clause, inside)
        for value in (item.bind(inside),)
    )
    return Project(rows.plan(), items)


def _where(node: exp.Expr, scope: Scope) -> ex.Expr | None:
    clause = node.args.get("where")
    if clause is None:
        return None
    use(clause)
    return infer.condition(scope.inside("the WHERE of a change").bind(clause.this))


def _beside(target: Source, tables: Sequence[exp.Expr], scope: Scope) -> Source:
    """Bind the further tables of USING or FROM beside the one that is changed."""
    found: Source | None = None
    for table in tables:
        right = bind_list(table, (), scope)
        if found is None:
            found = right
        else:
            both = beside(found, right)
            plan = Join(found.plan, right.plan, JoinKind.INNER)
            found = Source(plan, both.relations, both.merged, both.star)
    assert found is not None
    return beside(target, found)


def delete_rows(node: exp.Expr, scope: Scope) -> Delete:
    assert isinstance(node, exp.Delete)
    use(node)
    scope = with_entries(node, scope)
    target = Target.of(node.this, scope)
    source = target.source
    others = node.args.get("using") or ()
    if others:
        both = _beside(source, others, scope)
        condition = _where(node, scope.over(both))
        plan: Logical = Join(source.plan, both.plan, JoinKind.SEMI, condition)
    else:
        condition = _where(node, scope.over(source))
        plan = source.plan if condition is None else Filter(source.plan, condition)
    gone = written_rows(node, target.table, target.alias, scope, checked=False)
    return _deleted(target, plan, gone)


def _deleted(target: Target, plan: Logical, gone: WrittenRows) -> Delete:
    return Delete(target.table.name, target.existing, Project(plan, (target.number,)), gone)


def truncate(piece: Piece, scope: Scope) -> Delete:
    node = scope.session.parse(piece)
    assert isinstance(node, exp.TruncateTable)
    use(node)
    if len(node.expressions) > 1:
        raise Unsupported("TRUNCATE takes one table.", span_of(node.expressions[1]))
    target = Target.of(node.expressions[0], scope)
    rows = WrittenRows(StandIn(target.table.name, target.table.fields))
    return _deleted(target, target.source.plan, rows)


def update_rows(node: exp.Expr, scope: Scope) -> Update:
    assert isinstance(node, exp.Update)
    use(node)
    scope = with_entries(node, scope)
    target = Target.of(node.this, scope)
    table, source = target.table, target.source
    clause = node.args.get("from_")
    plan, visible = source.plan, source
    if clause is not None:
        use(clause)
        visible = _beside(source, [clause.this], scope)
        plan = Join(source.plan, visible.plan, JoinKind.INNER, _where(node, scope.over(visible)))
    else:
        condition = _where(node, scope.over(source))
        plan = plan if condition is None else Filter(plan, condition)
    values = assignments(node.expressions, table, scope.over(visible).inside("SET"))
    query = with_values(plan, (target.number,), values)
    written = written_rows(node, table, target.alias, scope, checked=True)
    return Update(table.name, target.existing, tuple(values), query, written)


def insert_rows(node: exp.Expr, scope: Scope) -> Insert:
    assert isinstance(node, exp.Insert)
    use(node)
    schema = node.this if isinstance(node.this, exp.Schema) else None
    target = node.this.this if schema else node.this
    table, alias = target_table(target, scope), alias_of(target)
    if schema is not None:
        use(schema)
    names = identifiers(schema.expressions) if schema else None
    if node.args.get("default"):
        plan: Logical | None = None
        columns: list[tuple[str, DataType]] = []
    else:
        plan, columns = _given(node, names, table, target, scope)
    written = written_rows(node, table, alias, scope, checked=True)
    rows = as_rows(plan, columns, table, scope)
    conflict = bind_conflict(node, table, [name for name, _ in columns], alias, scope)
    return Insert(table.name, tuple(n for n, _ in table.fields), Query(rows), written, conflict)


def _given(
    node: exp.Insert,
    names: list[str] | None,
    table: CatalogTable,
    target: exp.Expr,
    scope: Scope,
) -> tuple[Logical, list[tuple[str, DataType]]]:
    """Bind what an INSERT gives; return its plan and the columns of the table that get its columns."""
    query = node.expression
    if query is None or isinstance(query, exp.Null):
        raise Unsupported("INSERT needs VALUES or a query.", span_of(target))
    with_ = node.args.get("with_")
    if with_ is not None:
        query.set("with_", with_)
    by_name = bool(node.args.get("by_name"))
    if isinstance(query, exp.Values) and not by_name:
        columns = target_columns(table, names, node.this)
        rules = rules_of(table)
        defaults = [
            partial(default_value, rules, name, kind, scope, "VALUES", home_of(table))
            for name, kind in columns
        ]
        plan = bind_values(query, scope, [kind for _, kind in columns], defaults)
    else:
        plan = scope.bind_query(query)
        names = [c.name for c in plan.columns] if by_name else names
        columns = target_columns(table, names, node.this)
    if len(plan.columns) != len(columns):
        raise InvalidQuery(
            f'The table "{table.name}" takes {len(columns)} columns here and is given {len(plan.columns)}.',
            span_of(query),
        )
    return plan, columns


def target_columns(
    table: CatalogTable, names: list[str] | None, where: exp.Expr
) -> list[tuple[str, DataType]]:
    """Return the columns of the table that are given values, in the order of the query."""
    rules = rules_of(table)
    if names is None:
        return [field for field in table.fields if not rules.is_generated(field[0])]
    fields = {name.lower(): (name, data_type) for name, data_type in table.fields}
    columns = []
    for name in names:
        if name.lower() not in fields:
            hint = nearest(name, [n for n, _ in table.fields])
            raise UnknownColumn(
                f'The table "{table.name}" has no column "{name}".{hint}', span_of(where)
            )
        if rules.is_generated(fields[name.lower()][0]):
            raise InvalidQuery(
                f'"{name}" is a generated column, which is given no values: leave it out.',
                span_of(where),
            )
        columns.append(fields[name.lower()])
    if len(set(columns)) < len(columns):
        raise InvalidQuery("The statement names a column twice.", span_of(where))
    return columns


def as_rows(
    plan: Logical | None, columns: list[tuple[str, DataType]], table: CatalogTable, scope: Scope
) -> Logical:
    """Return rows of the table: each value cast, defaults in the columns that are given none."""
    plan = plan or Values((), ((),))
    given = {name: column for (name, _), column in zip(columns, plan.columns, strict=True)}
    return rows_of_table(plan, given, table, scope)


def rows_of_table(
    plan: Logical, given: Mapping[str, ex.Column], table: CatalogTable, scope: Scope
) -> Logical:
    """Return rows of the table, with columns of a plan in the columns that are given some."""
    rules, rows = rules_of(table), WindowRewriter(plan)
    items: list[tuple[ex.Column, ex.Expr]] = []
    for name, target in table.fields:
        column = given.get(name)
        value = (
            default_value(rules, name, target, scope, home=home_of(table))
            if column is None
            else ex.ColumnRef(column)
        )
        items.append((ex.new_column(name, target), infer.cast(rows.rewrite(value), target)))
    return Project(rows.plan(), tuple(items))


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
        values = {name: ex.ColumnRef(columns[name]) for name in given if name not in keys[0]}
        if not values:  # a row that only keys are given for stays as it is, and counts as changed
            known, rules = {c.name: c for c in old.plan.columns}, rules_of(table)
            others = (n for n, _ in table.fields if n not in keys[0] and not rules.is_generated(n))
            values = {name: ex.ColumnRef(known[name]) for name in itertools.islice(others, 1)}
    condition: ex.Expr = ex.TRUE
    where = clause.args.get("where") if clause is not None else None
    if where is not None:
        use(where)
        condition = infer.condition(inside.bind(where.this))
    items = [ex.ColumnRef(old.plan.columns[-1]), condition, *values.values()]
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
    known = ex.conjunction([infer.call("is_not_null", [ex.ColumnRef(columns[n])]) for n in key])
    number = ex.ColumnRef(scan.columns[-1])
    first = ex.new_column("first", BIGINT)
    keys = tuple((ex.new_column(n, columns[n].type), ex.ColumnRef(columns[n])) for n in key)
    groups = Aggregate(
        Filter(scan, known), keys, ((first, ex.AggregateCall("min", (number,), BIGINT)),)
    )
    return Project(groups, ((first, ex.ColumnRef(first)),))


def _matches(old: Source, new: Source, key: Sequence[str], values: Sequence[ex.Expr]) -> Logical:
    """Return the numbers of new rows whose key the table has, and the values for what becomes of them."""
    theirs = {c.name: c for c in old.plan.columns}
    mine = {c.name: c for c in new.plan.columns}
    equal = ex.conjunction(
        [infer.call("eq", [ex.ColumnRef(mine[n]), ex.ColumnRef(theirs[n])]) for n in key]
    )
    kind = JoinKind.INNER if values else JoinKind.SEMI
    join = Join(new.plan, old.plan, kind, equal)
    number = new.plan.columns[-1]
    named = {f"value{i}": value for i, value in enumerate(values)}
    return with_values(join, ((number, ex.ColumnRef(number)),), named)
