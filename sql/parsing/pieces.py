"""The statements of a script, cut from its text, the words that they start with, and where a node of a tree stands in it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import Token, TokenType, exp

from fuseline.errors import Span, ViewText, check_text

from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator


def _parameter_places(tokens: list[Token]) -> dict[str, tuple[int, int]]:
    """Return where each parameter stands first, since sqlglot forgets it."""
    places: dict[str, tuple[int, int]] = {}
    for sign, name in itertools.pairwise(tokens):
        if sign.token_type in (TokenType.PARAMETER, TokenType.COLON):
            places.setdefault(name.text, (sign.start, name.end))
    return places


def give_places(nodes: Sequence[exp.Expr], shift: int, tokens: list[Token]) -> None:
    """Give every node the places of its first and last token; sqlglot keeps them on names and literals alone."""
    if any(isinstance(node, exp.Placeholder) for node in nodes):
        parameters = _parameter_places(tokens)
        for node in nodes:
            if isinstance(node, exp.Placeholder) and node.name in parameters:
                node.meta["start"], node.meta["end"] = parameters[node.name]
    for node in reversed(nodes):  # children come before their parents
        meta = node.meta
        if "start" in meta:
            _extend(meta, meta["start"] + shift, meta["end"] + shift + 1)
        if node.parent is not None and "first" in meta:
            _extend(node.parent.meta, meta["first"], meta["last"])


def _extend(meta: dict[str, int], first: int, last: int) -> None:
    if "first" not in meta or first < meta["first"]:
        meta["first"] = first
    if "last" not in meta or last > meta["last"]:
        meta["last"] = last


@dataclass(frozen=True, slots=True)
class Written:
    """An item as written, where it begins in its statement, and the number of the first `?` in it."""

    text: str
    start: int
    first_parameter: int


def written_as(sql: str, tokens: Sequence[Token]) -> Written:
    # Tokens of typed constants change places before they are parsed.
    start, end = min(t.start for t in tokens), max(t.end for t in tokens) + 1
    numbers = (
        int(number.text)
        for sign, number in itertools.pairwise(tokens)
        if sign.token_type is TokenType.PARAMETER and sql[sign.start] == "?"
    )
    text = sql[start:end]
    for token in reversed(tokens):
        if token.text == "//" and token.start == token.end:  # of a / that divides whole
            text = f"{text[: token.start - start]}/{text[token.start - start :]}"
    return Written(text, start, next(numbers, 1))


def written(item: exp.Expr) -> Written | None:
    """Return how an item of a SELECT list is written."""
    found = item.meta.get("written")
    return found if isinstance(found, Written) else None


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
STRINGS_AND_COMMENTS = r"\b[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$"
_PIECE = re.compile(STRINGS_AND_COMMENTS + "|;", re.DOTALL)


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
