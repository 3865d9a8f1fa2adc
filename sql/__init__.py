"""SQL text to logical plans; the only floor that knows sqlglot, whose trees and types stay inside.

`parsing` gives a tree, `statements` look at what kind it is, `binding` turns queries into plans and expressions into typed ones, with
names looked up in `binding.scope`; `grammar` and `names` read the text as DuckDB's grammar does.

May import plan, catalog and errors.  Start reading at `binding/bind_query.py`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from fuseline.catalog import Catalog
from fuseline.errors import FuselineError
from fuseline.plan.dialect import read_in
from fuseline.plan.logical import CatalogTable
from fuseline.plan.statements import Insert, Query, Statement
from fuseline.plan.temporal import zones

from .binding.bind_expr import bind
from .binding.bind_query import bind_query
from .binding.constants.parameters import Parameters
from .binding.named_queries import CallerVariables, NamedQueries
from .binding.scope import Scope, Session
from .binding.udf.bind_python import is_function as is_function
from .names.reader import quoted as quoted
from .parsing.keywords import RESERVED as RESERVED
from .parsing.pieces import (
    Piece as Piece,
    explained_text as explained_text,
    first_word as first_word,
    split as split,
)
from .parsing.statement_end import (
    NamedRelation as NamedRelation,
    ends_statement as ends_statement,
    relations as relations,
    unfinished as unfinished,
)
from .parsing.statement_words import give_named_place as give_named_place
from .parsing.text_shape import (
    NamedPiece as NamedPiece,
    TextShape as TextShape,
    TextSlots as TextSlots,
    text_shape as text_shape,
)
from .parsing.unread import refusal, refuse_unused
from .statements.bind_explain import explained as explained
from .statements.bind_statement import bind_statement, starts_query as starts_query
from .statements.table_names import table_names as table_names

if TYPE_CHECKING:
    from fuseline.frame.frame import Frame

# What others use, they import from here: a thread imports the package, and would wait for one that waits for it


def plan_sql(
    text: str,
    catalog: Catalog,
    params: Sequence[object] | Mapping[str, object] | None = None,
    rows: CatalogTable | None = None,
    objects: CallerVariables | None = None,
    slots: TextSlots | None = None,
) -> Iterator[Statement]:
    """Yield the statements of a script; each is bound when it is asked for, after the ones before it were carried out.

    `rows` has a column for each parameter, by its number or name, for INSERT ... VALUES of one row to store one for each of them;
    `params` are the values of the first one then.  `objects` has the caller's variables, which are tables where the catalog has none.
    With `slots` the plan may serve other texts of the shape of this one.  Raises the errors of `errors` for SQL, with the place in `text`.
    """
    parameters = Parameters(() if params is None else params, rows, slots)
    session = Session(catalog, parameters, bind_query, bind, text, objects=objects, slots=slots)
    number = -1
    try:
        pieces = list(split(text))
        for piece in pieces:
            number += 1
            began = catalog.session.began
            zone, dialect = zones.of_session(catalog.timezone), read_in(catalog.dialect)
            with zone, dialect, zones.of_statement(began) as moment:
                statement = _bound(piece, session)
            if moment.was_asked or session.passing:
                statement = _not_kept(statement)
            session.passing.clear()
            while session.trees:
                refuse_unused(session.trees.pop())
            session.named = (
                NamedQueries()
            )  # the next one may find other tables under the same names
            if piece is pieces[-1]:
                parameters.check_all_used()
            yield statement
    except FuselineError as error:
        give_named_place(error, text, number)
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


def _not_kept(statement: Statement) -> Statement:
    """Return a statement whose query is bound anew each time."""
    match statement:
        case Query():
            return dataclasses.replace(statement, is_kept=False)
        case Insert(query=query):
            return dataclasses.replace(statement, query=dataclasses.replace(query, is_kept=False))
    return statement


class _Package(ModuleType):
    """`fuseline.sql("select 42")` asks the default connection, as DuckDB's module does."""

    def __call__(
        self, text: str, params: Sequence[object] | Mapping[str, object] | None = None
    ) -> Frame:
        frame: Frame = sys.modules["fuseline"].query(text, params)
        return frame


sys.modules[__name__].__class__ = _Package
