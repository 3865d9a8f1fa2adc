"""Names of tables in statements, the table that one changes, and the values that SET gives to its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from fuseline import errors as err
from fuseline.plan import infer
from fuseline.plan.changes.catalog_objects import IfThere, ObjectName, rules_of
from fuseline.plan.changes.stand_in import StandIn
from fuseline.plan.composed.sampling import ROW_ID
from fuseline.plan.expr import ColumnRef, Expr, new_column
from fuseline.plan.logical import CatalogTable, Item, Logical, Project
from fuseline.plan.types import BIGINT, DataType
from fuseline.plan.window.windowed import WindowRewriter

from ...records import dataclass
from ..binding.bind_query import is_default
from ..binding.scope import Scope, Source
from ..parsing.pieces import span_of
from ..parsing.unread import use, use_all
from .bind_table_rules import default_value, home_of, source_of


def table_name(node: exp.Expr, scope: Scope) -> str:
    """Return the name of a table or view that should be there."""
    assert isinstance(node, exp.Table)
    found = scope.session.catalog.qualified([part.name for part in node.parts])
    if found is None:
        shown = ".".join(part.name for part in node.parts[:-1])
        raise err.UnknownName(f'There is no schema "{shown}".', span_of(node))
    use(node, *node.parts)
    return found


def new_name(node: exp.Expr, scope: Scope, temporary: bool = False) -> ObjectName:
    """Return the name of a table or view that is to be made."""
    assert isinstance(node, exp.Table)
    use(node, *node.parts)
    try:
        return scope.session.catalog.new_name([part.name for part in node.parts], temporary)
    except err.FuselineError as error:
        error.at(span_of(node))
        raise


def what_if_there(replaces: object, unless: object, place: err.Span | None) -> IfThere:
    """Return what OR REPLACE and IF NOT EXISTS say, of which a statement has one at most."""
    if replaces and unless:
        raise err.ParseError("OR REPLACE and IF NOT EXISTS exclude each other.", place)
    return "replace" if replaces else "leave" if unless else "fail"


def identifiers(elements: Sequence[exp.Expr]) -> list[str]:
    """Return a list of column names, in which nothing else may stand."""
    for element in elements:
        if not isinstance(element, exp.Identifier):
            raise err.InvalidQuery("Names of columns alone can stand here.", span_of(element))
        use(element)
    return [element.name for element in elements]


def target_table(node: exp.Expr, scope: Scope) -> CatalogTable:
    """Return the table that a statement changes."""
    name = table_name(node, scope)
    table = scope.session.catalog.table(name)
    if table is None and scope.session.catalog.view(name) is not None:
        raise err.CatalogError(f'"{name}" is a view: change the rows of its tables.', span_of(node))
    if table is None:
        hint = err.nearest(name, scope.session.catalog.names())
        raise err.UnknownName(f'There is no table "{name}".{hint}', span_of(node))
    return table


@dataclass(frozen=True)
class Target:
    """The table that a statement changes, what it calls it, and its rows: the last column of their plan has the number of each."""

    table: CatalogTable
    alias: str | None
    existing: StandIn
    source: Source

    @classmethod
    def of(cls, node: exp.Expr, scope: Scope) -> Target:
        table, alias = target_table(node, scope), alias_of(node)
        existing = numbered(table)
        return cls(table, alias, existing, _with_row_ids(source_of(existing, alias)))

    @property
    def number(self) -> Item:
        """The number of a row, passed on."""
        column = self.source.plan.columns[-1]
        return column, ColumnRef(column)


def _with_row_ids(rows: Source) -> Source:
    """Name the numbers of the rows, the last column of the plan, `rowid` where no column is called so."""
    (relation,) = rows.relations
    if ROW_ID in relation.by_name:
        return rows
    known = replace(relation, also=((ROW_ID, rows.plan.columns[-1]),))
    return replace(rows, relations=(known,))


def numbered(table: CatalogTable) -> StandIn:
    """Return a stand-in for the rows of a table with their numbers."""
    number = "row number"
    while any(name.lower() == number for name, _ in table.fields):
        number += "_"
    return StandIn(table.name, (*table.fields, (number, BIGINT)), number)


def alias_of(node: exp.Expr) -> str | None:
    alias = node.args.get("alias")
    if alias is None or alias.this is None:
        return None
    use(alias, alias.this)
    return str(alias.name)


def assignments(nodes: Sequence[exp.Expr], table: CatalogTable, scope: Scope) -> dict[str, Expr]:
    """Return the values of SET by the columns that get them."""
    fields = {name.lower(): (name, kind) for name, kind in table.fields}
    found: dict[str, Expr] = {}
    for name_node, value_node in _pairs(nodes):
        if not isinstance(name_node, exp.Column) or len(name_node.parts) > 1:
            raise err.Unsupported("SET takes names of columns alone.", span_of(name_node))
        use(name_node, *name_node.parts)
        name, target = _field(fields, name_node, table)
        if name in found:
            raise err.InvalidQuery(f'SET gives "{name}" two values.', span_of(name_node))
        if is_default(value_node):
            use_all(value_node)
            rules, alone = rules_of(table), Scope(scope.session)
            found[name] = default_value(rules, name, target, alone, home=home_of(table))
        else:
            found[name] = infer.cast(scope.bind(value_node), target)
    return found


def _pairs(nodes: Sequence[exp.Expr]) -> list[tuple[exp.Expr, exp.Expr]]:
    pairs = []
    for node in nodes:
        if not isinstance(node, exp.EQ):
            raise err.Unsupported("SET takes column = value.", span_of(node))
        use(node)
        if not isinstance(node.this, exp.Tuple):
            pairs.append((node.this, node.expression))
            continue
        values = node.expression
        if not isinstance(values, exp.Tuple) or len(values.expressions) != len(
            node.this.expressions
        ):
            raise err.Unsupported(
                "SET (a, b) = takes as many values in parentheses.", span_of(node)
            )
        use(node.this, values)
        pairs += zip(node.this.expressions, values.expressions, strict=True)
    return pairs


def _field(
    fields: Mapping[str, tuple[str, DataType]], node: exp.Expr, table: CatalogTable
) -> tuple[str, DataType]:
    if node.name.lower() not in fields:
        hint = err.nearest(node.name, [name for name, _ in table.fields])
        raise err.UnknownColumn(
            f'The table "{table.name}" has no column "{node.name}".{hint}', span_of(node)
        )
    if rules_of(table).is_generated(fields[node.name.lower()][0]):
        raise err.InvalidQuery(
            f'"{node.name}" is a generated column: change the columns that it is made of.',
            span_of(node),
        )
    return fields[node.name.lower()]


def with_values(plan: Logical, kept: Sequence[Item], values: Mapping[str, Expr]) -> Logical:
    """Return columns of a plan and new ones, of values that may draw for each row."""
    rows = WindowRewriter(plan)
    made = [(new_column(name, v.type), rows.rewrite(v)) for name, v in values.items()]
    return Project(rows.plan(), (*kept, *made))
