"""Rows of a result the way the Python database interface (PEP 249) gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING

from .. import stopping
from ..errors import ExecutionError, MemoryLimitError, NoRows, WrongArguments, shown
from ..fence import fenced
from ..plan.types import DataType
from ..reading import Reading
from .api_hints import missing
from .batches import MOST_ROWS, NOTHING, Batches, Rowset, batch_rows, run_many
from .library_columns import numpy_columns, to_pandas, to_polars
from .python_values import Row, fetched_values

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from ..connection import Connection
    from ..plan_cache import Parameters

# name, type code, display size, internal size, precision, scale, null ok
Description = tuple[str, str, None, None, int | None, int | None, bool]

ROWS_AT_A_TIME = 10_000  # at most, turned into Python objects together
VALUES_AT_A_TIME = 50_000  # some 20 ms


@fenced
class Cursor:
    """Runs statements and reads the rows of the last one forward, as PEP 249 says.

    `rowcount` is the number of rows of a query, or of those that INSERT or CREATE TABLE AS wrote; -1 before, for other statements, and
    for an answer that does not fit into memory, whose rows are made while they are fetched.
    """

    arraysize = 1
    lastrowid = None  # rows have no numbers of their own

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._closed = False
        self._take(NOTHING)

    def execute(self, operation: str, parameters: Parameters = None) -> Cursor:
        """Run all statements of a text, and return the cursor, for the rows of the last one."""
        self._renew()
        self._take(self.connection._rowset(operation, parameters))
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Cursor:
        """Run a statement that gives no rows for each set of parameters; INSERT ... VALUES stores them all at once."""
        self._renew()
        try:
            sets = list(seq_of_parameters)
        except TypeError as error:
            raise WrongArguments(
                f"executemany() takes a list with values for each run, not {shown(seq_of_parameters)}."
            ) from error
        self._take(run_many(self.connection, operation, sets))
        return self

    @property
    def description(self) -> list[Description] | None:
        """Seven values for each column: name, SQL type, and precision and scale of a DECIMAL; None where there are no rows to come."""
        if self._rowset.source is None:
            return None
        return described(self._rowset.source.schema.names, self._rowset.types)

    @property
    def rowcount(self) -> int:
        return self._rowset.count

    @property
    def rownumber(self) -> int | None:
        """The number of the next row, from 0 on; None where there are no rows to come."""
        return None if self._rowset.source is None else self._rows.given

    def fetchone(self) -> Row | None:
        """Return the next row, None after the last."""
        self._open()
        return next(self._rows, None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return up to `size` rows (`arraysize` by default)."""
        wanted = self.arraysize if size is None else size
        try:
            return self._taken(index(wanted))
        except TypeError as error:
            raise WrongArguments(
                f"fetchmany() takes a number of rows, not {shown(wanted)}."
            ) from error

    def fetchall(self) -> list[Row]:
        """Return the rows that are left."""
        return self._taken(None)

    def __iter__(self) -> Iterator[Row]:
        self._open()
        return self._rows

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Do nothing: parameters have the types of their values."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: values of any size are fetched whole."""

    def to_arrow(self) -> pa.Table:
        """Return the whole result, whatever was fetched before; raises `ExecutionError` where fetched rows are not kept."""
        from .exported import exported

        return exported(self._whole())

    arrow = fetch_arrow_table = to_arrow_table = to_arrow

    def _whole(self) -> pa.Table:
        source = self._open()
        if isinstance(source, Reading):
            with self._rowset.stoppable():
                source = self._rows.whole()
            self._take(replace(self._rowset, source=source))
        return source

    def to_batches(self, rows: int = MOST_ROWS) -> Batches:
        """Return the rows that are left as `pyarrow.RecordBatch`es of at most so many rows, read once."""
        most, schema = batch_rows(rows), self._open().schema
        return Batches(self._rows.rest(), schema, most, self._let_go)

    def to_arrow_reader(self, rows: int = MOST_ROWS) -> pa.RecordBatchReader:
        """Return the rows that are left as a reader of record batches of at most so many rows."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_stream(self.to_batches(rows))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows that are left through the Arrow C stream interface."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def df(self, *, date_as_object: bool = False) -> pd.DataFrame:
        """Return the whole result as a pandas DataFrame of DuckDB's dtypes: DECIMAL is float64; dates are objects if asked for."""
        return to_pandas(self._whole(), self._rowset.types, True, date_as_object)

    fetch_df = fetchdf = df

    def pl(self) -> pl.DataFrame:
        """Return the whole result as a Polars DataFrame."""
        return to_polars(self.to_arrow())

    def fetchnumpy(self) -> dict[str, np.ndarray]:
        """Return the whole result as an array for each column, a masked one where there are NULLs."""
        return numpy_columns(self._whole(), self._rowset.types)

    def close(self) -> None:
        """Let the result go; every other call raises from now on."""
        self._closed = True
        self._let_go()

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Return what its connection has, as DuckDB's cursors are connections; raise for other names."""
            if name.startswith("_") or not hasattr(type(self.connection), name):
                raise missing(Cursor, name)
            return getattr(self.connection, name)

    def _taken(self, count: int | None) -> list[Row]:
        self._open()
        with self._rowset.stoppable():
            return self._rows.take(count)

    def _renew(self) -> None:
        if self._closed:
            raise NoRows("This cursor is closed: take another from connection.cursor().")
        self._let_go()

    def _take(self, found: Rowset) -> None:
        self._rowset = found
        self._rows = Rows(()) if found.source is None else _rows_of(found.source, found.types)

    def _let_go(self) -> None:
        source = self._rowset.source
        self._take(NOTHING)
        if isinstance(source, Reading):
            source.close()

    def _open(self) -> pa.Table | Reading:
        if self._closed:
            raise NoRows("This cursor is closed: execute the query again.")
        if self._rowset.source is None:
            raise NoRows(
                "There are no rows to fetch: execute a query first; rowcount says how many rows a statement changed."
            )
        return self._rowset.source


def described(names: Iterable[str], types: Iterable[DataType]) -> list[Description]:
    """Return what PEP 249 has of columns."""
    return [
        (n, str(t), None, None, t.precision or None, t.scale if t.is_decimal else None, True)
        for n, t in zip(names, types, strict=True)
    ]


def _rows_of(source: pa.Table | Reading, types: Sequence[DataType]) -> Rows:
    return (
        Rows(source, types, source.hold) if isinstance(source, Reading) else Rows([source], types)
    )


class Rows(Iterator[Row]):
    """The rows of tables as tuples, read forward; some are turned into Python values together, and in between it may be stopped.

    `hold` counts the bytes of tables that are there together, and with a negative number those that no longer are.
    """

    def __init__(
        self,
        tables: Iterable[pa.Table],
        types: Sequence[DataType] = (),
        hold: Callable[[int], None] = lambda nbytes: None,
    ) -> None:
        self._tables = iter(tables)
        self._types, self._hold = types, hold
        self._read: list[
            pa.Table
        ] = []  # with rows that nobody took yet, from `_position` of the first one on
        self._position = self._held = 0
        self._ready: list[Row] = []  # the rows from there on, the last one first
        self.given = 0

    def __next__(self) -> Row:
        while not self._ready:
            if not self._more(0):
                raise StopIteration
            table = self._read[0]
            self._ready = self._some(table, self._position, _step(table))[::-1]
            if not self._ready:
                self._drop(1, 0)
        self._position += 1
        self.given += 1
        return self._ready.pop()

    def take(self, count: int | None) -> list[Row]:
        """Return the next rows, so many or all; stopped amid them it takes none."""
        count = None if count is None else max(count, 0)
        taken = self._ready[::-1][:count]
        number, start = 0, self._position + len(taken)
        try:
            while (count is None or len(taken) < count) and self._more(number):
                stopping.check()
                table = self._read[number]
                most = _step(table) if count is None else min(_step(table), count - len(taken))
                taken += self._some(table, start, most)
                start += most
                if start >= table.num_rows:
                    number, start = number + 1, 0
        finally:
            self._let_go()
        del self._ready[len(self._ready) - min(len(taken), len(self._ready)) :]
        self._drop(number, start)
        self.given += len(taken)
        return taken

    def whole(self) -> pa.Table:
        """Return all rows as one table; raises `ExecutionError` where some were given already."""
        import pyarrow as pa

        if self.given:
            raise ExecutionError(
                f"{self.given:,} rows of this answer are fetched already, and none are kept since not all fit into memory: "
                "execute the query again."
            )
        try:
            while self._more(len(self._read)):
                pass
        finally:
            self._let_go()
        return pa.concat_tables(self._read)

    def rest(self) -> Iterator[pa.Table]:
        """Give the tables of the rows that are left."""
        while self._more(0):
            table = self._read[0].slice(self._position)
            self._ready.clear()
            self._drop(1, 0)
            self.given += table.num_rows
            yield table

    def _more(self, number: int) -> bool:
        """Whether there is a table of that number, which is read where it is the next one."""
        if number == len(self._read):
            try:
                table = next(self._tables, None)
            except MemoryLimitError as error:
                if number:  # the rows that are kept took the room
                    error.advise_parts()
                raise
            if table is None:
                return False
            self._read.append(table)
            if number:
                self._held += table.nbytes
                self._hold(table.nbytes)
        return True

    def _let_go(self) -> None:
        """Let tables that were read count no longer: they were needed together."""
        if self._held:
            self._hold(-self._held)
            self._held = 0

    def _drop(self, tables: int, position: int) -> None:
        del self._read[:tables]
        self._position = position

    @fenced
    def _some(self, table: pa.Table, start: int, count: int) -> list[Row]:
        # Arrow's slices of a table without columns do not end where that does
        return rows(table.slice(start, min(count, table.num_rows - start)), self._types)


def _step(table: pa.Table) -> int:
    return max(1, min(ROWS_AT_A_TIME, VALUES_AT_A_TIME // max(table.num_columns, 1)))


def rows(table: pa.Table, types: Sequence[DataType]) -> list[Row]:
    """Return a table's rows as tuples of Python values: Decimal, date, datetime, str, None for NULL."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*map(fetched_values, table.columns, types), strict=True))
