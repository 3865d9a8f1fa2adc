"""Rows of a result the way the Python database interface (PEP 249) gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import index
from typing import TYPE_CHECKING, Any

from . import stopping
from .errors import ExecutionError, WrongArguments, shown
from .fence import fenced
from .plan.types import DataType
from .python_values import fetched_values

if TYPE_CHECKING:
    import pyarrow as pa

# name, type code, display size, internal size, precision, scale, null ok
Description = tuple[str, str, None, None, int | None, int | None, bool]

ROWS_AT_A_TIME = 10_000  # at most, turned into Python objects together
VALUES_AT_A_TIME = 50_000  # some 20 ms


@fenced
class Cursor:
    """The result of one `Connection.execute`, read forward.

    `rowcount` is the number of rows of a query, or of those that INSERT or CREATE TABLE AS wrote.
    """

    arraysize = 1

    def __init__(
        self,
        table: pa.Table,
        types: Sequence[DataType],
        written: int | None = None,
        stoppable: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._table: pa.Table | None = table
        self._types = tuple(types)
        self._names = tuple(table.column_names)
        self._rows = Rows(table, self._types)
        self._stoppable = stoppable
        self.rowcount = int(table.num_rows) if written is None else written

    @property
    def description(self) -> list[Description]:
        """Seven values for each column: name, SQL type, and precision and scale of a DECIMAL."""
        return [
            (n, str(t), None, None, t.precision or None, t.scale if t.is_decimal else None, True)
            for n, t in zip(self._names, self._types, strict=True)
        ]

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, None after the last."""
        self._open_table()
        return next(self._rows, None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Return up to `size` rows (`arraysize` by default)."""
        wanted = self.arraysize if size is None else size
        try:
            return self._taken(index(wanted))
        except TypeError as error:
            raise WrongArguments(
                f"fetchmany() takes a number of rows, not {shown(wanted)}."
            ) from error

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows that are left."""
        return self._taken(None)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._open_table()
        return self._rows

    def _taken(self, count: int | None) -> list[tuple[Any, ...]]:
        self._open_table()
        with self._stoppable():
            return self._rows.take(count)

    def to_arrow(self) -> pa.Table:
        """Return the whole result, whatever was fetched before."""
        return self._open_table()

    def close(self) -> None:
        """Let the result go; fetching raises from now on."""
        self._table = None
        self._rows = Rows(None)

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_table(self) -> pa.Table:
        if self._table is None:
            raise ExecutionError("This cursor is closed: execute the query again.")
        return self._table


class Rows(Iterator[tuple[Any, ...]]):
    """The rows of a table as tuples, read forward; some are turned into Python values together, and in between it may be stopped."""

    def __init__(self, table: pa.Table | None, types: Sequence[DataType] = ()) -> None:
        self._table = table
        self._types = types
        self._position = 0  # of the row that comes next
        self._ready: list[tuple[Any, ...]] = []  # it and rows after it, the last one first

    def __next__(self) -> tuple[Any, ...]:
        if not self._ready:
            self._ready = self._some(self._position, self._step)[::-1]
            if not self._ready:
                raise StopIteration
        self._position += 1
        return self._ready.pop()

    def take(self, count: int | None) -> list[tuple[Any, ...]]:
        """Return the next rows, so many or all; stopped amid them it takes none."""
        left = 0 if self._table is None else self._table.num_rows - self._position
        count = left if count is None else min(max(count, 0), left)
        taken = self._ready[: -count - 1 : -1]
        end = self._position + count
        while (start := self._position + len(taken)) < end:
            stopping.check()
            taken += self._some(start, min(self._step, end - start))
        self._position = end
        del self._ready[max(len(self._ready) - count, 0) :]
        return taken

    @property
    def _step(self) -> int:
        columns = 0 if self._table is None else self._table.num_columns
        return max(1, min(ROWS_AT_A_TIME, VALUES_AT_A_TIME // max(columns, 1)))

    @fenced
    def _some(self, start: int, count: int) -> list[tuple[Any, ...]]:
        return [] if self._table is None else rows(self._table.slice(start, count), self._types)


def rows(table: pa.Table, types: Sequence[DataType]) -> list[tuple[Any, ...]]:
    """Return a table's rows as tuples of Python values: Decimal, date, datetime, str, None for NULL."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*map(fetched_values, table.columns, types), strict=True))
