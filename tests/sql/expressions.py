"""Binding one expression over the columns of `tests.plan.columns`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuseline.plan.changes.catalog_objects import SessionObjects
from fuseline.plan.expr import AggregateCall, Column, ColumnRef, Expr, substitute
from fuseline.plan.logical import Aggregate, Logical, Project, Scan
from fuseline.plan.node import walk
from fuseline.plan.statements import Query
from fuseline.sql import plan_sql
from tests.plan.columns import COLUMNS
from tests.unplaced_tables import UnplacedTables


class Typed:
    """A table `t` with a column of each type."""

    name, identity = "t", None
    fields = tuple((name, column.type) for name, column in COLUMNS.items())


class OneTable(UnplacedTables):
    timezone = "UTC"
    session = SessionObjects()

    def table(self, name: str) -> Typed | None:
        return Typed() if name.lower() == "t" else None

    def view(self, name: str) -> None:
        return None

    def names(self) -> list[str]:
        return ["t"]


def _over_columns(expr: Expr, plan: Logical) -> Expr:
    """Replace the columns that a scan of `t` makes by those of `COLUMNS`, so that two bindings compare equal."""
    made = {
        column: COLUMNS[source]
        for node in walk(plan)
        if isinstance(node, Scan)
        for column, source in zip(node.made, node.sources, strict=True)
    }

    def replace(column: Column) -> Expr | None:
        return ColumnRef(made[column]) if column in made else None

    return substitute(expr, replace)


def _plan(sql: str, params: Sequence[object] | Mapping[str, object] | None = None) -> Logical:
    (statement,) = plan_sql(f"SELECT {sql} AS result FROM t", OneTable(), params)
    assert isinstance(statement, Query)
    return statement.plan


def bind(sql: str, params: Sequence[object] | Mapping[str, object] | None = None) -> Expr:
    """Return the expression that `SELECT sql FROM t` computes."""
    plan = _plan(sql, params)
    assert isinstance(plan, Project)
    return _over_columns(plan.items[0][1], plan)


def aggregate(sql: str) -> AggregateCall:
    """Return the aggregate that `SELECT sql FROM t` computes."""
    plan = _plan(sql)
    (node,) = [n for n in walk(plan) if isinstance(n, Aggregate)]
    found = _over_columns(node.aggregates[0][1], plan)
    assert isinstance(found, AggregateCall)
    return found


def type_of(sql: str) -> str:
    """Return the type of an expression, aggregates included."""
    return str(_plan(sql).columns[0].type)
