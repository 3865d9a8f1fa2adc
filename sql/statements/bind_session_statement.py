"""PREPARE and EXECUTE, SET VARIABLE: statements about what a connection keeps beside tables."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from fuseline import errors as err
from fuseline.plan import statements as st
from fuseline.plan.changes.catalog_objects import StoredText
from fuseline.plan.expr import Expr

from ..binding.constants.known_values import known
from ..binding.constants.parameters import Parameters
from ..binding.scope import Scope
from ..parsing.parse import parse
from ..parsing.pieces import Piece, span_of
from ..parsing.unread import use

_NAME = r'(?:\w+|"(?:[^"]|"")+")'
WRITTEN_NAME = rf"(?P<name>{_NAME})"
WRITTEN_PATH = rf"(?P<name>{_NAME}(?:\s*\.\s*{_NAME}){{0,2}})"
_PREPARE = re.compile(
    rf"\s*prepare\s+{WRITTEN_NAME}\s*(?P<types>\([^)]*\))?\s*as\s+(?=\S)", re.IGNORECASE
)
_EXECUTE = re.compile(
    rf"\s*execute\s+{WRITTEN_NAME}\s*(?P<values>\(.*\))?\s*", re.IGNORECASE | re.DOTALL
)
_DEALLOCATE = re.compile(rf"\s*deallocate\s+(?:prepare\s+)?{WRITTEN_NAME}\s*", re.IGNORECASE)
_SET = re.compile(rf"\s*set\s+variable\s+{WRITTEN_NAME}\s*(?:=|to\b)\s*(?=\S)", re.IGNORECASE)
_RESET = re.compile(rf"\s*reset\s+variable\s+{WRITTEN_NAME}\s*", re.IGNORECASE)
_MOST_EXECUTED = 100  # prepared statements that execute one another

Binder = Callable[[Piece, Scope], st.Statement]


def unquoted(found: re.Match[str]) -> str:
    """Return the name that a statement gives."""
    return unquoted_parts(found)[0]


def unquoted_parts(found: re.Match[str]) -> list[str]:
    """Return the parts of the path that a statement gives."""
    parts = re.findall(_NAME, found["name"])
    return [p[1:-1].replace('""', '"') if p.startswith('"') else p for p in parts]


def _whole(pattern: re.Pattern[str], piece: Piece, form: str) -> re.Match[str]:
    found = pattern.fullmatch(piece.sql)
    if found is None:
        raise err.ParseError(
            f"Syntax error: the statement is written {form}.", err.Span(piece.start, piece.end)
        )
    return found


def prepare(piece: Piece, _: Scope) -> st.Statement:
    """Keep the text of a statement; names in it are looked up when it is executed, by then with the types of its parameters."""
    found = _PREPARE.match(piece.sql)
    if found is None or found["types"]:
        raise err.ParseError(
            "Syntax error: the statement is written PREPARE name AS statement.",
            err.Span(piece.start, piece.end),
        )
    rest = Piece(piece.text, piece.start + found.end(), piece.end)
    if rest.sql[: len("COPY")].upper() != "COPY":  # which is read from its tokens
        tree = parse(rest)
        if tree.misread is not None:
            raise tree.misread.error
    return st.Prepare(StoredText(unquoted(found), rest.sql.rstrip()))


def execute(bind_statement: Binder) -> Binder:
    def bind(piece: Piece, scope: Scope) -> st.Statement:
        found = _whole(_EXECUTE, piece, "EXECUTE name(value, ...)")
        session = scope.session
        stored = session.catalog.session.prepared.get(unquoted(found).lower())
        if stored is None:
            hint = err.nearest(unquoted(found), session.catalog.session.prepared)
            place = err.Span(piece.start + found.start("name"), piece.start + found.end("name"))
            raise err.UnknownName(
                f'There is no prepared statement "{unquoted(found)}".{hint}', place
            )
        if len(session.views) > _MOST_EXECUTED:
            raise err.InvalidQuery(
                "A prepared statement executes itself.", err.Span(piece.start, piece.end)
            )
        parameters = Parameters(_values(piece, found, scope))
        inner = dataclasses.replace(
            session,
            parameters=parameters,
            text=stored.text,
            views=(*session.views, f"execute {stored.name}"),
            stored=err.ViewText(stored.name, stored.text, "prepared statement"),
        )
        statement = bind_statement(Piece(stored.text, 0, len(stored.text)), Scope(inner))
        parameters.check_all_used()
        return statement

    return bind


def _values(
    piece: Piece, found: re.Match[str], scope: Scope
) -> Sequence[object] | Mapping[str, object]:
    """Return the constants in the parentheses of EXECUTE, by place or by name."""
    if found["values"] is None or not found["values"][1:-1].strip():
        return ()
    start = piece.start + found.start("values")
    node = scope.session.parse(Piece(piece.text, start, piece.start + found.end("values")))
    items = node.expressions if isinstance(node, exp.Tuple) else [node.unnest()]
    use(node, *items)
    inside = scope.inside("EXECUTE")
    by_place: list[object] = []
    by_name: dict[str, object] = {}
    for item in items:
        if isinstance(item, exp.PropertyEQ | exp.Kwarg):
            use(item.this)
            by_name[item.this.name] = _constant(item.expression, inside)
        else:
            by_place.append(_constant(item, inside))
    if by_place and by_name:
        raise err.InvalidQuery("EXECUTE takes values by place or by name.", span_of(node))
    return by_name or by_place


def _constant(node: exp.Expr, scope: Scope) -> Expr:
    found = known(scope.bind(node), scope)
    if found.reads or found.subqueries:
        raise err.Unsupported("A value of EXECUTE must be a constant.", span_of(node))
    return found


def deallocate(piece: Piece, _: Scope) -> st.Statement:
    return st.Deallocate(unquoted(_whole(_DEALLOCATE, piece, "DEALLOCATE name")))


def is_variable(piece: Piece) -> bool:
    """Whether SET or RESET is about a variable."""
    return re.match(r"\s*(?:re)?set\s+variable\b", piece.sql, re.IGNORECASE) is not None


def set_variable(piece: Piece, scope: Scope) -> st.Statement:
    found = _SET.match(piece.sql)
    if found is None:
        raise err.ParseError(
            "Syntax error: the statement is written SET VARIABLE name = value.",
            err.Span(piece.start, piece.end),
        )
    # Read as a SELECT of the value, at the same places
    behind = piece.start + found.end()
    text = piece.text[: piece.start] + "SELECT".ljust(found.end()) + piece.text[behind:]
    select = scope.session.parse(Piece(text, piece.start, piece.end))
    return st.SetVariable(unquoted(found), st.Query(scope.bind_query(select)))


def reset_variable(piece: Piece, _: Scope) -> st.Statement:
    return st.SetVariable(unquoted(_whole(_RESET, piece, "RESET VARIABLE name")), None)
