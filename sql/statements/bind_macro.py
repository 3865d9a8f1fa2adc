"""CREATE MACRO and DROP MACRO: texts with parameters, of which a name may have several for calls with different arguments."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

from sqlglot import Token, exp

from fuseline.errors import (
    FuselineError,
    InvalidQuery,
    ParseError,
    Span,
    UnknownColumn,
    Unsupported,
)
from fuseline.plan.changes.catalog_objects import Macro
from fuseline.plan.functions import aggregate_name, window_name
from fuseline.plan.statements import CreateMacro, DropDefinition, Statement
from fuseline.plan.types import DataType

from ..binding.function_names import data_type
from ..binding.macros import is_of_lambda
from ..binding.scope import Scope
from ..binding.udf.bind_python import is_function
from ..parsing.known_calls import FUNCTIONS
from ..parsing.parse import parse
from ..parsing.pieces import Piece
from ..parsing.statement_words import StatementWords
from ..parsing.tokens import tokenize
from ..parsing.unread import use
from .assignments import what_if_there
from .bind_session_statement import WRITTEN_PATH, unquoted_parts
from .bind_table_statement import create

_MACRO = re.compile(
    rf"\s*create\s+(?P<replace>or\s+replace\s+)?(?P<temporary>temp\s+|temporary\s+)?(?:macro|function)\s+"
    rf"(?P<unless>if\s+not\s+exists\s+)?{WRITTEN_PATH}\s*(?=\()",
    re.IGNORECASE,
)
_PARAMETER = (
    "a parameter of a macro is a name, perhaps with a type and a default: (a, b integer := 1)"
)
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")


def create_macro(piece: Piece, scope: Scope) -> Statement:
    """Keep the texts of a macro, whose calls are bound as if the one that takes their arguments stood in their place."""
    found = _MACRO.match(piece.sql)
    if found is None:
        return create(piece, scope)
    path, tokens = unquoted_parts(found), tokenize(piece)
    name = path[-1]
    place = Span(piece.start + found.start("name"), piece.start + found.end("name"))
    if _is_taken(name, scope):
        raise Unsupported(f'"{name}" is a function: give the macro another name.', place)
    placed = scope.session.catalog.new_name(path, bool(found["temporary"]))
    first = next(i for i, t in enumerate(tokens) if t.start >= found.end())
    made = [
        _definition(placed, tokens[start:stop], piece, scope)
        for start, stop in _definitions(tokens, first)
    ]
    if len({macro.is_table for macro in made}) > 1:
        raise ParseError("A macro is of expressions alone or of queries alone.", place)
    told = [tuple(m.types.get(p.lower()) for p in m.parameters) for m in made]
    if len(set(told)) < len(told):
        raise InvalidQuery(f'The macro "{name}" has two texts with the same parameters.', place)
    macro = dataclasses.replace(made[0], overloads=tuple(made[1:]))
    whole = Span(piece.start, piece.end)
    return CreateMacro(macro, what_if_there(found["replace"], found["unless"], whole))


def _is_taken(name: str, scope: Scope) -> bool:
    """Whether calls of the name never get to a macro: those of DuckDB's functions that sqlglot reads as nodes of their own do not."""
    if name.lower() in scope.session.catalog.session.functions:
        return True
    own = aggregate_name(name.lower()) or window_name(name.lower())
    return is_function(name) and bool(own or name.upper() in FUNCTIONS)


def _definitions(tokens: Sequence[Token], first: int) -> Iterator[tuple[int, int]]:
    """Yield where each (parameters) AS text begins and ends; a comma that parentheses and AS follow stands between two."""
    start, depth = first, 0
    for i in range(first, len(tokens)):
        text = tokens[i].text
        if depth == 0 and text == "," and _begins_definition(tokens, i + 1):
            yield start, i
            start = i + 1
        depth += (text in _OPENING) - (text in _CLOSING)
    yield start, len(tokens)


def _begins_definition(tokens: Sequence[Token], i: int) -> bool:
    if i >= len(tokens) or tokens[i].text != "(":
        return False
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j].text in _OPENING) - (tokens[j].text in _CLOSING)
        if depth == 0:
            return j + 2 < len(tokens) and tokens[j + 1].text.lower() == "as"
    return False


def _definition(name: str, tokens: Sequence[Token], piece: Piece, scope: Scope) -> Macro:
    parameters, i = _parameters(tokens, piece, scope)
    if i >= len(tokens) or tokens[i].text.lower() != "as":
        raise ParseError(
            "Syntax error: AS is missing behind the parameters of a macro.",
            _place(tokens, i - 1, piece),
        )
    is_table = i + 1 < len(tokens) and tokens[i + 1].text.lower() == "table"
    start, end = tokens[i + is_table].end + 1, tokens[-1].end + 1
    body = piece.sql[start:end]
    # Read as a SELECT of the expression, at the same places
    text = (" " * start if is_table else "SELECT".ljust(start)) + body
    read = Piece(
        piece.text[: piece.start] + text,
        piece.start + (start if is_table else 0),
        piece.start + end,
    )
    tree = parse(read)
    if tree.misread is not None:
        raise tree.misread.error
    single = isinstance(tree.root, exp.Select) and len(tree.root.expressions) == 1
    if not is_table and not (single and tree.root.args.get("from_") is None):
        raise ParseError(
            "Syntax error: a macro is AS an expression or AS TABLE a query.",
            Span(piece.start + start, piece.start + end),
        )
    _check_columns(tree.root, parameters, is_table, scope)
    kept = body.strip() if is_table else f"SELECT {body.strip()}"
    return dataclasses.replace(parameters, name=name, text=kept, is_table=is_table)


def _check_columns(root: exp.Expr, macro: Macro, is_table: bool, scope: Scope) -> None:
    """Raise `UnknownColumn` where an expression names what is no parameter, as DuckDB does; its queries are bound where it is called.

    So is a query with parameters, of which its columns may be.
    """
    if is_table and not macro.parameters:
        try:
            scope.bind_query(root)
        except UnknownColumn:
            raise
        except FuselineError:  # such as a table that is made later: the call says so
            return
    known = {name.lower() for name in macro.parameters}
    inside = Scope(scope.session).inside("a macro")
    for part in () if is_table else root.expressions[0].walk(prune=_is_query):
        if isinstance(part, exp.Column) and not isinstance(part.this, exp.Star):
            name = part.parts[0].name.lower()
            if not (name in known or is_of_lambda(part, name) or _names_argument(part)):
                inside.bind(part.copy())


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _names_argument(node: exp.Expr) -> bool:
    """Whether a name is that of an argument, `name := value`, or of the schema of a call."""
    around, key = node.parent, node.arg_key
    if isinstance(around, exp.PropertyEQ | exp.Kwarg):
        return key == "this"
    return around is not None and bool(around.meta.get("around"))


def _parameters(tokens: Sequence[Token], piece: Piece, scope: Scope) -> tuple[Macro, int]:
    """Return the parameters in parentheses that begin with the first token, and the number of the token behind."""
    macro = Macro("", "")
    depth, start = 0, 1
    for i in range(1, len(tokens)):
        text = tokens[i].text
        if depth == 0 and text in (",", ")"):
            if i > start:
                macro = _with_parameter(macro, tokens[start:i], piece, scope)
            start = i + 1
            if text == ")":
                return macro, i + 1
        depth += (text in _OPENING) - (text in _CLOSING)
    raise ParseError(
        "Syntax error: the parameters of a macro do not end.", _place(tokens, -1, piece)
    )


def _with_parameter(macro: Macro, tokens: Sequence[Token], piece: Piece, scope: Scope) -> Macro:
    """Return a macro with another parameter: name [type] [:= default]."""
    place = Span(piece.start + tokens[0].start, piece.start + tokens[-1].end + 1)
    name = tokens[0].text
    if name.lower() in (known.lower() for known in macro.parameters):
        raise InvalidQuery(f'The macro has two parameters "{name}".', place)
    sign = next(
        (i for i, t in enumerate(tokens) if t.text in (":=", "=") or _is_assignment(tokens, i)),
        len(tokens),
    )
    types, defaults = dict(macro.types), dict(macro.defaults)
    if sign > 1:
        types[name.lower()] = written_type(tokens[1:sign], piece, scope, _PARAMETER)
    if sign == len(tokens):
        if defaults:
            raise InvalidQuery("A parameter with a default stands behind those without.", place)
    else:
        behind = sign + 1 + (tokens[sign].text == ":")
        if behind >= len(tokens):
            raise ParseError("Syntax error: a default is written (a, b := 1).", place)
        defaults[name.lower()] = piece.sql[tokens[behind].start : tokens[-1].end + 1]
    return dataclasses.replace(
        macro, parameters=(*macro.parameters, name), types=types, defaults=defaults
    )


def _is_assignment(tokens: Sequence[Token], i: int) -> bool:
    return tokens[i].text == ":" and i + 1 < len(tokens) and tokens[i + 1].text == "="


def written_type(tokens: Sequence[Token], piece: Piece, scope: Scope, form: str) -> DataType:
    """Return the type that tokens are, read as a cast at the same places; `form` is how the statement is written, for errors."""
    start, end = tokens[0].start, tokens[-1].end + 1
    place = Span(piece.start + start, piece.start + end)
    text = "SELECT null ::".ljust(start)[:start] + piece.sql[start:end]
    tree = scope.session.parse(
        Piece(piece.text[: piece.start] + text, piece.start, piece.start + end)
    )
    casts = tree.expressions if isinstance(tree, exp.Select) else []
    if len(casts) != 1 or not isinstance(casts[0], exp.Cast):
        raise ParseError(f"Syntax error: {form}.", place)
    use(tree, casts[0], casts[0].this)
    return data_type(casts[0].args["to"], scope.session.catalog.user_types)


def _place(tokens: Sequence[Token], i: int, piece: Piece) -> Span:
    return Span(piece.start + tokens[i].start, piece.start + tokens[i].end + 1)


def drop_macro(piece: Piece, scope: Scope) -> Statement:
    words = StatementWords(piece, "DROP MACRO name")
    words.expect("DROP")
    if not words.accepts("MACRO"):
        words.expect("FUNCTION")
    words.accepts("TABLE")
    named = words.dropped()
    if named.how:
        raise words.error()
    name = scope.session.catalog.qualified(named.parts)
    return DropDefinition("macro", name or ".".join(named.parts), named.exists)
