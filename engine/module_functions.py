"""The connection of a process for first steps, and its methods as functions of the module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .connection import Connection, connect
from .connection_files import Path
from .fence import fenced
from .plan_cache import Parameters
from .threads.fork_locks import new_lock

if TYPE_CHECKING:
    from .frame.cursor import Cursor
    from .frame.frame import Frame

_lock = new_lock()
_opened: list[Connection] = []


@fenced
def default_connection() -> Connection:
    """Return the connection of this process, opened when it is first asked for: with the settings of the environment."""
    with _lock:
        if not _opened or _opened[0].is_closed:
            _opened[:] = [connect()]
        return _opened[0]


@fenced
def query(text: str, params: Parameters = None) -> Frame:
    """Run all statements of a text but the last on the default connection, and return that one as a Frame."""
    return default_connection().sql(text, params)


@fenced
def execute(text: str, params: Parameters = None) -> Cursor:
    """Run all statements of a text on the default connection and return a cursor over the rows of the last."""
    return default_connection().execute(text, params)


@fenced
def executemany(text: str, params: Iterable[Parameters]) -> Cursor:
    """Run a statement that gives no rows for each set of parameters."""
    return default_connection().executemany(text, params)


@fenced
def read_parquet(path: Path | Iterable[Path], name: str | None = None, **options: object) -> Frame:
    """Return the table of a file, a list of files, a glob or a directory, in the default connection."""
    return default_connection().read_parquet(path, name, **options)


@fenced
def read_csv(path: Path | Iterable[Path], name: str | None = None, **options: object) -> Frame:
    """Return the table of CSV files, in the default connection."""
    return default_connection().read_csv(path, name, **options)


@fenced
def read_json(path: Path | Iterable[Path], name: str | None = None, **options: object) -> Frame:
    """Return the table of JSON files, in the default connection."""
    return default_connection().read_json(path, name, **options)


@fenced
def read_ipc(path: Path | Iterable[Path], name: str | None = None, **options: object) -> Frame:
    """Return the table of Arrow IPC or Feather files, in the default connection."""
    return default_connection().read_ipc(path, name, **options)


@fenced
def from_df(source: object) -> Frame:
    """Return a table of another library as a Frame of the default connection."""
    return default_connection().from_df(source)


@fenced
def from_arrow(source: object) -> Frame:
    """Return an Arrow table, batch, reader or dataset as a Frame of the default connection."""
    return default_connection().from_arrow(source)


@fenced
def register(name: str, source: object) -> Frame:
    """Make a table of another library usable in SQL of the default connection; returns it as a Frame."""
    return default_connection().register(name, source)


@fenced
def table(name: str) -> Frame:
    """Return a table or view of the default connection."""
    return default_connection().table(name)
