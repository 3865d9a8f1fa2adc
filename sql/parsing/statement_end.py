"""What can be told of a text that somebody still writes: whether a statement ends with it, and which relations it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import sqlglot.errors
from sqlglot import Token, TokenType

from .pieces import Piece, unterminated
from .tokens import tokens_of

_BEFORE = {TokenType.FROM, TokenType.JOIN, TokenType.INTO, TokenType.UPDATE}
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING}
# Words behind a relation that are no alias of it
_NO_ALIAS = (
    " where group order limit offset having qualify window union intersect except on using join inner left right full cross natural "
    "semi anti asof positional set values select returning tablesample sample pivot unpivot lateral "
)


class NamedRelation(NamedTuple):
    """What FROM, JOIN, INTO or UPDATE names: its text, and how columns call it."""

    text: str
    name: str


def ends_statement(text: str) -> bool:
    """Whether a text ends with a `;` that is not in a string, a name or a comment.

    >>> ends_statement("select ';'"), ends_statement("select 1 -- ;"), ends_statement("select ';'; -- two")
    (False, False, True)
    """
    tokens = _tokens(text)
    return bool(tokens) and tokens[-1].token_type is TokenType.SEMICOLON


def unfinished(text: str) -> str | None:
    """Return the quote or comment that does not end, with what opens it; None where all do.

    >>> unfinished("select * from 'sales/a"), unfinished("select 'a'")
    ("'sales/a", None)
    """
    place = unterminated(Piece(text, 0, len(text)))
    return None if place is None else text[place.start :]


def relations(text: str) -> list[NamedRelation]:
    """Return the relations of the statement that a text ends in, as far as it is written.

    >>> relations("select from lineitem l, 'a b.csv' join db.t as u on")
    [NamedRelation(text='lineitem', name='l'), NamedRelation(text="'a b.csv'", name='a b.csv'), NamedRelation(text='db.t', name='u')]
    """
    rest = unfinished(text)
    tokens = _tokens(text[: len(text) - len(rest)] if rest else text)
    ends = [i for i, token in enumerate(tokens) if token.token_type is TokenType.SEMICOLON]
    return list(_relations(tokens[ends[-1] + 1 if ends else 0 :], text))


def _relations(tokens: Sequence[Token], text: str) -> Iterator[NamedRelation]:
    at = 0
    while at < len(tokens):
        before = tokens[at].token_type in _BEFORE
        at += 1
        while before and at < len(tokens):
            start, at = at, _behind(tokens, at)
            if at == start:
                break
            first, last = tokens[start], tokens[at - 1]
            alias, at = _alias(tokens, at)
            written = text[first.start : last.end + 1]
            called = last.token_type is TokenType.R_PAREN  # a function, by its own name
            yield NamedRelation(written, alias or (first if called else last).text)
            before = at < len(tokens) and tokens[at].token_type is TokenType.COMMA
            at += before


def _behind(tokens: Sequence[Token], at: int) -> int:
    """Return the place behind a name of parts, a string, a call or a query in parentheses that begins at a place."""
    named = False
    while at < len(tokens):
        token = tokens[at]
        if token.token_type is TokenType.L_PAREN:
            return _closed(tokens, at)
        is_name = token.token_type in _NAMES or token.text.isidentifier()
        if named or not is_name:
            return at
        at += 1
        named = True
        if at < len(tokens) and tokens[at].token_type is TokenType.DOT:
            at, named = at + 1, False
    return at


def _closed(tokens: Sequence[Token], at: int) -> int:
    """Return the place behind the parenthesis that closes the one at a place; the same place where none does."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += tokens[place].token_type is TokenType.L_PAREN
        depth -= tokens[place].token_type is TokenType.R_PAREN
        if depth == 0:
            return place + 1
    return at


def _alias(tokens: Sequence[Token], at: int) -> tuple[str | None, int]:
    """Return the alias at a place, and the place behind it."""
    if at < len(tokens) and tokens[at].token_type is TokenType.ALIAS:
        at += 1
    if at >= len(tokens):
        return None, at
    token = tokens[at]
    quoted = token.token_type is TokenType.IDENTIFIER
    if quoted or (token.text.isidentifier() and f" {token.text.lower()} " not in _NO_ALIAS):
        return token.text, at + 1
    return None, at


def _tokens(text: str) -> list[Token]:
    try:
        return tokens_of(text)
    except sqlglot.errors.TokenError:
        return []
