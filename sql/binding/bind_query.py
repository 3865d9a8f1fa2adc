"""A query of any form to a logical plan: WITH, SELECT, VALUES, set operations, and their ORDER BY and LIMIT."""

from __future__ import annotations

from sqlglot import exp

from fuseline.errors import InvalidQuery, ParseError, Unsupported
from fuseline.plan.logical import Logical

from ..parsing.spans import span_of
from ..parsing.unread import use
from .bind_literal import parameter_key
from .bind_order import bind_limit, bind_order, order_rows
from .bind_select import bind_select
from .bind_set_operation import bind_set_operation
from .bind_values import bind_values
from .scope import Cte, Relation, Scope, Source


def bind_query(node: exp.Expr, around: Scope) -> Logical:
    """Return the plan of a query whose enclosing scope is `around`; its columns have the names of the result."""
    use(node)
    scope = _with(node, around.nested())
    match node:
        case exp.Select():
            return bind_select(node, scope)
        case exp.SetOperation():
            plan, names = bind_set_operation(node, scope)
            return _order(node, plan, names, scope)
        case exp.Values():
            plan = bind_values(node, scope)
        case exp.Subquery(this=exp.Table()):
            raise ParseError("A query starts with SELECT, FROM or VALUES.", span_of(node))
        case exp.Subquery():
            plan = bind_query(node.this, scope)
        case _:
            raise ParseError("A query starts with SELECT, FROM or VALUES.", span_of(node))
    return _order(node, plan, {}, scope)


def _with(node: exp.Expr, scope: Scope) -> Scope:
    """Return `scope` with the WITH entries of a query; each sees those before it, and hides tables of its name."""
    clause = node.args.get("with_")
    if clause is None:
        return scope
    use(clause)
    names: set[str] = set()
    for entry in clause.expressions:
        name = entry.alias
        if name.lower() in names:
            raise InvalidQuery(f'WITH names "{name}" twice.', span_of(entry.args["alias"]))
        names.add(name.lower())
        if clause.args.get("recursive") and _reads(entry.this, name):
            raise Unsupported(
                f'WITH RECURSIVE is not supported: "{name}" reads itself.',
                span_of(entry.args["alias"]),
            )
        columns = tuple(column.name for column in entry.args["alias"].args.get("columns") or ())
        if scope.parameters.given:  # those of an entry that nobody reads count too
            found = entry.this.find_all(exp.Parameter, exp.Placeholder)
            scope.parameters.used.update(parameter_key(parameter) for parameter in found)
        cte = Cte(name, entry.this, columns, scope)
        scope = scope.changed(ctes={**scope.ctes, name.lower(): cte})
    return scope


def _reads(query: exp.Expr, name: str) -> bool:
    return any(table.name.lower() == name.lower() for table in query.find_all(exp.Table))


def _order(node: exp.Expr, plan: Logical, names: dict[str, int], scope: Scope) -> Logical:
    """Apply ORDER BY and LIMIT of a query whose columns are all that they can read.

    `names` holds further names for the columns: ORDER BY of a set operation may use those of any branch.
    """
    order, limit = node.args.get("order"), bind_limit(node, scope)
    if order is not None:
        columns = tuple((column.name, column) for column in plan.columns)
        extra = tuple((name, plan.columns[i]) for name, i in names.items())
        source = Source(plan, (Relation(None, columns + extra),), {}, columns)
        places = {name.lower(): i for i, (name, _) in reversed(list(enumerate(columns)))}
        inside = scope.over(source).inside("ORDER BY")
        keys = bind_order(order, inside, plan.columns, places)
        return order_rows(plan, keys, limit)
    return order_rows(plan, (), limit)
