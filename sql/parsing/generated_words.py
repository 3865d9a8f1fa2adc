"""How generated columns are written for sqlglot's parser, which lacks VIRTUAL and does not note their texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import Token, TokenType

from fuseline.errors import Span, Unsupported

from .pieces import Piece

# What a DEFAULT is called that stands for a generated column; no text of a user's can have it
GENERATED = "\0generated"
_BEFORE_NAME = 5  # words of CREATE OR REPLACE TEMP TABLE


def with_generated_columns(tokens: Sequence[Token], piece: Piece) -> Iterator[Token]:
    """Yield the tokens of CREATE or ALTER TABLE with `[GENERATED ALWAYS] AS (...) [VIRTUAL]` as a DEFAULT of a name of its own.

    Raises `Unsupported` for STORED.
    """
    if all(token.token_type is not TokenType.TABLE for token in tokens[:_BEFORE_NAME]):
        yield from tokens
        return
    level = 0 if tokens[0].token_type is TokenType.ALTER else 1
    depth, within = 0, False
    for i, token in enumerate(tokens):
        kind, before, after = token.token_type, tokens[i - 1] if i else token, tokens[i + 1 : i + 2]
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if level and depth == 0 and kind is TokenType.ALIAS:  # the query of the table
            yield from tokens[i:]
            return
        word = token.text.lower()
        if (
            depth == level
            and kind is TokenType.ALIAS
            and after
            and after[0].token_type is TokenType.L_PAREN
        ):
            within = True
            yield _as(TokenType.CONSTRAINT, "CONSTRAINT", token)
            yield _as(TokenType.IDENTIFIER, GENERATED, token)
            yield _as(TokenType.DEFAULT, "DEFAULT", token)
        elif depth == level and word in ("generated", "always") and _leads(tokens, i):
            continue
        elif within and before.token_type is TokenType.R_PAREN and word in ("virtual", "stored"):
            if word == "stored":
                place = Span(piece.start + token.start, piece.start + token.end + 1)
                raise Unsupported(
                    "Generated columns are not STORED in DuckDB: write VIRTUAL.", place
                )
            within = False
        else:
            within = within and (depth != 1 or kind is not TokenType.COMMA)
            yield token


def _leads(tokens: Sequence[Token], i: int) -> bool:
    """Whether GENERATED ALWAYS AS stands around a token."""
    words = [token.text.lower() for token in tokens[i : i + 3]]
    return words[:3] == ["generated", "always", "as"] or words[:2] == ["always", "as"]


def _as(kind: TokenType, text: str, token: Token) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)
