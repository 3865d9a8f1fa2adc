"""EXPLAIN of a query, and of the query by which a statement finds the rows that it writes."""

from __future__ import annotations

from fuseline.errors import Span, Unsupported
from fuseline.plan.changes.stand_in import StandIn
from fuseline.plan.logical import Logical
from fuseline.plan.statements import (
    CopyTo,
    CreateTable,
    Delete,
    Explain,
    Insert,
    Merge,
    Query,
    Statement,
    Update,
)


def explained(statement: Statement, analyze: bool, place: Span) -> Explain:
    """Return what explains a statement; raises `Unsupported` where none of its work is a query."""
    if isinstance(statement, Query):
        return Explain(statement, analyze)
    found = _plan(statement)
    if found is None:
        raise Unsupported("EXPLAIN takes a query, or a statement that writes rows of one.", place)
    plan = Query(found[0])
    return Explain(plan, True, writes=statement) if analyze else Explain(plan, False, *found[1:])


def _plan(statement: Statement) -> tuple[Logical, str, StandIn] | tuple[Logical] | None:
    """Return the plan of a statement's rows, and of one that changes rows its table and what stands for it."""
    match statement:
        case Insert(query=query) | CopyTo(query=query) | CreateTable(query=Query() as query):
            return (query.plan,)
        case Update(table=table, existing=existing, query=plan):
            return plan, table, existing
        case Delete(table=table, existing=existing, query=plan):
            return plan, table, existing
        case Merge(table=table, pairs=pairs):
            return pairs.query, table, pairs.existing
    return None
