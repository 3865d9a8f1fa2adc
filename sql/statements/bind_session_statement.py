"""PREPARE and EXECUTE, SET VARIABLE, CREATE MACRO: statements about what a connection keeps beside tables."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence

from sqlglot import Token, exp

from fuseline.errors import (
    InvalidQuery,
    ParseError,
    Span,
    UnknownName,
    Unsupported,
    ViewText,
    nearest,
)
from fuseline.plan.changes.session_objects import Macro, StoredText
from fuseline.plan.statements import (
    CreateMacro,
    Deallocate,
    DropDefinition,
    Prepare,
    Query,
    SetVariable,
    Statement,
)

from ..binding.bind_literal import plain_constant
from ..binding.parameters import Parameters
from ..binding.scope import Scope
from ..binding.udf.bind_python import is_function
from ..parsing.parse import parse
from ..parsing.pieces import Piece, span_of
from ..parsing.tokens import tokenize
from ..parsing.unread import use
from .table_names import what_if_there

_NAME = r'(?P<name>\w+|"(?:[^"]|"")+")'
_PREPARE = re.compile(rf"\s*prepare\s+{_NAME}\s*(?P<types>\([^)]*\))?\s*as\s+(?=\S)", re.IGNORECASE)
_EXECUTE = re.compile(rf"\s*execute\s+{_NAME}\s*(?P<values>\(.*\))?\s*", re.IGNORECASE | re.DOTALL)
_DEALLOCATE = re.compile(rf"\s*deallocate\s+(?:prepare\s+)?{_NAME}\s*", re.IGNORECASE)
_SET = re.compile(rf"\s*set\s+variable\s+{_NAME}\s*(?:=|to\b)\s*(?=\S)", re.IGNORECASE)
_RESET = re.compile(rf"\s*reset\s+variable\s+{_NAME}\s*", re.IGNORECASE)
MACRO = re.compile(
    rf"\s*create\s+(?P<replace>or\s+replace\s+)?(?:temp\s+|temporary\s+)?(?:macro|function)\s+"
    rf"(?P<unless>if\s+not\s+exists\s+)?{_NAME}\s*(?=\()",
    re.IGNORECASE,
)
_DROP = re.compile(
    rf"\s*drop\s+(?:macro|function)\s+(?:table\s+)?(?P<exists>if\s+exists\s+)?{_NAME}\s*",
    re.IGNORECASE,
)
_MOST_EXECUTED = 100  # prepared statements that execute one another

Binder = Callable[[Piece, Scope], Statement]


def _name(found: re.Match[str]) -> str:
    name = found["name"]
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _whole(pattern: re.Pattern[str], piece: Piece, form: str) -> re.Match[str]:
    found = pattern.fullmatch(piece.sql)
    if found is None:
        raise ParseError(
            f"Syntax error: the statement is written {form}.", Span(piece.start, piece.end)
        )
    return found


def prepare(piece: Piece, _: Scope) -> Statement:
    """Keep the text of a statement; names in it are looked up when it is executed, by then with the types of its parameters."""
    found = _PREPARE.match(piece.sql)
    if found is None or found["types"]:
        raise ParseError(
            "Syntax error: the statement is written PREPARE name AS statement.",
            Span(piece.start, piece.end),
        )
    rest = Piece(piece.text, piece.start + found.end(), piece.end)
    tree = parse(rest)
    if tree.misread is not None:
        raise tree.misread.error
    return Prepare(StoredText(_name(found), rest.sql.rstrip()))


def execute(bind_statement: Binder) -> Binder:
    def bind(piece: Piece, scope: Scope) -> Statement:
        found = _whole(_EXECUTE, piece, "EXECUTE name(value, ...)")
        session = scope.session
        stored = session.catalog.session.prepared.get(_name(found).lower())
        if stored is None:
            hint = nearest(_name(found), session.catalog.session.prepared)
            place = Span(piece.start + found.start("name"), piece.start + found.end("name"))
            raise UnknownName(f'There is no prepared statement "{_name(found)}".{hint}', place)
        if len(session.views) > _MOST_EXECUTED:
            raise InvalidQuery(
                "A prepared statement executes itself.", Span(piece.start, piece.end)
            )
        parameters = Parameters(_values(piece, found, scope))
        inner = dataclasses.replace(
            session,
            parameters=parameters,
            text=stored.text,
            views=(*session.views, f"execute {stored.name}"),
            stored=ViewText(stored.name, stored.text),
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
            by_name[item.this.name] = plain_constant(
                inside.bind(item.expression), "A value of EXECUTE"
            )
        else:
            by_place.append(plain_constant(inside.bind(item), "A value of EXECUTE"))
    if by_place and by_name:
        raise InvalidQuery("EXECUTE takes values by place or by name.", span_of(node))
    return by_name or by_place


def deallocate(piece: Piece, _: Scope) -> Statement:
    return Deallocate(_name(_whole(_DEALLOCATE, piece, "DEALLOCATE name")))


def is_variable(piece: Piece) -> bool:
    """Whether SET or RESET is about a variable."""
    return re.match(r"\s*(?:re)?set\s+variable\b", piece.sql, re.IGNORECASE) is not None


def set_variable(piece: Piece, scope: Scope) -> Statement:
    found = _SET.match(piece.sql)
    if found is None:
        raise ParseError(
            "Syntax error: the statement is written SET VARIABLE name = value.",
            Span(piece.start, piece.end),
        )
    # Read as a SELECT of the value, at the same places
    behind = piece.start + found.end()
    text = piece.text[: piece.start] + "SELECT".ljust(found.end()) + piece.text[behind:]
    select = scope.session.parse(Piece(text, piece.start, piece.end))
    return SetVariable(_name(found), Query(scope.bind_query(select)))


def reset_variable(piece: Piece, _: Scope) -> Statement:
    return SetVariable(_name(_whole(_RESET, piece, "RESET VARIABLE name")), None)


def create_macro(piece: Piece, scope: Scope) -> Statement:
    """Keep the text of a macro, whose calls are bound as if its text stood in their place."""
    found = MACRO.match(piece.sql)
    assert found is not None, "asked before"
    name, tokens = _name(found), tokenize(piece)
    if is_function(name) or name.lower() in scope.session.catalog.session.functions:
        place = Span(piece.start + found.start("name"), piece.start + found.end("name"))
        raise Unsupported(f'"{name}" is a function: give the macro another name.', place)
    first = next(i for i, t in enumerate(tokens) if t.start >= found.end())
    parameters, defaults, i = _parameters(tokens, first, piece)
    if i >= len(tokens) or tokens[i].text.lower() != "as":
        raise ParseError(
            "Syntax error: AS is missing behind the parameters of a macro.",
            _place(tokens, i - 1, piece),
        )
    is_table = i + 1 < len(tokens) and tokens[i + 1].text.lower() == "table"
    start = tokens[i + is_table].end + 1
    body = piece.text[piece.start + start : piece.end]
    # Read as a SELECT of the expression, at the same places
    text = piece.sql[:start] + body if is_table else "SELECT".ljust(start) + body
    read = Piece(
        piece.text[: piece.start] + text, piece.start + (start if is_table else 0), piece.end
    )
    tree = parse(read)
    if tree.misread is not None:
        raise tree.misread.error
    single = isinstance(tree.root, exp.Select) and len(tree.root.expressions) == 1
    if not is_table and not (single and tree.root.args.get("from_") is None):
        raise ParseError(
            "Syntax error: a macro is AS an expression or AS TABLE a query.",
            Span(piece.start + start, piece.end),
        )
    kept = body.strip() if is_table else f"SELECT {body.strip()}"
    temporary = re.match(r"\s*create\s+(?:or\s+replace\s+)?temp", piece.sql, re.IGNORECASE)
    placed = scope.session.catalog.new_name([name], bool(temporary))
    macro = Macro(placed, kept, tuple(parameters), defaults, is_table)
    return CreateMacro(
        macro, what_if_there(found["replace"], found["unless"], Span(piece.start, piece.end))
    )


def _parameters(
    tokens: Sequence[Token], first: int, piece: Piece
) -> tuple[list[str], dict[str, str], int]:
    """Return the parameters in parentheses that begin at a token, their defaults, and the number of the token behind."""
    names: list[str] = []
    defaults: dict[str, str] = {}
    i, depth, start = first + 1, 0, first + 1
    while i < len(tokens):
        text = tokens[i].text
        if depth == 0 and text in (",", ")"):
            if i > start:
                _parameter(tokens[start:i], names, defaults, piece)
            start = i + 1
            if text == ")":
                return names, defaults, i + 1
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        i += 1
    raise ParseError(
        "Syntax error: the parameters of a macro do not end.", _place(tokens, -1, piece)
    )


def _parameter(
    tokens: Sequence[Token], names: list[str], defaults: dict[str, str], piece: Piece
) -> None:
    place = Span(piece.start + tokens[0].start, piece.start + tokens[-1].end + 1)
    name = tokens[0].text
    if name.lower() in (known.lower() for known in names):
        raise InvalidQuery(f'The macro has two parameters "{name}".', place)
    names.append(name)
    signs = 2 if len(tokens) > 2 and tokens[1].text == ":" and tokens[2].text == "=" else 1
    if len(tokens) == 1:
        if defaults:
            raise InvalidQuery("A parameter with a default stands behind those without.", place)
    elif tokens[1].text in (":=", "=") or signs == 2:
        defaults[name.lower()] = piece.sql[tokens[1 + signs].start : tokens[-1].end + 1]
    else:
        raise Unsupported(
            "A parameter of a macro is a name, and may have a default: (a, b := 1).", place
        )


def _place(tokens: Sequence[Token], i: int, piece: Piece) -> Span:
    return Span(piece.start + tokens[i].start, piece.start + tokens[i].end + 1)


def is_macro_drop(piece: Piece) -> bool:
    return _DROP.match(piece.sql) is not None


def drop_macro(piece: Piece, _: Scope) -> Statement:
    found = _whole(_DROP, piece, "DROP MACRO name")
    return DropDefinition("macro", _name(found), bool(found["exists"]))
