"""The statements of a script, cut from its text, and the words that they start with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fuseline.errors import Span, check_text

_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_WORD = re.compile(_BLANK + r"([a-z_]+)", re.IGNORECASE | re.DOTALL)
_EXPLAIN = re.compile(_BLANK + rf"explain\b(?:{_BLANK}(analyze)\b)?", re.IGNORECASE | re.DOTALL)
_PIECE = re.compile(
    r"\b[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|;",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start` to `end` of `text`: one statement of a script, or what follows EXPLAIN in it."""

    text: str
    start: int
    end: int

    @property
    def sql(self) -> str:
        return self.text[self.start : self.end]


def split(text: str) -> Iterator[Piece]:
    """Yield the statements of a script, without the semicolons between them and without empty ones."""
    check_text(text, "The query", 0)
    start = 0
    pieces = _PIECE.finditer(text) if ";" in text else ()
    cuts = [m.start() for m in pieces if m.group() == ";"]
    for end in (*cuts, len(text)):
        if re.fullmatch(_BLANK, text[start:end], re.DOTALL) is None:
            yield Piece(text, start, end)
        start = end + 1


def first_word(piece: Piece) -> str:
    """Return the first word of a statement in upper case, empty when it starts with something else."""
    found = _WORD.match(piece.sql)
    return found.group(1).upper() if found else ""


def split_explain(piece: Piece) -> tuple[Piece, bool]:
    """Return what follows EXPLAIN [ANALYZE], and whether ANALYZE was there."""
    found = _EXPLAIN.match(piece.sql)
    assert found is not None, "only called for a statement that starts with EXPLAIN"
    return Piece(piece.text, piece.start + found.end(), piece.end), found.group(1) is not None


def unterminated(piece: Piece) -> Span | None:
    """Return the place of the quote or comment that does not end."""
    rest = _PIECE.sub(lambda m: " " * len(m.group()), piece.sql)
    found = re.search(r"['\"]|/\*|\$\w*\$", rest)
    return None if found is None else Span(piece.start + found.start(), piece.end)
