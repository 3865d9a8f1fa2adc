"""The rows of WITH RECURSIVE: a query's, and those that another makes of the rows of the round before, until there are no more."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...errors import ExecutionError, MemoryLimitError
from ...plan.changes.recursion import Recursion
from ...plan.changes.stand_in import filled
from ...plan.logical import Logical
from ...plan.types import DataType, to_arrow
from ...settings import Settings
from .memory_table import MemoryTable

_NAN = object()


@dataclass(frozen=True)
class Rounds:
    """How a connection runs the rounds: what gives the rows of a plan, and the settings that limit rounds and bytes."""

    run: Callable[[Logical], pa.Table]
    settings: Callable[[], Settings]


class RecursiveTable(MemoryTable):
    """A table whose rows are worked out whenever a query of it runs; a plan is bound to one without any."""

    def __init__(self, recursion: Recursion, rounds: Rounds, rows: pa.Table | None = None) -> None:
        fields = recursion.working.fields
        rows = _no_rows(fields) if rows is None else rows
        super().__init__(recursion.name, rows, [kind for _, kind in fields])
        self.identity = None
        self._recursion = recursion
        self._rounds = rounds

    def is_current(self) -> bool:
        return False

    def reopened(self) -> RecursiveTable:
        """Return the table with its rows; raises `ExecutionError` after too many rounds, `MemoryLimitError` for too many rows."""
        rows = pa.concat_tables(self._made())
        return RecursiveTable(self._recursion, self._rounds, rows)

    def _made(self) -> Iterator[pa.Table]:
        recursion, rounds = self._recursion, self._rounds
        names = [name for name, _ in recursion.working.fields]
        types = [kind for _, kind in recursion.working.fields]
        known: set[tuple[Hashable, ...]] = set()
        size, settings = 0, rounds.settings()
        most_bytes = settings.memory_limit
        rows = rounds.run(recursion.first).rename_columns(names)
        for _ in range(settings.recursion_limit):
            rows = rows if recursion.all else _unknown(rows, known)
            yield rows
            if not rows.num_rows:
                return
            size += rows.nbytes
            if most_bytes is not None and size > most_bytes:
                raise MemoryLimitError(
                    f'The rows of "{recursion.name}" take more than memory_limit, {most_bytes:,} bytes.',
                    recursion.span,
                )
            # A table and a plan of its own: what is kept with a plan may be of its tables' rows
            working = MemoryTable(recursion.name, rows, types)
            working.identity = None
            rows = rounds.run(filled(recursion.step, {recursion.working: working}))
            rows = rows.rename_columns(names)
        raise ExecutionError(
            f'"{recursion.name}" did not end in {settings.recursion_limit:,} rounds: end it by a condition, or SET recursion_limit to more.',
            recursion.span,
        )


def _no_rows(fields: Sequence[tuple[str, DataType]]) -> pa.Table:
    return pa.table({name: pa.array([], to_arrow(kind)) for name, kind in fields})


def _unknown(rows: pa.Table, known: set[tuple[Hashable, ...]]) -> pa.Table:
    """Return the rows that were in no round before, each once; NULL equals NULL, and NaN equals NaN."""
    new = []
    for i, row in enumerate(zip(*(_values(c) for c in rows.columns), strict=True)):
        if row not in known:
            known.add(row)
            new.append(i)
    return rows if len(new) == rows.num_rows else rows.take(pa.array(new, pa.int64()))


def _values(column: Iterable[pa.Scalar]) -> Iterator[Hashable]:
    for value in column:
        found = value.as_py()
        if isinstance(found, list | dict):
            yield repr(found)
        else:
            yield _NAN if isinstance(found, float) and math.isnan(found) else found
