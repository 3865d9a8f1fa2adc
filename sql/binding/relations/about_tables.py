"""SUMMARIZE, DESCRIBE and SHOW as queries, and version() and current_setting() as constants of one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span, UnknownName, Unsupported, ViewText, nearest
from fuseline.plan import infer
from fuseline.plan.changes.catalog_objects import DESCRIPTION, NO_RULES, described, rules_of
from fuseline.plan.coercion import parse_type
from fuseline.plan.expr import Column, ColumnRef, Expr, Literal, new_column
from fuseline.plan.logical import Logical, Project, Scan
from fuseline.plan.text.quoted_name import distinct_names, quoted_name
from fuseline.plan.types import NULL, VARCHAR, Kind
from fuseline.sql.parsing.pieces import Piece, span_of

from ...parsing.unread import use, use_all
from ..constants.known_values import known
from ..named_queries import BoundQuery
from ..scope import Cte, Scope

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
_SHARES = ("0.25", "0.50", "0.75")


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
    """Bind SUMMARIZE: one row for each column of a table or query, each of aggregates of that column."""
    use(node)
    query = _whole(node.this)
    plan = scope.bind_query(query)
    if not plan.columns:
        raise Unsupported("SUMMARIZE takes a table or query with columns.", span_of(node.this))
    names = [c.name for c in plan.columns]
    plan = _named_apart(plan)
    name = exp.TableAlias(this=exp.to_identifier("summarized"))
    entry = exp.CTE(this=exp.Select(), alias=name)
    cte = Cte("summarized", entry.this, (), scope, BoundQuery(plan))
    rows = [_summary(i, names[i], column) for i, column in enumerate(plan.columns)]
    text = f"select * exclude (number) from ({' union all '.join(rows)}) order by number"
    return bind_text("summarize", text, scope, {"summarized": cte})


def _named_apart(plan: Logical) -> Logical:
    """Return a plan whose columns have names of their own, as a subquery's have."""
    names = distinct_names([c.name for c in plan.columns])
    if names == [c.name for c in plan.columns]:
        return plan
    made = (new_column(n, c.type) for n, c in zip(names, plan.columns, strict=True))
    return Project(plan, tuple(zip(made, map(ColumnRef, plan.columns), strict=True)))


def _summary(number: int, shown: str, column: Column) -> str:
    name, kind = quoted_name(column.name), column.type.kind
    mean = deviation = "null"
    quantile = "null"
    if column.type.is_numeric:
        mean, deviation = f"avg({name})", f"stddev({name})"
        quantile = f"approx_quantile({name}, {{}})"
    elif column.type.is_temporal or kind in _TIMES:
        moment = f"date '1970-01-01' + {name}" if kind is Kind.TIME else f"{name}::timestamp"
        back = f"::{column.type}" if kind in _TIMES else ""
        mean = f"make_timestamp(avg(epoch_us({moment}))::bigint){back}"
        quantile = f"quantile_disc({name}, {{}})"
    quantiles = [f"{quantile.format(share)}::varchar as q{share[2:]}" for share in _SHARES]
    return f"""select {number} as number, {_text(shown)} as column_name, {_text(str(column.type))} as column_type,
        min({name})::varchar as min, max({name})::varchar as max, approx_count_distinct({name}) as approx_unique,
        {mean}::varchar as avg, {deviation}::varchar as std, {", ".join(quantiles)}, count(*) as count,
        (100 - count({name}) * 100 / nullif(count(*), 0))::decimal(9, 2) as null_percentage from summarized"""


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


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


def bind_text(name: str, text: str, scope: Scope, ctes: Mapping[str, Cte] | None = None) -> Logical:
    """Bind a query of ours, which may name `ctes`; errors show it under a name."""
    view = ViewText(name, text)
    session = dataclasses.replace(scope.session, text=text, stored=view)
    inner = Scope(session, ctes=ctes or {})
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
    rows: list[dict[str, str | None]] = scope.session.catalog.rows(plan).to_pylist()
    return rows
