"""The names that the Python database interface (PEP 249) asks a module for, beside those of its errors."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time
from typing import TYPE_CHECKING

from . import errors
from .errors import FuselineError, Unsupported
from .fence import fenced

if TYPE_CHECKING:
    from threading import local

    from .catalog import Catalog
    from .connection import Connection
    from .frame.cursor import Cursor
    from .plan_cache import Parameters

apilevel = "2.0"
threadsafety = 2  # threads may share the module and connections
paramstyle = "qmark"  # $1 and $name as well

Error = FuselineError
Date, Time, Timestamp, Binary = date, time, datetime, bytes


class Warning(UserWarning):
    """What is worth knowing of an answer, and no error."""


def DateFromTicks(ticks: float) -> date:  # noqa: N802
    """Return the local date of so many seconds after the epoch."""
    return date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> time:  # noqa: N802
    """Return the local time of the day of so many seconds after the epoch."""
    return datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802
    """Return the local date and time of so many seconds after the epoch."""
    return datetime.fromtimestamp(ticks)


class TypeGroup:
    """Equals the type codes in a cursor's description that are of one kind; DECIMAL(9,2) is a DECIMAL."""

    def __init__(self, types: Iterable[str]) -> None:
        self._types = frozenset(types)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeGroup):
            return self._types == other._types
        return isinstance(other, str) and other.split("(")[0] in self._types

    def __hash__(self) -> int:
        return hash(self._types)


STRING = TypeGroup(["VARCHAR"])
BINARY = TypeGroup(["BLOB"])
_INTEGERS = "TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT"
NUMBER = TypeGroup([*_INTEGERS.split(), "DECIMAL", "FLOAT", "DOUBLE"])
DATETIME = TypeGroup(["DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL"])
ROWID = TypeGroup([])  # no column has row numbers


class HasErrors:
    """The errors as attributes, for code that is given nothing but a connection, and where a cursor has what it may look for here."""

    Warning = Warning
    Error = Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Return what a cursor has, of that of this thread's last `execute`, as DuckDB's connections are cursors too; raise for other names."""
            from .frame.api_hints import missing
            from .frame.cursor import Cursor

            if name.startswith("_") or not hasattr(Cursor, name):
                raise missing(type(self), name)
            return getattr(getattr(self._executed, "cursor", None) or self.cursor(), name)


@fenced
class RunsStatements:
    """The methods of a connection that run statements, and begin and end transactions."""

    if TYPE_CHECKING:  # what a connection has
        catalog: Catalog
        _executed: local

        def _check_open(self) -> None: ...

    def cursor(self) -> Cursor:
        """Return a cursor, which runs statements and has the rows of its last one (PEP 249)."""
        from .frame.cursor import Cursor

        self._check_open()
        return Cursor(self)  # type: ignore[arg-type]

    def execute(self, text: str, params: Parameters = None) -> Cursor:
        """Run all statements of a text and return a cursor over the rows of the last, which the connection's fetchall(), df() and the like read too."""
        self._executed.cursor = None  # whose rows need no room any more
        self._executed.cursor = cursor = self.cursor().execute(text, params)
        return cursor

    def executemany(self, text: str, params: Iterable[Parameters]) -> Cursor:
        """Run a statement that gives no rows for each set of parameters; INSERT ... VALUES stores them all at once."""
        return self.cursor().executemany(text, params)

    def begin(self) -> Connection:
        """Begin a transaction, as BEGIN does; without one each statement is committed as it ends."""
        self.execute("BEGIN")
        return self  # type: ignore[return-value]

    def commit(self) -> Connection:
        """Keep what was changed since `begin`; without a transaction everything is kept already."""
        self._check_open()
        if self.catalog.in_transaction:
            self.execute("COMMIT")
        return self  # type: ignore[return-value]

    def rollback(self) -> Connection:
        """Undo what was changed since `begin`; raises `Unsupported` without a transaction, when nothing can be undone."""
        self._check_open()
        if not self.catalog.in_transaction:
            raise Unsupported(
                "There is nothing to roll back: each statement is committed as it ends. Call begin() first, or write BEGIN."
            )
        self.execute("ROLLBACK")
        return self  # type: ignore[return-value]
