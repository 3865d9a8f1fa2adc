"""The rows of WITH RECURSIVE: a query's, and those that another makes of the rows of the round before, until there are no more."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from ...errors import ExecutionError, MemoryLimitError
from ...plan.arrow.arrow_arrays import array_from
from ...plan.changes.stand_in import Recursion, StandIn, filled
from ...plan.copies import replace_nodes, with_commons
from ...plan.logical import CatalogTable, Logical, Scan
from ...plan.types import DataType, to_arrow
from ...records import dataclass
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
        made = self._last_of_keys() if self._recursion.keys else self._made()
        rows = pa.concat_tables(made)
        return RecursiveTable(self._recursion, self._rounds, rows)

    def _made(self) -> Iterator[pa.Table]:
        """Give the rows of each round, the last of which has none."""
        known: set[tuple[Hashable, ...]] = set()
        size, rows = 0, self._first()
        for _ in range(self._rounds.settings().recursion_limit):
            rows = rows if self._recursion.all else _unknown(rows, known)
            yield rows
            if not rows.num_rows:
                return
            size += rows.nbytes
            self._check_bytes(size)
            rows = self._next({self._recursion.working: rows})
        raise self._too_many_rounds()

    def _last_of_keys(self) -> Iterator[pa.Table]:
        """Give the last row of each key when there are no more rows, or none that differs from that of its key."""
        recursion, held, rows = self._recursion, KeyedRows(self._recursion.keys), self._first()
        for _ in range(self._rounds.settings().recursion_limit):
            changed = held.put(rows)
            rows = rows if recursion.all else changed
            if not rows.num_rows:
                yield held.rows()
                return
            self._check_bytes(held.nbytes)
            given = {recursion.working: rows}
            if recursion.settled is not None:
                given[recursion.settled] = held.rows()
            rows = self._next(given)
        raise self._too_many_rounds()

    def _first(self) -> pa.Table:
        names = [name for name, _ in self._recursion.working.fields]
        return self._rounds.run(self._recursion.first).rename_columns(names)

    def _next(self, given: Mapping[StandIn, pa.Table]) -> pa.Table:
        """Return the rows of a round that reads these."""
        types = [kind for _, kind in self._recursion.working.fields]
        tables = {}
        for stand_in, rows in given.items():
            # A table and a plan of its own: what is kept with a plan may be of its tables' rows
            tables[stand_in] = MemoryTable(self._recursion.name, rows, types)
            tables[stand_in].identity = None
        rows = self._rounds.run(_filled(self._recursion.step, tables))
        return rows.rename_columns([name for name, _ in self._recursion.working.fields])

    def _check_bytes(self, size: int) -> None:
        most_bytes = self._rounds.settings().memory_limit
        if most_bytes is not None and size > most_bytes:
            raise MemoryLimitError(
                f'The rows of "{self._recursion.name}" take more than memory_limit, {most_bytes:,} bytes.',
                self._recursion.span,
            )

    def _too_many_rounds(self) -> ExecutionError:
        recursion, settings = self._recursion, self._rounds.settings()
        return ExecutionError(
            f'"{recursion.name}" did not end in {settings.recursion_limit:,} rounds: end it by a condition, or SET recursion_limit to more.',
            recursion.span,
        )


def _filled(plan: Logical, tables: Mapping[StandIn, CatalogTable]) -> Logical:
    """Fill a plan and the recursions that it reads, which may read the rows of this one."""

    def exchanged(node: Logical) -> Logical | None:
        if not (isinstance(node, Scan) and isinstance(node.table, RecursiveTable)):
            return None
        inner, rounds = node.table._recursion, node.table._rounds
        first, step = _filled(inner.first, tables), _filled(inner.step, tables)
        made = RecursiveTable(replace(inner, first=first, step=step), rounds)
        return replace(node, table=made)

    found = filled(plan, tables)
    return with_commons(found, lambda part: replace_nodes(part, exchanged))


class KeyedRows:
    """Rows of which the last of each key is kept."""

    def __init__(self, keys: Sequence[int]) -> None:
        self._keys = keys
        self._last: dict[tuple[Hashable, ...], tuple[int, tuple[Hashable, ...]]] = {}
        self._all: pa.Table | None = None

    @property
    def nbytes(self) -> int:
        return 0 if self._all is None else int(self._all.nbytes)

    def put(self, rows: pa.Table) -> pa.Table:
        """Add rows, and return those that are the last of their keys and differ from what was there before."""
        before = self.rows() if self._all is not None else rows.slice(0, 0)
        self._last = {key: (i, row) for i, (key, (_, row)) in enumerate(self._last.items())}
        new: dict[tuple[Hashable, ...], int] = {}
        given = list(zip(*(_values(c) for c in rows.columns), strict=True))
        for i, row in enumerate(given):
            new[tuple(row[k] for k in self._keys)] = i
        changed = [i for key, i in new.items() if (self._last.get(key) or (0, None))[1] != given[i]]
        self._last |= {key: (before.num_rows + i, given[i]) for key, i in new.items()}
        self._all = pa.concat_tables([before, rows])
        return rows.take(array_from(sorted(changed), pa.int64()))

    def rows(self) -> pa.Table:
        """Return the last row of each key."""
        assert self._all is not None, "put before"
        return self._all.take(array_from([i for i, _ in self._last.values()], pa.int64()))


def _no_rows(fields: Sequence[tuple[str, DataType]]) -> pa.Table:
    return pa.table({name: array_from([], to_arrow(kind)) for name, kind in fields})


def _unknown(rows: pa.Table, known: set[tuple[Hashable, ...]]) -> pa.Table:
    """Return the rows that were in no round before, each once; NULL equals NULL, and NaN equals NaN."""
    new = []
    for i, row in enumerate(zip(*(_values(c) for c in rows.columns), strict=True)):
        if row not in known:
            known.add(row)
            new.append(i)
    return rows if len(new) == rows.num_rows else rows.take(array_from(new, pa.int64()))


def _values(column: pa.ChunkedArray) -> Iterator[Hashable]:
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    for value in column:  # dates and moments as numbers, since Python has not all of them
        found = value.as_py()
        if isinstance(found, list | dict):
            yield repr(found)
        else:
            yield _NAN if isinstance(found, float) and math.isnan(found) else found
