"""json_each(j) and json_tree(j) in FROM: a row for each value inside of one, which may be that of a row before."""

from __future__ import annotations

from sqlglot import exp

from fuseline.plan.composed.json_calls import ENTRY_TABLES, entries
from fuseline.plan.composed.nested_values import field
from fuseline.plan.expr import Column, ColumnRef, new_column
from fuseline.plan.logical import Logical, Project, Unnest, Values
from fuseline.sql.parsing.pieces import span_of

from ..scope import Scope


def bind_entries(
    name: str, function: exp.Expr, around: Scope
) -> tuple[Logical, list[tuple[str, Column]]] | None:
    """Return the rows and columns of the table function, None for one of another name."""
    if name.lower() not in ENTRY_TABLES:
        return None
    given = [around.bind(argument) for argument in function.expressions]
    found = entries(name.lower(), given, span_of(function))
    (element,) = found.type.children
    entry = new_column("entry", element)
    items = tuple(
        (new_column(part, kind), field(ColumnRef(entry), part, None))
        for part, kind in zip(element.names, element.children, strict=True)
    )
    plan = Project(Unnest(Values((), ((),)), ((entry, found),)), items)
    return plan, [(column.name, column) for column in plan.columns]
