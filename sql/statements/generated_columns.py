"""Generated columns: read from CREATE TABLE, and computed of the other columns for rows that are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, UnknownColumn, Unsupported, nearest
from fuseline.plan import infer
from fuseline.plan.changes.catalog_objects import StoredExpression, TableRules
from fuseline.plan.changes.stand_in import StandIn
from fuseline.plan.expr import ColumnRef, Expr, new_column
from fuseline.plan.logical import Logical, Project
from fuseline.plan.temporal import zones
from fuseline.plan.types import NULL, DataType

from ..binding.scope import Relation, Scope, Source
from ..parsing.pieces import span_of
from .bind_table_rules import source_of, stored, tree_of_stored

Fields = tuple[tuple[str, DataType], ...]
Generated = tuple[tuple[str, StoredExpression], ...]


def generated_columns(
    nodes: Mapping[str, exp.Expr], fields: Fields, table: str, scope: Scope
) -> tuple[Fields, Generated]:
    """Return the columns of a table with the types of those that are written without one, and the expressions of generated ones."""
    if not nodes:
        return fields, ()
    if len(nodes) == len(fields):
        raise InvalidQuery(
            f'The table "{table}" has generated columns alone.', span_of(next(iter(nodes.values())))
        )
    spelled = {name.lower(): name for name, _ in fields}
    for node in nodes.values():
        _check_names(node, spelled)
    types, found = dict(fields), list[tuple[str, StoredExpression]]()
    for name in _in_order(nodes):
        node = nodes[name]
        known = tuple((n, t) for n, t in types.items() if n not in nodes or n in dict(found))
        value = _value(node, source_of(StandIn(table, known)), scope)
        types[name] = value.type if types[name] == NULL else types[name]
        infer.cast(value, types[name])
        found.append((name, stored(node)))
    return tuple((name, types[name]) for name, _ in fields), tuple(found)


def _check_names(node: exp.Expr, spelled: Mapping[str, str]) -> None:
    for column in node.find_all(exp.Column):
        if len(column.parts) > 1:
            message = "A generated column names columns without that of the table before them."
            raise InvalidQuery(message, span_of(column))
        if column.name.lower() not in spelled:
            hint = nearest(column.name, spelled.values())
            raise UnknownColumn(f'There is no column "{column.name}" here.{hint}', span_of(column))


def _in_order(nodes: Mapping[str, exp.Expr]) -> list[str]:
    """Return generated columns, each behind those that it reads; raises `InvalidQuery` for one that is made of itself."""
    folded = {name.lower(): name for name in nodes}
    order: list[str] = []

    def visit(name: str, above: Sequence[str]) -> None:
        if name in above:
            chain = " -> ".join(f'"{n}"' for n in (*above[above.index(name) :], name))
            raise InvalidQuery(
                f"A generated column cannot be made of itself: {chain}.", span_of(nodes[name])
            )
        if name in order:
            return
        for column in nodes[name].find_all(exp.Column):
            needed = folded.get(column.name.lower())
            if needed is not None:
                visit(needed, (*above, name))
        order.append(name)

    for name in nodes:
        visit(name, ())
    return order


def _value(node: exp.Expr, source: Source, scope: Scope) -> Expr:
    """Bind the expression of a generated column, whose value depends on its row alone."""
    with zones.of_statement(None) as moment:
        value = scope.over(source).inside("a generated column").bind(node)
    if moment.was_asked or node.find(exp.CurrentDate) is not None:
        message = (
            "A generated column cannot depend on the time: use a DEFAULT, or compute it in a view."
        )
        raise Unsupported(message, span_of(node))
    if value.subqueries:
        raise InvalidQuery("A generated column can hold no subquery.", span_of(node))
    return value


def generated_plan(rules: TableRules, rows: StandIn, scope: Scope) -> Logical | None:
    """Return the generated columns over rows of the table, None where it has none."""
    if not rules.generated:
        return None
    types, source = dict(rows.fields), source_of(rows)
    visible = {name: c for name, c in source.star if not rules.is_generated(name)}
    plan, made = source.plan, []
    for name, expression in rules.generated:
        star = tuple(visible.items())
        tree = tree_of_stored(expression, scope, f'the generated column "{name}"')
        value = _value(tree, Source(plan, (Relation(None, star),), {}, star), scope)
        column = new_column(name, types[name])
        kept = tuple((c, ColumnRef(c)) for c in plan.columns)
        plan = Project(plan, (*kept, (column, infer.cast(value, types[name]))))
        visible[name] = column
        made.append(column)
    return Project(plan, tuple((c, ColumnRef(c)) for c in made))
