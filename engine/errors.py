"""The exceptions a user can meet, and how an error points into the SQL text.

Every error is one sentence that says what was wrong and, where there is one, the remedy.  An error that has a `Span`
shows the line of the query with a caret below the place once `with_text` has given it the text.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` (exclusive) of the query text."""

    start: int
    end: int


class FuselineError(Exception):
    """What all errors of this package have in common; `message` is the sentence without the caret."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.text: str | None = None

    def with_text(self, text: str) -> Self:
        """Attach the query text, unless a nested query has attached its own already."""
        if self.text is None:
            self.text = text
        return self

    def __str__(self) -> str:
        if self.text is None or self.span is None:
            return self.message
        return f"{self.message}\n{caret(self.text, self.span)}"


class ParseError(FuselineError):
    """The text is not SQL of this dialect."""


class UnknownName(FuselineError):
    """A table, column, function, type or setting that does not exist; the nearest names are in the message."""


class AmbiguousName(FuselineError):
    """A column name that more than one table in scope has."""


class TypeMismatch(FuselineError):
    """An operator or function that does not take these types."""


class InvalidQuery(FuselineError):
    """SQL that parses and has no meaning: an aggregate in WHERE, an ungrouped column, a wrong number of columns."""


class Unsupported(FuselineError):
    """Valid SQL that this version refuses while planning, with the reason."""


class ConversionError(FuselineError):
    """A value that a cast cannot represent in its target type."""


class OutOfRange(FuselineError):
    """A sum, product or other result that its type cannot hold."""


class ExecutionError(FuselineError):
    """A query that failed on its data: a scalar subquery with two rows, a parameter without a value."""


class CatalogError(FuselineError):
    """A table or view that exists already, or a statement that does not fit the object it names."""


class DataError(FuselineError):
    """A file that is missing, empty, corrupt or of another schema than its siblings; the file is named."""


class DeviceError(FuselineError):
    """A GPU was asked for and none can be used; the missing extra or driver is named."""


class MemoryLimitError(FuselineError):
    """A query that needs more memory than the device or the limit allows; bytes and setting are named."""


class ConnectionClosed(FuselineError):
    """A call on a connection after `close()`."""


def caret(text: str, span: Span) -> str:
    """Return the line of `text` that holds `span`, with carets below the place."""
    start = min(span.start, len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    number = text.count("\n", 0, start) + 1
    prefix = f"LINE {number}: "
    width = max(1, min(span.end, line_end) - start)
    padding = "".join("\t" if c == "\t" else " " for c in text[line_start:start])
    return f"{prefix}{text[line_start:line_end]}\n{' ' * len(prefix)}{padding}{'^' * width}"


def nearest(name: str, candidates: Iterable[str], count: int = 3) -> str:
    """Return ' Did you mean "a" or "b"?' for the candidates closest to `name`, or an empty string."""
    folded = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), folded, n=count, cutoff=0.5)
    if not close:
        return ""
    return " Did you mean " + " or ".join(f'"{folded[c]}"' for c in close) + "?"
