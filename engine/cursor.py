"""Rows of a result the way the Python database interface (PEP 249) gives them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .errors import ExecutionError
from .fence import fenced
from .plan.types import DataType
from .python_values import python_values

if TYPE_CHECKING:
    import pyarrow as pa

# name, type code, display size, internal size, precision, scale, null ok
Description = tuple[str, str, None, None, int | None, int | None, bool]

ROWS_AT_A_TIME = 10_000  # rows turned into Python objects together


@fenced
class Cursor:
    """The result of one `Connection.execute`, read forward.

    `rowcount` is the number of rows of a query, or of those that INSERT or CREATE TABLE AS wrote.
    """

    arraysize = 1

    def __init__(
        self, table: pa.Table, types: Sequence[DataType], written: int | None = None
    ) -> None:
        self._table: pa.Table | None = table
        self._types = tuple(types)
        self._names = tuple(table.column_names)
        self._rows = iterate(table)
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
        self._open_table()
        wanted = self.arraysize if size is None else size
        return [row for _, row in zip(range(wanted), self._rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows that are left."""
        self._open_table()
        return list(self._rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._open_table()
        return self._rows

    def to_arrow(self) -> pa.Table:
        """Return the whole result, whatever was fetched before."""
        return self._open_table()

    def close(self) -> None:
        """Let the result go; fetching raises from now on."""
        self._table = None
        self._rows = iter(())

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_table(self) -> pa.Table:
        if self._table is None:
            raise ExecutionError("This cursor is closed: execute the query again.")
        return self._table


@fenced
def iterate(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Give a table's rows as tuples, turning `ROWS_AT_A_TIME` of them into Python values together."""
    for start in range(0, table.num_rows, ROWS_AT_A_TIME):
        yield from rows(table.slice(start, ROWS_AT_A_TIME))


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return a table's rows as tuples of Python values: Decimal, date, datetime, str, None for NULL."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*map(python_values, table.columns), strict=True))
