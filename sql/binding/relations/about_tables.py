"""SUMMARIZE, DESCRIBE and SHOW as queries, and version() and current_setting() as constants of one."""

from __future__ import annotations

import dataclasses

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span, UnknownName, Unsupported, ViewText, nearest
from fuseline.plan import infer
from fuseline.plan.changes.catalog_objects import DESCRIPTION, NO_RULES, described, rules_of
from fuseline.plan.coercion import parse_type
from fuseline.plan.expr import AggregateCall, Call, Column, ColumnRef, Expr, Literal, new_column
from fuseline.plan.literals import literal
from fuseline.plan.logical import Aggregate, Logical, Project, Scan, Unnest
from fuseline.plan.node import transform_up
from fuseline.plan.types import DOUBLE, NULL, VARCHAR, Kind, decimal, list_of
from fuseline.sql.parsing.pieces import Piece, span_of

from ...parsing.unread import use, use_all
from ..constants.known_values import known, rows_now
from ..scope import Scope

SHOWN = {
    "tables": "select table_name as name from information_schema.tables "
    "where (table_catalog = current_database() and table_schema in (current_schema(), 'main')) or table_catalog = 'temp' order by name",
    "databases": "select database_name from duckdb_databases() where not internal order by 1",
    "all tables": "select database_name as database, schema_name as schema, table_name as name, "
    "list(column_name order by column_index) as column_names, list(data_type order by column_index) as column_types, "
    "database_name = 'temp' as temporary from duckdb_columns() where not internal group by all order by all",
    "schemas": "select database_name, schema_name, schema_name = current_schema() as current from duckdb_schemas() "
    "where database_name = current_database() order by all",
    "variables": "select name, value, type from duckdb_variables() order by name",
}
_TIMES = (Kind.TIME, Kind.TIMESTAMPTZ)
_SHARES = tuple(Literal(share, DOUBLE) for share in (0.25, 0.5, 0.75))
_NUMBERS = ("approx_unique", "count", "null_percentage")  # what SUMMARIZE does not tell as text


def bind_about(node: exp.Expr, scope: Scope) -> Logical:
    """Bind SUMMARIZE, DESCRIBE or SHOW as a query; the last is a DESCRIBE in the style of that name."""
    if isinstance(node, exp.Summarize):
        return summarized(node, scope)
    target = node.this
    use(node)
    if style := node.args.get("style"):
        shown = f"{style} {target.name}".lower().removeprefix("show ")
        if len(target.parts) == 1 and " " not in target.name and shown in SHOWN:
            use(target, target.this)
            return bind_text("show", SHOWN[shown], scope)
    return _described(target, scope)


def summarized(node: exp.Summarize, scope: Scope) -> Logical:
    """Bind SUMMARIZE: aggregates of all columns of a table or query, in one pass, then a row for each column."""
    use(node)
    plan = scope.bind_query(_whole(node.this))
    if not plan.columns:
        raise Unsupported("SUMMARIZE takes a table or query with columns.", span_of(node.this))
    calls: dict[AggregateCall, Column] = {}

    def lifted(expr: Expr) -> Expr | None:
        if not isinstance(expr, AggregateCall):
            return None
        return ColumnRef(calls.setdefault(expr, new_column(expr.function, expr.type)))

    rows = [{n: transform_up(e, lifted) for n, e in _summary(c).items()} for c in plan.columns]
    lists, made = [], []
    for name, first in rows[0].items():
        kind = list_of(first.type)
        values = Call("list_value", tuple(row[name] for row in rows), kind)
        lists.append((new_column(name, kind), values))
        made.append((new_column(name, first.type), ColumnRef(lists[-1][0])))
    aggregates = tuple((column, call) for call, column in calls.items())
    unnested = Unnest(Project(Aggregate(plan, (), aggregates), tuple(lists)), tuple(made))
    return Project(unnested, tuple((c, ColumnRef(c)) for c, _ in made))


def _summary(column: Column) -> dict[str, Expr]:
    """Return what SUMMARIZE tells of a column, by the names of its own columns."""
    value, kind, of, call = ColumnRef(column), column.type.kind, infer.aggregate, infer.call
    mean: Expr = Literal(None, VARCHAR)
    deviation, shares = mean, [mean] * len(_SHARES)
    if column.type.is_numeric:
        mean, deviation = of("avg", [value]), of("stddev", [value])
        shares = [of("approx_quantile", [value, share]) for share in _SHARES]
    elif column.type.is_temporal or kind in _TIMES:
        mean = of("avg", [value])
        shares = [of("quantile_disc", [value, share]) for share in _SHARES]
    rows, known = of("count", []), of("count", [value])
    share = call("div", [call("mul", [known, literal(100)]), rows])
    nulls = infer.case([call("gt", [rows, literal(0)])], [call("sub", [literal(100), share])], None)
    told = {
        "min": of("min", [value]),
        "max": of("max", [value]),
        "approx_unique": of("approx_count_distinct", [value]),
        "avg": mean,
        "std": deviation,
        **dict(zip(("q25", "q50", "q75"), shares, strict=True)),
        "count": rows,
        "null_percentage": infer.cast(nulls, decimal(9, 2)),
    }
    texts = {n: e if n in _NUMBERS else infer.cast(e, VARCHAR) for n, e in told.items()}
    return {"column_name": literal(column.name), "column_type": literal(str(column.type)), **texts}


def _whole(target: exp.Expr) -> exp.Expr:
    """Return the query of a table, a path or a query."""
    if isinstance(target, exp.Literal):
        use(target)
        path = exp.to_identifier(target.name, quoted=True)
        path.meta.update(target.meta)
        target = exp.Table(this=path)
        target.meta.update(path.meta)
    if not isinstance(target, exp.Table):
        return target
    use_all(target)  # a copy of it is bound
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=target.copy()))


def _described(target: exp.Expr, scope: Scope) -> Logical:
    """Bind DESCRIBE in FROM: what it tells does not change while the plan is kept, since a change of the catalog ends that."""
    session = dataclasses.replace(scope.session, describes=True)
    plan = scope.changed(session=session).bind_query(_whole(target))
    rules = NO_RULES
    if isinstance(target, exp.Table):
        located = scope.session.catalog.located([part.name for part in target.parts])
        rules = rules_of(scope.session.catalog.table(located) if located else None)
    rows = [described(c.name, c.type, rules) for c in plan.columns]
    table = scope.session.catalog.snapshot("describe", DESCRIPTION, rows)
    made = tuple(new_column(name, VARCHAR) for name in DESCRIPTION)
    return Scan(table, made, DESCRIPTION)


def bind_text(name: str, text: str, scope: Scope, *, reads_entries: bool = False) -> Logical:
    """Bind a query of ours, which may name entries of WITH around its call; errors show it under a name."""
    view = ViewText(name, text)
    session = dataclasses.replace(scope.session, text=text, stored=view)
    inner = Scope(session, ctes=scope.ctes if reads_entries else {})
    return inner.bind_query(session.parse(Piece(text, 0, len(text))))


def version(node: exp.Expr, scope: Scope) -> Expr:
    """Return the version of Fuseline."""
    (row,) = _rows("select library_version from pragma_version()", scope)
    return Literal(row["library_version"], VARCHAR, span_of(node))


def current_setting(node: exp.Expr, place: Span | None, scope: Scope) -> Expr:
    """Return the value of a setting in the type that it has; the plan is not kept."""
    (written, *more) = node.expressions or [None]
    asked = None if written is None or more else known(scope.bind(written), scope)
    if not isinstance(asked, Literal) or not isinstance(asked.value, str):
        raise InvalidQuery(
            "current_setting() takes the name of a setting as a constant text.", place
        )
    rows = {
        row["name"]: row
        for row in _rows("select name, value, input_type from duckdb_settings()", scope)
    }
    scope.session.passing.append("current_setting()")
    found = rows.get(asked.value.lower())
    if found is None:
        names = [str(name) for name in rows]
        hint = nearest(asked.value, names) or f" The settings are {', '.join(names)}."
        raise UnknownName(
            f'There is no setting "{asked.value}".{hint}', span_of(node.expressions[0])
        )
    if found["value"] is None:
        return Literal(None, NULL, place)
    return infer.cast(Literal(found["value"], VARCHAR, place), parse_type(str(found["input_type"])))


def setting_shown(name: str, scope: Scope) -> Logical | None:
    """Return the row of SHOW setting, None for the name of no setting."""
    known = _rows("select name from duckdb_settings()", scope)
    if name.lower() not in {row["name"] for row in known}:
        return None
    text = f"select current_setting('{name.lower()}') as \"{name}\""
    return bind_text("show", text, scope)


def _rows(text: str, scope: Scope) -> list[dict[str, str | None]]:
    """Return the rows of a query of ours, which are texts."""
    plan = bind_text("told", text, scope)
    rows: list[dict[str, str | None]] = rows_now(plan, scope).to_pylist()
    return rows
