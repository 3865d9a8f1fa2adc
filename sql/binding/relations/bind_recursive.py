"""An entry of WITH RECURSIVE that reads itself."""

from __future__ import annotations

from sqlglot import exp

from fuseline.errors import InvalidQuery, Unsupported
from fuseline.plan import infer
from fuseline.plan.changes.recursion import Recursion
from fuseline.plan.changes.stand_in import StandIn
from fuseline.plan.expr import ColumnRef, new_column
from fuseline.plan.logical import Logical, Project, Scan, free_columns
from fuseline.plan.types import INTEGER, DataType, Kind
from fuseline.sql.parsing.pieces import span_of

from ...parsing.unread import use
from ..named_queries import BoundQuery
from ..scope import Cte
from ..udf.drawing_calls import find_draw


def reads(query: exp.Expr, name: str) -> bool:
    """Whether a query names a table."""
    return any(table.name.lower() == name.lower() for table in query.find_all(exp.Table))


def bind_recursive(cte: Cte) -> Logical:
    """Bind the two parts of the entry's UNION: the first has the types, the second reads the rows of the round before."""
    union, scope, name = cte.query, cte.scope, cte.name
    place = span_of(union) or span_of(cte.query.parent)
    if not isinstance(union, exp.Union) or reads(union.this, name) or union.args.get("by_name"):
        raise InvalidQuery(
            f'"{name}" reads itself: it has to be a UNION [ALL] of a query that does not and one that does.',
            place,
        )
    use(union)
    for key in ("order", "limit", "offset"):
        if union.args.get(key):
            raise Unsupported(
                "ORDER BY and LIMIT of a recursive query belong to the query that reads it.",
                span_of(union.args[key]) or place,
            )
    first = scope.bind_query(union.this)
    if len(cte.columns) > len(first.columns):
        raise InvalidQuery(
            f'The table "{name}" has {len(first.columns)} columns and is given {len(cte.columns)} names.',
            place,
        )
    names = [*cte.columns, *(c.name for c in first.columns[len(cte.columns) :])]
    types = [INTEGER if c.type.kind is Kind.NULL else c.type for c in first.columns]
    fields = tuple(zip(names, types, strict=True))
    working = StandIn(name, fields)
    made = tuple(new_column(*field) for field in fields)
    rows = Scan(working, made, tuple(names))
    own = Cte(name, exp.Select(), (), scope, BoundQuery(rows))
    exp.CTE(this=own.query, alias=exp.TableAlias(this=exp.to_identifier(name)))
    draw = find_draw(union.expression, scope.session.catalog, exp.Rand, exp.TableSample)
    if draw is not None:  # each round would draw the same
        raise Unsupported(
            "random(), samples and functions with side effects are not supported in the rounds of WITH RECURSIVE.",
            span_of(draw) or place,
        )
    step = scope.changed(ctes={**scope.ctes, name.lower(): own}).bind_query(union.expression)
    if len(step.columns) != len(first.columns):
        raise InvalidQuery(
            f"The sides of UNION have {len(first.columns)} and {len(step.columns)} columns.", place
        )
    first, step = (_cast(plan, fields) for plan in (first, step))
    if free_columns(first) or free_columns(step):
        raise Unsupported(
            f'"{name}" reads columns of the query around it, which a recursive query cannot.', place
        )
    catalog = scope.session.catalog
    recursion = Recursion(name, first, step, working, not union.args["distinct"], place)
    table = catalog.recursive(recursion)
    return Scan(table, tuple(new_column(*field) for field in fields), tuple(names))


def _cast(plan: Logical, fields: tuple[tuple[str, DataType], ...]) -> Logical:
    """Return a plan whose columns have these names and types, the values cast where they have another."""
    items = tuple(
        (new_column(name, kind), infer.cast(ColumnRef(c), kind) if c.type != kind else ColumnRef(c))
        for (name, kind), c in zip(fields, plan.columns, strict=True)
    )
    return Project(plan, items)
