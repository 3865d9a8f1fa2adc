"""What sqlglot's parser has to find otherwise: types of arrays, and what a setting gives another meaning, `x -> x + 1` as a lambda, `/` as `//`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import Token, TokenType
from sqlglot.parsers.duckdb import DuckDBParser

from fuseline.errors import InvalidQuery, Span
from fuseline.plan.composed.lambdas import LAMBDAS
from fuseline.plan.dialect import dialect

from ...records import dataclass
from .pieces import Piece

OPENING = (TokenType.L_PAREN, TokenType.L_BRACE, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACE, TokenType.R_BRACKET)
_BEFORE_ARRAY = DuckDBParser.TYPE_TOKENS | {TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN}
_NO_NAMES = (TokenType.STRING, TokenType.NUMBER, TokenType.PARAMETER)


@dataclass
class _Bracket:
    """One that is open: from which argument on a lambda may be in it, and which argument is read."""

    first_lambda: int | None
    argument: int = 0


def with_arrow_lambdas(tokens: Sequence[Token], piece: Piece) -> Iterator[Token]:
    """Write `lambda x, y:` for `(x, y) ->` where an argument of list_transform and the like, or of COLUMNS, begins so.

    Raises `InvalidQuery` where the setting `lambda_syntax` does not ask for it, as in DuckDB 2.0.
    """
    open_ones: list[_Bracket] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token.token_type in OPENING:
            open_ones.append(_Bracket(_first_lambda(tokens, i)))
        elif token.token_type in _CLOSING and open_ones:
            open_ones.pop()
        elif token.token_type is TokenType.COMMA and open_ones:
            open_ones[-1].argument += 1
        yield token
        i += 1
        if not open_ones or token.token_type not in (*OPENING, TokenType.COMMA):
            continue
        first, names = open_ones[-1].first_lambda, _parameters(tokens, i)
        if first is None or open_ones[-1].argument < first or not names:
            continue
        arrow = tokens[_behind(tokens, i, len(names))]
        if not dialect().has_arrows:
            place = Span(piece.start + tokens[i].start, piece.start + arrow.end + 1)
            raise InvalidQuery(
                "A lambda is written `lambda x: x + 1`, and -> reads JSON: "
                "SET lambda_syntax = 'ENABLE_SINGLE_ARROW' for `x -> x + 1`.",
                place,
            )
        yield _as(TokenType.VAR, "lambda", tokens[i])
        for number, name in enumerate(names):
            if number:
                yield _as(TokenType.COMMA, ",", name)
            yield name
        yield _as(TokenType.COLON, ":", arrow)
        i = _behind(tokens, i, len(names)) + 1


def _first_lambda(tokens: Sequence[Token], opening: int) -> int | None:
    name = tokens[opening - 1].text.lower() if opening else ""
    if tokens[opening].token_type is not TokenType.L_PAREN:
        return None
    if name == "columns":
        return 0
    is_method = opening > 1 and tokens[opening - 2].token_type is TokenType.DOT
    return (0 if is_method else 1) if name in LAMBDAS else None


def _parameters(tokens: Sequence[Token], start: int) -> list[Token]:
    """Return the names of `x ->` or `(x, y) ->` that begins here, none where something else does."""
    wrapped = tokens[start].token_type is TokenType.L_PAREN
    place, names = start + wrapped, []
    while place < len(tokens) and _is_name(tokens[place]):
        names.append(tokens[place])
        place += 1
        if not wrapped or place >= len(tokens) or tokens[place].token_type is not TokenType.COMMA:
            break
        place += 1
    arrow = _behind(tokens, start, len(names))
    is_lambda = bool(names) and arrow < len(tokens) and tokens[arrow].token_type is TokenType.ARROW
    closed = not wrapped or (place < len(tokens) and tokens[place].token_type is TokenType.R_PAREN)
    return names if is_lambda and closed else []


def _behind(tokens: Sequence[Token], start: int, names: int) -> int:
    """Return the place of the arrow behind so many parameters."""
    return start + 1 if tokens[start].token_type is not TokenType.L_PAREN else start + 2 * names + 1


def _is_name(token: Token) -> bool:
    return token.token_type not in _NO_NAMES and token.text.isidentifier()


def with_whole_divisions(tokens: Sequence[Token]) -> Iterator[Token]:
    """Write // for /, as the setting `integer_division` says."""
    for token in tokens:
        yield _as(TokenType.DIV, "//", token) if token.token_type is TokenType.SLASH else token


def with_array_types(tokens: Sequence[Token]) -> Iterator[Token]:
    """Write INTEGER[] for the type INTEGER ARRAY, and INTEGER[2] for INTEGER ARRAY[2]."""
    kinds = [None, None, *(token.token_type for token in tokens), None]
    for place, token in enumerate(tokens):
        earlier, before, kind, after = kinds[place : place + 4]
        if kind is not TokenType.ARRAY or before not in _BEFORE_ARRAY or earlier is TokenType.IS:
            yield token
        elif after is not TokenType.L_BRACKET:
            yield _as(TokenType.L_BRACKET, "[", token)
            yield _as(TokenType.R_BRACKET, "]", token)


def _as(kind: TokenType, text: str, token: Token) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)
