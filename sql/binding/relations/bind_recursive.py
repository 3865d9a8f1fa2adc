"""An entry of WITH RECURSIVE that reads itself."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, UnknownColumn, Unsupported, nearest
from fuseline.plan import infer
from fuseline.plan.changes.stand_in import Recursion, StandIn
from fuseline.plan.expr import ColumnRef, new_column
from fuseline.plan.logical import Logical, Project, Scan, free_columns
from fuseline.plan.types import INTEGER, DataType, Kind
from fuseline.sql.parsing.pieces import span_of

from ...parsing.unread import use
from ..named_queries import RECURRING, BoundQuery
from ..scope import Cte, Scope
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
    ctes = {**scope.ctes, name.lower(): _entry(working, scope)}
    keys, settled = _places(cte.keys, names), None
    if keys:
        settled = StandIn(name, fields)
        ctes[f"{RECURRING}\0{name.lower()}"] = _entry(settled, scope)
    draw = find_draw(union.expression, scope.session.catalog, exp.Rand, exp.TableSample)
    if draw is not None:  # each round would draw the same
        raise Unsupported(
            "random(), samples and functions with side effects are not supported in the rounds of WITH RECURSIVE.",
            span_of(draw) or place,
        )
    step = scope.changed(ctes=ctes).bind_query(union.expression)
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
    all_rows = not union.args["distinct"]
    recursion = Recursion(name, first, step, working, all_rows, place, keys, settled)
    table = catalog.recursive(recursion)
    return Scan(table, tuple(new_column(*field) for field in fields), tuple(names))


def _entry(rows: StandIn, scope: Scope) -> Cte:
    """Return a WITH entry whose rows are those of a table to come."""
    made = tuple(new_column(*field) for field in rows.fields)
    plan = Scan(rows, made, tuple(name for name, _ in rows.fields))
    entry = Cte(rows.name, exp.Select(), (), scope, BoundQuery(plan))
    exp.CTE(this=entry.query, alias=exp.TableAlias(this=exp.to_identifier(rows.name)))
    return entry


def _places(keys: Sequence[exp.Expr], names: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the columns that USING KEY names."""
    folded, found = [name.lower() for name in names], []
    for key in keys:
        if key.name.lower() not in folded:
            hint = nearest(key.name, names)
            raise UnknownColumn(f'There is no column "{key.name}" here.{hint}', span_of(key))
        use(key)
        found.append(folded.index(key.name.lower()))
    return tuple(found)


def _cast(plan: Logical, fields: tuple[tuple[str, DataType], ...]) -> Logical:
    """Return a plan whose columns have these names and types, the values cast where they have another."""
    items = tuple(
        (new_column(name, kind), infer.cast(ColumnRef(c), kind) if c.type != kind else ColumnRef(c))
        for (name, kind), c in zip(fields, plan.columns, strict=True)
    )
    return Project(plan, items)
