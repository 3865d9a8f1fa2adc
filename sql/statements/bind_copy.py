"""COPY, read from its tokens: what sqlglot makes of its options does not tell them apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlglot import Token, TokenType, exp

from fuseline.errors import FuselineError, InvalidQuery, ParseError, Span, Unsupported
from fuseline.plan.files.write_options import WRITE_OPTIONS, format_named, format_of
from fuseline.plan.statements import CopyTo, Query, Statement

from ..binding.bind_files import option_value
from ..binding.scope import Scope
from ..parsing.pieces import Piece
from ..parsing.tokens import tokenize
from ..parsing.unread import use

_OPENING, _CLOSING = "([{", ")]}"


def copy_statement(piece: Piece, scope: Scope) -> Statement:
    """Bind COPY table TO, COPY (query) TO, and its options."""
    tokens = tokenize(piece)
    behind = _behind_source(tokens, piece)
    path = tokens[behind + 1 : behind + 2]
    if not path or path[0].token_type is not TokenType.STRING:
        raise ParseError("Syntax error: COPY ... TO takes a path in quotes.", _place(piece, path))
    query = _query(piece, tokens[: behind + 1], scope)
    form, options = _options(tokens[behind + 2 :], piece, scope, path[0].text)
    return CopyTo(query, path[0].text, form, options)


def _behind_source(tokens: Sequence[Token], piece: Piece) -> int:
    """Return the number of the token TO."""
    depth = 0
    for number, token in enumerate(tokens[1:], 1):
        depth += _step(token)
        word = "" if token.token_type is TokenType.IDENTIFIER else token.text.upper()
        if depth == 0 and word in ("TO", "FROM") and number > 1:
            if word == "TO":
                return number
            raise Unsupported("COPY ... FROM is not supported: use INSERT.", _place(piece, [token]))
    raise ParseError(
        "Syntax error: COPY is written COPY table TO 'path', or COPY (query) TO 'path'.",
        Span(piece.start, piece.end),
    )


def _query(piece: Piece, tokens: Sequence[Token], scope: Scope) -> Query:
    """Bind a query in parentheses, or a table with the columns behind it as the query that it stands for."""
    first, end = tokens[1].start, tokens[-1].start
    if tokens[1].token_type is TokenType.L_PAREN:
        node = scope.session.parse(Piece(piece.text, piece.start + first, piece.start + end))
        return Query(scope.bind_query(node))
    listed = next((t.start for t in tokens if t.token_type is TokenType.L_PAREN), end)
    # Read as `FROM table`, at the same places
    start = piece.start + tokens[0].start
    text = piece.text[:start] + "FROM" + piece.text[start + len("COPY") :]
    node = scope.session.parse(Piece(text, start, piece.start + listed))
    if listed < end:
        names = scope.session.parse(Piece(piece.text, piece.start + listed, piece.start + end))
        chosen = names.expressions if isinstance(names, exp.Tuple) else [names.unnest()]
        use(names, *node.expressions)
        node.set("expressions", chosen)
    return Query(scope.bind_query(node))


def _options(
    tokens: Sequence[Token], piece: Piece, scope: Scope, path: str
) -> tuple[str, dict[str, object]]:
    form = format_of(path)
    written: list[tuple[Token, object]] = []
    for name, value in _pairs(tokens, piece):
        read = _value(value, piece, scope)
        if name.text.lower() == "format":
            with _at(piece, name):
                form = format_named(read)
        else:
            written.append((name, read))
    options: dict[str, object] = {}
    for name, read in written:
        with _at(piece, name):
            key, checked = WRITE_OPTIONS[form].read(name.text, read)
            if key in options:
                raise InvalidQuery(f"The option {key} is given twice.")
            options[key] = checked
    return form, options


def _pairs(tokens: Sequence[Token], piece: Piece) -> Iterator[tuple[Token, Sequence[Token]]]:
    """Yield the name of each option and the tokens of its value."""
    if tokens and tokens[0].text.upper() == "WITH":
        tokens = tokens[1:]
    if not tokens:
        return
    if tokens[0].token_type is not TokenType.L_PAREN or _end(tokens) != len(tokens) - 1:
        raise ParseError(
            "Syntax error: options of COPY stand in parentheses: (FORMAT csv, HEADER false).",
            _place(piece, tokens),
        )
    start, depth = 1, 0
    for number, token in enumerate(tokens[1:], 1):
        if depth == 0 and (token.token_type is TokenType.COMMA or number == len(tokens) - 1):
            if start == number:
                raise ParseError("Syntax error: an option is missing.", _place(piece, [token]))
            yield tokens[start], tokens[start + 1 : number]
            start = number + 1
        depth += _step(token)


def _end(tokens: Sequence[Token]) -> int:
    """Return the number of the token that closes what the first opens."""
    depth = 0
    for number, token in enumerate(tokens):
        depth += _step(token)
        if depth == 0:
            return number
    return len(tokens)


def _step(token: Token) -> int:
    if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) or not token.text:
        return 0
    return (token.text in _OPENING) - (token.text in _CLOSING)


def _value(tokens: Sequence[Token], piece: Piece, scope: Scope) -> object:
    if not tokens:
        return True
    first = tokens[0]
    if len(tokens) == 1 and first.token_type is not TokenType.NUMBER:
        return first.text  # a word, a text, or *
    place = _place(piece, tokens)
    return option_value(scope.session.parse(Piece(piece.text, place.start, place.end)), scope)


@contextmanager
def _at(piece: Piece, token: Token) -> Iterator[None]:
    try:
        yield
    except FuselineError as error:
        error.at(_place(piece, [token]))
        raise


def _place(piece: Piece, tokens: Sequence[Token]) -> Span:
    if not tokens:
        return Span(piece.end, piece.end)
    return Span(piece.start + tokens[0].start, piece.start + tokens[-1].end + 1)
