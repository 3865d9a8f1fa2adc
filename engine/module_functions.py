"""The connection of a process for first steps, and its methods as functions of the module."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from .connection import Connection, connect
from .fence import fenced
from .frame.cursor import Cursor
from .threads.fork_locks import new_lock

Owner = TypeVar("Owner")
Taken = ParamSpec("Taken")
T = TypeVar("T")

_lock = new_lock()
_opened: list[Connection] = []


@fenced
def default_connection() -> Connection:
    """Return the connection of this process, opened when it is first asked for: with the settings of the environment."""
    with _lock:
        if not _opened or _opened[0].is_closed:
            _opened[:] = [connect()]
        return _opened[0]


def of_default(method: Callable[Concatenate[Owner, Taken], T]) -> Callable[Taken, T]:
    """Return a method of a connection, or of the cursor of its last `execute`, as a function on the default connection."""

    @wraps(method)
    def call(*args: Taken.args, **kwargs: Taken.kwargs) -> T:
        found: T = getattr(default_connection(), method.__name__)(*args, **kwargs)
        return found

    signature = inspect.signature(method)
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values()][1:]
    )
    return fenced(call)


begin = of_default(Connection.begin)
close = of_default(Connection.close)
commit = of_default(Connection.commit)
cursor = of_default(Connection.cursor)
execute = of_default(Connection.execute)
executemany = of_default(Connection.executemany)
fetchall = of_default(Cursor.fetchall)
fetchdf = of_default(Cursor.fetchdf)
fetchmany = of_default(Cursor.fetchmany)
fetchnumpy = of_default(Cursor.fetchnumpy)
fetchone = of_default(Cursor.fetchone)
from_arrow = of_default(Connection.from_arrow)
from_df = of_default(Connection.from_df)
interrupt = of_default(Connection.interrupt)
query = of_default(Connection.sql)
# An option could be called self, says mypy
read_csv = of_default(Connection.read_csv)  # type: ignore[arg-type]
read_ipc = of_default(Connection.read_ipc)  # type: ignore[arg-type]
read_json = of_default(Connection.read_json)  # type: ignore[arg-type]
read_parquet = of_default(Connection.read_parquet)  # type: ignore[arg-type]
register = of_default(Connection.register)
rollback = of_default(Connection.rollback)
table = of_default(Connection.table)
unregister = of_default(Connection.unregister)
view = of_default(Connection.view)
