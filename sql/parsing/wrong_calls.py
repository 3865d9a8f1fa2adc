"""What sqlglot's parser says of a text that DuckDB's grammar takes: of a call with the wrong number of arguments, or of syntax."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence

import sqlglot.errors
from sqlglot import Token, TokenType

from fuseline.errors import ParseError, Span

from .pieces import Piece

_NAME = re.compile(r"[a-z_]\w*", re.IGNORECASE)
_MOST_ARGUMENTS = re.compile(r"supported arguments \((\d+)\)|Expected at most (\d+) arguments")


def wrong_arguments(description: str, tokens: Sequence[Token]) -> tuple[Token, str] | None:
    """Return the name of a function and what is wrong with the number of its arguments; `tokens` end with the parenthesis behind these."""
    if tokens[-1].token_type is not TokenType.R_PAREN:
        return None
    name, depth = None, 0
    for before, token in zip(tokens[-2::-1], tokens[:0:-1], strict=True):
        depth += (token.token_type is TokenType.R_PAREN) - (token.token_type is TokenType.L_PAREN)
        if depth == 0:
            name = before
            break
    if name is None or not _NAME.fullmatch(name.text):
        return None
    found = _MOST_ARGUMENTS.search(description)
    if found:
        most = int(found[1] or found[2])
        return name, f"takes at most {most} argument{'' if most == 1 else 's'}"
    if description.startswith("Required"):
        is_bare = tokens[-2].token_type is TokenType.L_PAREN
        return name, "needs arguments" if is_bare else "needs more arguments"
    return None


def parse_error(error: sqlglot.errors.ParseError, tokens: list[Token], piece: Piece) -> ParseError:
    """Return the error of a text that DuckDB's grammar takes and sqlglot's parser does not."""
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    token = next((t for t in tokens if (t.line, t.col) == (line, column)), None)
    if token is None:
        return ParseError("This syntax is not supported.", Span(piece.start, piece.end))
    span = Span(piece.start + token.start, piece.start + token.end + 1)
    given = wrong_arguments(str(details.get("description", "")), tokens[: tokens.index(token) + 1])
    if given is not None:
        name, said = given
        return ParseError(f"{name.text}() {said}.", Span(piece.start + name.start, span.end))
    shown = piece.text[span.start : span.end]
    return ParseError(f'The syntax at or near "{shown}" is not supported.', span)


def is_of_sqlglot(error: BaseException) -> bool:
    """Whether an error was raised in sqlglot, and not in what it calls of ours, where it is a fault."""
    last = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        last = frame
    return last is not None and str(last.f_globals.get("__name__")).startswith("sqlglot.")
