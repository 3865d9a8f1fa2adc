"""EXPLAIN ANALYZE of a statement that writes: it is carried out over a connection that keeps what its queries did."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from ..observe.explain import analyzed
from ..storage.tables.memory_table import MemoryTable

if TYPE_CHECKING:
    from ..answers import Answer
    from ..connection import Connection
    from ..observe.profile import Profile
    from ..plan.logical import Logical
    from ..plan.statements import Statement
    from ..reading import Reading
    from ..runtime.run import Result


class WatchedConnection:
    """A connection whose queries leave their profiles, in the order in which they began."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.profiles: list[Callable[[], Profile]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def run(self, plan: Logical, key: object = None, timed: bool = True) -> Result:
        result = self._connection.run(plan, key, timed=True)
        self.profiles.append(lambda: result.profile)
        return result

    def stream(self, plan: Logical, key: object = None) -> Reading:
        reading = self._connection.stream(plan, key)
        self.profiles.append(reading.profile)
        return reading

    def kept(self, name: str, plan: Logical, columns: Sequence[str]) -> MemoryTable:
        rows = self.run(plan).to_arrow()
        named = rows.rename_columns(list(columns)) if columns else rows
        return MemoryTable(name, named, [c.type for c in plan.columns])


def analyzed_write(
    connection: Connection,
    statement: Statement,
    carry_out: Callable[[Connection, Statement], Answer],
) -> str:
    """Carry out a statement; return how many rows it wrote, and what the query of its rows and those that look at keys and constraints did."""
    start, watched = time.perf_counter(), WatchedConnection(connection)
    answer = carry_out(cast("Connection", watched), statement)
    rows = answer.table.num_rows if answer.written is None else answer.written
    spent = (time.perf_counter() - start) * 1e3
    said = f"{type(statement).__name__}: {rows:,d} rows, {spent:.2f} ms in all; its queries:"
    return "\n\n".join([said, *(analyzed(profile()) for profile in watched.profiles)])
