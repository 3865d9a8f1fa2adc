"""SQL text to logical plans; the only floor that knows sqlglot, whose trees and types stay inside.

May import plan, catalog and errors.  Start reading at `bind_query.py`: `parse` gives a tree, `statements` looks at what
kind it is, `bind_query` and its neighbours turn queries into plans, `bind_expr` expressions, with names looked up in `scope`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fuseline.errors import FuselineError
from fuseline.plan.statements import Statement

from .bind_expr import bind
from .bind_query import bind_query
from .pieces import Piece, first_word, split
from .scope import Catalog, Parameters, Scope, Session
from .statements import bind_statement, starts_query
from .unread import refusal, refuse_unused

# What others use, they import from here: a thread imports the package, and would wait for one that waits for it
__all__ = ["first_word", "plan_sql", "split", "starts_query"]


def plan_sql(
    text: str, catalog: Catalog, params: Sequence[object] | Mapping[str, object] | None = None
) -> Iterator[Statement]:
    """Yield the statements of a script; each is bound when it is asked for, after the ones before it were carried out.

    Raises the errors of `errors` for SQL, with the place in `text`.
    """
    parameters = Parameters(() if params is None else params)
    session = Session(catalog, parameters, bind_query, bind, text)
    try:
        pieces = list(split(text))
        for piece in pieces:
            statement = _bound(piece, session)
            while session.trees:
                refuse_unused(session.trees.pop())
            session.named.clear()
            if piece is pieces[-1]:
                parameters.check_all_used()
            yield statement
    except FuselineError as error:
        error.with_text(text)
        raise


def _bound(piece: Piece, session: Session) -> Statement:
    try:
        return bind_statement(piece, Scope(session))
    except Exception as error:
        better = refusal(error, session.trees)
        if better is None:
            raise
        raise better from (None if isinstance(error, FuselineError) else error)
