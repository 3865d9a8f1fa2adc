"""The exceptions a user can meet, and how an error points into the SQL text.

Every error is one sentence that says what was wrong and, where there is one, the remedy.  An error that has a `Span`
shows the line of the query with a caret below the place once `with_text` has given it the text.  Errors of a query that
runs know values, not places: what evaluates an expression gives them its own (`at`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from .records import dataclass
from .redacted import redacted as redacted

TWO_ROWS = (
    "More than one row returned by a subquery used as an expression: "
    "add LIMIT 1 or an aggregate, so that it returns a single row."
)
TOO_DEEP = "The query is nested too deeply: write it in several statements, with tables in between."
MOST_CHARACTERS = 4000  # of a message: it may quote a name or path of megabytes
MOST_OF_A_VALUE = 200  # characters of an argument that is refused
MOST_SHOWN = 1000  # of a line of the query text
NAMES_SHOWN = 8  # in the error for an unknown one that no other is near to
LONGEST_VALUE = (1 << 31) - 1  # bytes of a text or BLOB, as Arrow addresses them
SURROGATE = re.compile("[\ud800-\udfff]")
_BRACKETS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[()]")
_DEPTH = {"(": 1, ")": -1}
_OPENING = re.compile(r"\(\s*$")


@dataclass(frozen=True, slots=True)
class ViewText:
    """The query of a view, or a text of another kind, as it was written."""

    name: str
    text: str
    kind: str = "view"


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` (exclusive) of the query text, or of the text of a view that it reads."""

    start: int
    end: int
    view: ViewText | None = None


class FuselineError(Exception):
    """What all errors of this package have in common; `message` is the sentence without the caret."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.message = printable(message)
        if len(self.message) > MOST_CHARACTERS:
            left_out = len(self.message) - MOST_CHARACTERS
            half = MOST_CHARACTERS // 2
            self.message = (
                f"{self.message[:half]}... ({left_out:,} characters) ...{self.message[-half:]}"
            )
        self.span = span
        self.text: str | None = None
        self.shown: str | None = None  # the message with its place, as a server has told it

    def at(self, span: Span | None) -> None:
        """Attach the place of what raised; the first that is known is the innermost, and stays."""
        if self.span is None and self.text is None:
            self.span = span

    def with_text(self, text: str | None) -> Self:
        """Attach the query text, or the view's that holds the place, unless a nested query has attached its own already."""
        if self.text is None:
            view = None if self.span is None else self.span.view
            if view is not None:
                text = view.text
                self.message += f' (in the {view.kind} "{view.name}")'
            self.text = None if text is None else redacted(text)
            if text is not None and self.span is not None:
                self.span = self._place(text, self.span)
        return self

    def with_whole_text(self, text: str, start: int) -> None:
        """Show the place in a text, where it is in the part from `start` on that was asked by itself."""
        span = self.span
        if span is not None and span.view is None and self.text == redacted(text[start:]):
            self.span, self.text = Span(span.start + start, span.end + start), redacted(text)

    def _place(self, text: str, span: Span) -> Span:
        return balanced(text, span)

    def __str__(self) -> str:
        if self.shown is not None:
            return self.shown
        if self.text is None or self.span is None:
            return self.message
        return f"{self.message}\n{caret(printable(self.text), self.span)}"


class InterfaceError(FuselineError):
    """The Python interface was used wrongly, not the database behind it."""


class DatabaseError(FuselineError):
    """What errors of the database have in common, in the classes of the Python database interface (PEP 249)."""


class DataError(DatabaseError):
    """A value that cannot be processed."""


class OperationalError(DatabaseError):
    """What is not in the hand of who wrote the query: files, memory, devices, an interrupt."""


class IntegrityError(DatabaseError):
    """A change that a constraint forbids."""


class ProgrammingError(DatabaseError):
    """A query that is wrong: its syntax, its names, its types."""


class NotSupportedError(DatabaseError):
    """What is valid and not available here."""


class ParseError(ProgrammingError):
    """The text is not SQL of this dialect; its place is a token."""

    def _place(self, text: str, span: Span) -> Span:
        return span


class BinderError(ProgrammingError):
    """A query whose columns, types and clauses do not fit together."""


class CatalogError(ProgrammingError):
    """A table or view that exists already, or a statement that does not fit the object it names."""


class UnknownName(CatalogError):
    """A table, column, function, type or setting that does not exist; the nearest names are in the message."""


class UnknownColumn(UnknownName, BinderError):
    """A column, or a field of a struct, that does not exist."""


class UnknownAttribute(UnknownName, AttributeError):
    """An attribute that an object of this package does not have; Python's `hasattr` hears it."""


class AmbiguousName(BinderError):
    """A column name that more than one table in scope has."""


class TypeMismatch(BinderError):
    """An operator or function that does not take these types."""


class WrongArguments(TypeMismatch, TypeError):
    """A call with arguments of another number, name or Python type than the method takes."""


class InvalidQuery(BinderError):
    """SQL that parses and has no meaning: an aggregate in WHERE, an ungrouped column, a wrong number of columns."""


class Unsupported(NotSupportedError):
    """Valid SQL that this version refuses while planning, with the reason."""


class ConversionError(DataError):
    """A value that a cast cannot represent in its target type."""


class OutOfRange(DataError):
    """A sum, product or other result that its type cannot hold."""


class ExecutionError(DataError):
    """A query that failed on its data: a scalar subquery with two rows, a parameter without a value."""


class SequenceError(ExecutionError):
    """A sequence that has no further value, or has given none yet."""


class ConstraintError(IntegrityError):
    """Rows that break a rule of their table: NOT NULL, CHECK, PRIMARY KEY or UNIQUE; the table stays as it was."""


class TransactionError(OperationalError):
    """BEGIN inside of a transaction, COMMIT or ROLLBACK outside of one, or a change in one that only reads."""


class FileError(OperationalError):
    """A file that is missing, empty, corrupt or of another schema than its siblings; the file is named."""


class AccessDenied(OperationalError):
    """A path that the settings do not let a query open, whether there is a file or not."""


class DeviceError(OperationalError):
    """A GPU was asked for and none can be used; the missing extra or driver is named."""


class ClusterError(OperationalError):
    """A cluster that cannot be used, or a worker that was lost; the address and the remedy are named."""


class MemoryLimitError(OperationalError):
    """A query that needs more memory than the device or the limit allows; bytes and setting are named."""

    def advise_parts(self) -> None:
        """Say how an answer can be read that is too large as a whole."""
        self.message += (
            " An answer of any size comes a part at a time: from to_batches(), by `for row in frame`, "
            "or from execute(...).fetchmany(n)."
        )


class Interrupted(OperationalError):
    """A query that `Connection.interrupt()` stopped, or its `statement_timeout`; Ctrl-C raises `KeyboardInterrupt`."""


class ConnectionClosed(InterfaceError):
    """A call on a connection after `close()`."""


class NoRows(InterfaceError):
    """Rows were asked for where there are none to come: of a closed cursor, or of a statement that gives none."""


class NotByRows(InterfaceError):
    """Rows of values for a statement that takes one set of them: to be run once for each."""

    def __init__(self) -> None:
        super().__init__("This statement takes one set of values: run it once for each.")


class InternalError(DatabaseError):
    """A fault of this package: an exception that nobody foresaw, which is the `__cause__`; to be reported."""


def printable(text: str) -> str:
    """Return a text with a replacement character for each lone surrogate, which no output can encode."""
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


def shown(value: object) -> str:
    """Return a value of a user's as a message quotes it, whatever its `__repr__` does."""
    try:
        text = repr(value)
    except Exception as error:  # an object's own, or int's for thousands of digits
        return f"a value of the type {type(value).__name__} that cannot be shown ({type(error).__name__})"
    return text if len(text) <= MOST_OF_A_VALUE else f"{text[:MOST_OF_A_VALUE]}..."


def check_text(text: str, what: str, starts: int | None = None) -> None:
    """Raise `InvalidQuery` for a text with a lone surrogate, which is no character; `starts` is where it begins in the query."""
    found = None if text.isascii() else SURROGATE.search(text)
    if found is not None:
        span = None if starts is None else Span(starts + found.start(), starts + found.end())
        raise InvalidQuery(
            f"{what} has at place {found.start() + 1} the lone surrogate U+{ord(found.group()):X}, which is no character: "
            "decode bytes in the encoding that they are in.",
            span,
        )


def check_value(value: object, span: Span | None) -> None:
    """Raise `OutOfRange` for a text or BLOB that no column holds, before there is a second copy of it, and what `check_text` does."""
    if not isinstance(value, str | bytes):
        return
    if 4 * len(value) > LONGEST_VALUE:
        size = len(value)
        if isinstance(value, str) and not value.isascii():
            size = len(value.encode(errors="replace"))
        if size > LONGEST_VALUE:
            raise OutOfRange(
                f"A value of {size:,} bytes is larger than {LONGEST_VALUE:,}: pass it in several parts.",
                span,
            )
    if isinstance(value, str):
        check_text(value, "A text")


def check_name(name: object, whose: str) -> None:
    """Raise `InvalidQuery` for a name that is no text, or empty."""
    if not isinstance(name, str) or not name:
        raise InvalidQuery(f"A {whose}'s name is a str that is not empty, not {shown(name)}.")
    check_text(name, f"A {whose}'s name")


def install(extra: str) -> str:
    """Return the command that installs an extra, also from a clone."""
    return f"pip install 'fuseline[{extra}]' (in a clone '.[{extra}]')"


def caret(text: str, span: Span) -> str:
    """Return the line of `text` that holds `span`, with carets below the place."""
    start = min(span.start, len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    number = text.count("\n", 0, start) + 1
    prefix = f"LINE {number}: "
    end = min(span.end, line_end)
    if line_end - line_start > MOST_SHOWN:  # the part around the place
        line_start = max(line_start, start - MOST_SHOWN // 2)
        line_end = min(line_end, line_start + MOST_SHOWN)
    width = max(1, min(end, line_end) - start)
    padding = "".join("\t" if c == "\t" else " " for c in text[line_start:start])
    return f"{prefix}{text[line_start:line_end]}\n{' ' * len(prefix)}{padding}{'^' * width}"


def balanced(text: str, span: Span) -> Span:
    """Extend `span` to the parentheses that close or open those of its part of the text: `f(a` -> `f(a, 'b')`."""
    depth = lowest = 0
    for found in _BRACKETS.finditer(text, span.start, span.end):
        depth += _DEPTH.get(found.group(), 0)
        lowest = min(lowest, depth)
    start, end, still_open = span.start, span.end, depth - lowest
    for found in _BRACKETS.finditer(text, span.end) if still_open else ():
        still_open += _DEPTH.get(found.group(), 0)
        if not still_open:
            end = found.end()
            break
    for _ in range(-lowest):
        opening = _OPENING.search(text, 0, start)
        if opening is None:
            break
        start = opening.start()
    return Span(start, end, span.view)


class Located:
    """Gives errors from inside the place of what raises them."""

    __slots__ = ("_span",)

    def __init__(self, span: Span | None) -> None:
        self._span = span

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FuselineError):
            error.at(self._span)


@contextmanager
def in_text(text: str | None) -> Iterator[None]:
    """Give errors from inside the text that their places are in."""
    try:
        yield
    except FuselineError as error:
        error.with_text(text)
        raise


def nearest(name: object, candidates: Iterable[str], count: int = 3) -> str:
    """Return ' Did you mean "a" or "b"?' for the candidates closest to `name`, or an empty string."""
    if not isinstance(name, str):
        return ""
    folded = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), folded, n=count, cutoff=0.5)
    if not close:
        return ""
    return " Did you mean " + " or ".join(f'"{folded[c]}"' for c in close) + "?"


def suggestion(name: str, known: Sequence[str]) -> str:
    """Return the nearest of the known names, or where none is near some of them."""
    names = list(dict.fromkeys(known))
    near = nearest(name, names)
    if near or not names:
        return near
    shown = ", ".join(f'"{n}"' for n in names[:NAMES_SHOWN])
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f" There {'is' if len(names) == 1 else 'are'} {shown}{more}."
