"""What the actions of MERGE are written as for sqlglot's parser, which lacks some of DuckDB's forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import Token, TokenType

_ENDS = ("when", "returning")


def with_merge_words(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens of a MERGE with its actions as sqlglot's parser reads them.

    `UPDATE SET *` and `BY POSITION` become the bare word, `BY NAME` becomes `*`, `INSERT DEFAULT VALUES` `INSERT ROW`, `ERROR` `ABORT`, and
    `ERROR message` `UPDATE WHERE message`.  The grammar has refused the texts that are written so.
    """
    words = [_word(token) for token in tokens]
    i = 0
    while i < len(tokens):
        token, before = tokens[i], words[i - 1] if i else ""
        behind = words[i + 1 : i + 3]
        i += 1
        if before != "then":
            yield token
        elif words[i - 1] == "error":
            if i == len(tokens) or words[i] in _ENDS:
                yield _as(TokenType.VAR, "ABORT", token)
            else:
                yield _as(TokenType.UPDATE, "UPDATE", token)
                yield _as(TokenType.WHERE, "WHERE", token)
        elif words[i - 1] not in ("update", "insert"):
            yield token
        elif behind == ["default", "values"]:
            yield token
            yield _as(TokenType.ROW, "ROW", token)
            i += 2
        elif behind[:1] == ["by"]:
            yield token
            i += 2
            if behind == ["by", "name"]:
                yield _as(TokenType.STAR, "*", token)
            i += words[i : i + 1] == ["*"]
        else:
            yield token
            i += 2 * (behind == ["set", "*"]) or behind[:1] == ["*"]


def _word(token: Token) -> str:
    named = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
    return "" if named else token.text.lower()


def _as(kind: TokenType, text: str, token: Token) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)
