"""The statements of a script, cut from its text, the words that they start with, and where a node of a tree stands in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fuseline.errors import Span, ViewText, check_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp


def span_of(node: exp.Expr | None) -> Span | None:
    """Return the characters from the first to the last name or literal of `node`, as `parse` noted them."""
    if node is None:
        return None
    meta = node.meta
    return Span(meta["first"], meta["last"], meta.get("view")) if "first" in meta else None


def mark(tree: exp.Expr, view: ViewText) -> None:
    """Note that the places of a tree are in the text of a view."""
    for node in tree.walk():
        node.meta["view"] = view


_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_WORD = re.compile(_BLANK + r"([a-z_]+)", re.IGNORECASE | re.DOTALL)
_SHAPE = r"format\s+'?text'?"
_ASKED = rf"(?P<asked>(?:analyze|{_SHAPE})(?:\s*,\s*(?:analyze|{_SHAPE}))*)"
_EXPLAIN = re.compile(
    _BLANK + rf"explain\b(?:{_BLANK}(?:(?P<analyze>analyze)\b|\(\s*{_ASKED}\s*\)))?",
    re.IGNORECASE | re.DOTALL,
)
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


def explained_text(text: str) -> tuple[str, bool] | None:
    """Return the text behind EXPLAIN, as it would be asked alone, and whether ANALYZE was there; None for a text that is not one EXPLAIN."""
    if _EXPLAIN.match(text) is None:
        return None
    rest, analyze = split_explain(Piece(text, 0, len(text)))
    asked = rest.sql[1:] if rest.sql[:1].isspace() else rest.sql
    return (asked, analyze) if len([*split(asked)]) == 1 else None


def split_explain(piece: Piece) -> tuple[Piece, bool]:
    """Return what follows EXPLAIN [ANALYZE] or EXPLAIN (ANALYZE, FORMAT text), and whether ANALYZE was there."""
    found = _EXPLAIN.match(piece.sql)
    assert found is not None, "only called for a statement that starts with EXPLAIN"
    asked = (found["asked"] or found["analyze"] or "").lower()
    return Piece(piece.text, piece.start + found.end(), piece.end), "analyze" in asked


def unterminated(piece: Piece) -> Span | None:
    """Return the place of the quote or comment that does not end."""
    rest = _PIECE.sub(lambda m: " " * len(m.group()), piece.sql)
    found = re.search(r"['\"]|/\*|\$\w*\$", rest)
    return None if found is None else Span(piece.start + found.start(), piece.end)
