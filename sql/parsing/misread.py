"""What DuckDB's grammar does not take of a statement, as an error for whoever wrote it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token

from fuseline.errors import ParseError, Span
from fuseline.sql.grammar.recognize import complaint, unknown_sign, unrecognized

from .pieces import Piece
from .unread import Misread


def misread_in(tokens: Sequence[Token], piece: Piece) -> Misread | None:
    """Return the error for the first token that sqlglot takes and DuckDB's grammar does not, if there is one."""
    if unrecognized(tokens) is None:
        sign = unknown_sign(tokens)
        if sign is None:
            return None
        place = Span(piece.start + sign[1], piece.start + sign[1] + len(sign[0]))
        message = f'There is no operator "{sign[0]}": signs without a blank between them are one operator.'
        return Misread(ParseError(message, place), certain=True)
    found = complaint(tokens)
    at_end = found.place == len(tokens)
    token = tokens[min(found.place, len(tokens) - 1)]
    place = Span(piece.start + token.start, piece.start + token.end + 1)
    where = f'at or near "{piece.text[place.start : place.end]}"'
    expected = f": expected {found.expected}" if found.expected else ""
    message = f"Syntax error {'at the end of the statement' if at_end else where}{expected}."
    error = ParseError(" ".join(filter(None, [message, found.mistake])), place)
    return Misread(error, found.certain)
