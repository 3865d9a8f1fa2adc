"""CREATE TYPE and DROP TYPE: names of ENUMs and of other types, which columns and casts resolve where they are written."""

from __future__ import annotations

import re

from sqlglot import exp

from fuseline.errors import InvalidQuery, ParseError, Span, Unsupported
from fuseline.plan import infer
from fuseline.plan.changes.catalog_objects import UserType
from fuseline.plan.coercion import TYPE_NAMES
from fuseline.plan.expr import ColumnRef, new_column
from fuseline.plan.logical import Project
from fuseline.plan.statements import CreateType, DropDefinition, Query, Statement
from fuseline.plan.types import VARCHAR

from ..binding.function_names import data_type
from ..binding.scope import Scope
from ..parsing.pieces import Piece, span_of
from ..parsing.statement_words import StatementWords
from ..parsing.unread import use
from .assignments import what_if_there
from .bind_session_statement import WRITTEN_NAME, unquoted
from .bind_table_statement import create

_TYPE = re.compile(
    rf"\s*create\s+(?P<replace>or\s+replace\s+)?(?P<temp>temp\s+|temporary\s+)?type\s+"
    rf"(?P<unless>if\s+not\s+exists\s+)?(?:main\s*\.\s*)?{WRITTEN_NAME}\s+as\s+(?=\S)",
    re.IGNORECASE,
)
_OF_QUERY = re.compile(r"enum\s*(?=\(\s*(?:select|from|with|values|\()\b)", re.IGNORECASE)


def create_type(piece: Piece, scope: Scope) -> Statement:
    """Bind CREATE TYPE name AS a type, or AS ENUM (query), whose texts are the values in their order."""
    found = _TYPE.match(piece.sql)
    if found is None:
        return create(piece, scope)
    name = unquoted(found)
    if name.lower() in TYPE_NAMES:
        place = Span(piece.start + found.start("name"), piece.start + found.end("name"))
        raise InvalidQuery(f'There is a type "{name}" already, which is built in.', place)
    place = Span(piece.start, piece.end)
    if_there = what_if_there(found["replace"], found["unless"], place)
    of_query = _OF_QUERY.match(piece.sql, found.end())
    if of_query is not None:
        return CreateType(name, _values(piece, of_query.end(), scope), if_there)
    # Read as a cast, at the same places
    start = found.end()
    text = "SELECT null ::".ljust(start)[:start] + piece.sql[start:]
    tree = scope.session.parse(
        Piece(piece.text[: piece.start] + text + piece.text[piece.end :], piece.start, piece.end)
    )
    casts = tree.expressions if isinstance(tree, exp.Select) else []
    if len(casts) != 1 or not isinstance(casts[0], exp.Cast) or _others(tree):
        raise ParseError(
            "Syntax error: the statement is written CREATE TYPE name AS type.",
            Span(piece.start + start, piece.end),
        )
    use(tree, casts[0], casts[0].this)
    made = data_type(casts[0].args["to"], scope.session.catalog.user_types)
    return CreateType(name, UserType(name, made), if_there)


def _others(tree: exp.Expr) -> bool:
    return any(value for key, value in tree.args.items() if key not in ("expressions", "kind"))


def _values(piece: Piece, start: int, scope: Scope) -> Query:
    tree = scope.session.parse(Piece(piece.text, piece.start + start, piece.end))
    plan = scope.bind_query(tree.unnest() if isinstance(tree, exp.Subquery) else tree)
    if isinstance(tree, exp.Subquery):
        use(tree)
    if len(plan.columns) != 1:
        raise InvalidQuery(
            f"An ENUM is made of one column, and the query has {len(plan.columns)}.", span_of(tree)
        )
    value = infer.cast(ColumnRef(plan.columns[0]), VARCHAR)
    return Query(Project(plan, ((new_column("value", VARCHAR), value),)))


def drop_type(piece: Piece, _: Scope) -> Statement:
    """Bind DROP TYPE; columns keep what the name stood for."""
    words = StatementWords(piece, "DROP TYPE name")
    words.expect("DROP", "TYPE")
    named = words.dropped()
    if [part.lower() for part in named.parts[:-1]] not in ([], ["main"]):
        raise words.error()
    if named.how == "CASCADE":
        raise Unsupported(
            "DROP TYPE ... CASCADE is not supported: drop the tables that have the type before.",
            words.place(),
        )
    return DropDefinition("type", named.parts[-1], named.exists)
