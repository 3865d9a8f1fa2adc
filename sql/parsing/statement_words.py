"""The words of a statement that has a grammar of its own, read one after the other."""

from __future__ import annotations

import re
from typing import NamedTuple

from sqlglot import Token, TokenType

from fuseline.errors import FuselineError, ParseError, ProgrammingError, Span

from .pieces import Piece, split
from .tokens import tokenize

_QUOTED = re.compile(r"\"([^\"]+)\"|'([^']+)'")


class Dropped(NamedTuple):
    """What DROP names, behind the word that says what kind of thing it is."""

    parts: tuple[str, ...]
    exists: bool  # IF EXISTS
    how: str  # CASCADE, RESTRICT or nothing
    place: Span  # of the name


class StatementWords:
    """The tokens of a statement, and how many of them have been read."""

    def __init__(self, piece: Piece, form: str) -> None:
        """`form` is how the statement is written, for errors."""
        self.piece, self._form = piece, form
        self.tokens = tokenize(piece)
        self.read = 0

    def accepts(self, *words: str) -> bool:
        """Read words that stand here; False, with nothing read, where others do."""
        there = self.tokens[self.read : self.read + len(words)]
        if [self._word(token) for token in there] != list(words):
            return False
        self.read += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Read words; raises `ParseError` where others stand here."""
        if not self.accepts(*words):
            raise self.error()

    def name(self) -> str:
        """Read a name, which may stand in quotes."""
        token = self._next()
        word = self._word(token)
        is_word = word[:1].isalpha() or word[:1] == "_"
        if token.token_type is not TokenType.IDENTIFIER and not is_word:
            self.read -= 1
            raise self.error()
        return token.text

    def dotted_name(self) -> tuple[str, ...]:
        """Read a name with those of what it is in before it."""
        parts = [self.name()]
        while self.accepts("."):
            parts.append(self.name())
        return tuple(parts)

    def is_text(self) -> bool:
        """Whether a text in quotes stands here."""
        return self.read < len(self.tokens) and self._token().token_type is TokenType.STRING

    def text(self) -> str:
        """Read a text in quotes."""
        if not self.is_text():
            raise self.error()
        return self._next().text

    def next_token(self, kind: TokenType) -> Token:
        """Read a token of a kind."""
        if self.read >= len(self.tokens) or self._token().token_type is not kind:
            raise self.error()
        return self._next()

    def dropped(self) -> Dropped:
        """Read the rest of a DROP statement: [IF EXISTS] name [CASCADE | RESTRICT]."""
        exists, parts, place = self.accepts("IF", "EXISTS"), self.dotted_name(), self.place()
        how = next((word for word in ("CASCADE", "RESTRICT") if self.accepts(word)), "")
        self.end()
        return Dropped(parts, exists, how, place)

    def end(self) -> None:
        """Raise `ParseError` where the statement goes on."""
        if self.read < len(self.tokens):
            raise self.error()

    def error(self) -> ParseError:
        """Return the error for what stands here."""
        if self.read < len(self.tokens):
            token = self._token()
            start, end = self.piece.start + token.start, self.piece.start + token.end + 1
        else:
            start = end = self.piece.end
        return ParseError(f"Syntax error: the statement is written {self._form}.", Span(start, end))

    def place(self) -> Span:
        """Return the place of what was read last."""
        token = self.tokens[self.read - 1]
        return Span(self.piece.start + token.start, self.piece.start + token.end + 1)

    def _token(self) -> Token:
        return self.tokens[self.read]

    def _next(self) -> Token:
        if self.read >= len(self.tokens):
            raise self.error()
        self.read += 1
        return self.tokens[self.read - 1]

    @staticmethod
    def _word(token: Token) -> str:
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return ""
        return token.text.upper()


def give_named_place(error: FuselineError, text: str, number: int) -> None:
    """Give an error of a script's statement the place of the last name that it quotes, before what it proposes, if it has none.

    Catalogs and settings, which statements change, know names alone.
    """
    has_place = error.span is not None or error.text is not None
    if has_place or number < 0 or not isinstance(error, ProgrammingError):
        return
    piece = [*split(text)][number]
    tokens = {token.text.lower(): token for token in reversed(tokenize(piece))}
    for quoted in reversed(_QUOTED.findall(error.message.partition(" Did you mean")[0])):
        token = tokens.get((quoted[0] or quoted[1]).lower())
        if token is not None:
            error.at(Span(piece.start + token.start, piece.start + token.end + 1))
            return
