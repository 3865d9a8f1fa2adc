"""WITH entries that change tables: `WITH gone AS (DELETE FROM t RETURNING *) INSERT INTO u FROM gone`.

Everything is bound before anything is carried out; what an entry returns is a table to come for the rest of the statement.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from fuseline.errors import InvalidQuery
from fuseline.plan import statements as st
from fuseline.plan.changes.stand_in import StandIn
from fuseline.plan.expr import new_column
from fuseline.plan.logical import Logical, Scan
from fuseline.plan.types import BIGINT

from ..binding.bind_query import CHANGES, WRITE
from ..binding.scope import Scope
from ..parsing.pieces import span_of

Write = Callable[[exp.Expr, Scope], st.Insert | st.Update | st.Delete]


def has_changes(node: exp.Expr) -> bool:
    """Whether entries of a statement's WITH change tables."""
    clause = node.args.get("with_")
    return clause is not None and any(isinstance(e.this, CHANGES) for e in clause.expressions)


def bind_with_changes(
    node: exp.Expr, scope: Scope, bind: Callable[[exp.Expr, Scope], st.Statement], write: Write
) -> st.WithChanges:
    """Bind a statement by `bind`, and the changes in its WITH by `write`."""
    changes: list[tuple[StandIn, st.Insert | st.Update | st.Delete]] = []

    def rows_of(entry: exp.Expr, name: str, around: Scope) -> Logical:
        change = write(entry, around)
        returning = (change.deleted if isinstance(change, st.Delete) else change.written).returning
        asked = [(c.name, c.type) for c in returning.columns] if returning else [("Count", BIGINT)]
        rows = StandIn(name, tuple(asked))
        changes.append((rows, change))
        made = tuple(new_column(*field) for field in asked)
        return Scan(rows, made, tuple(field for field, _ in asked))

    clause = node.args["with_"]
    if clause.args.get("recursive"):
        raise InvalidQuery("Entries of WITH RECURSIVE do not change tables.", span_of(clause))
    clause.meta[WRITE] = rows_of
    statement = bind(node, scope)
    assert isinstance(statement, st.Query | st.Insert | st.Update | st.Delete | st.Merge), (
        "of these trees"
    )
    return st.WithChanges(tuple(changes), statement)
