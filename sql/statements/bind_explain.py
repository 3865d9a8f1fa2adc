"""EXPLAIN of a query, and of the query by which a statement finds the rows that it writes."""

from __future__ import annotations

from fuseline.errors import Span, Unsupported
from fuseline.plan import statements as st
from fuseline.plan.changes.stand_in import StandIn
from fuseline.plan.logical import Logical


def explained(statement: st.Statement, analyze: bool, place: Span) -> st.Explain:
    """Return what explains a statement; raises `Unsupported` where none of its work is a query."""
    if isinstance(statement, st.Query):
        return st.Explain(statement, analyze)
    found = _plan(statement)
    if found is None:
        raise Unsupported("EXPLAIN takes a query, or a statement that writes rows of one.", place)
    plan = st.Query(found[0])
    return (
        st.Explain(plan, True, writes=statement) if analyze else st.Explain(plan, False, *found[1:])
    )


def _plan(statement: st.Statement) -> tuple[Logical, str, StandIn] | tuple[Logical] | None:
    """Return the plan of a statement's rows, and of one that changes rows its table and what stands for it."""
    match statement:
        case (
            st.Insert(query=query)
            | st.CopyTo(query=query)
            | st.CreateTable(query=st.Query() as query)
        ):
            return (query.plan,)
        case st.Update(table=table, existing=existing, query=plan):
            return plan, table, existing
        case st.Delete(table=table, existing=existing, query=plan):
            return plan, table, existing
        case st.Merge(table=table, pairs=pairs):
            return pairs.query, table, pairs.existing
    return None
