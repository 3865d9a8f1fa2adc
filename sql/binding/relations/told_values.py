"""version() and current_setting(): what a connection tells of itself, as constants of the query that asks."""

from __future__ import annotations

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span, UnknownName, nearest
from fuseline.plan import infer
from fuseline.plan.coercion import parse_type
from fuseline.plan.expr import Expr, Literal
from fuseline.plan.logical import Logical
from fuseline.plan.types import NULL, VARCHAR
from fuseline.sql.parsing.pieces import span_of

from ..constants.known_values import known
from ..scope import Scope
from .about_tables import bind_text


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
