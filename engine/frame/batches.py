"""What a statement gave: its rows, also as Arrow record batches, or how many it wrote; and `executemany`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import pyarrow as pa

from ..errors import FuselineError, InvalidQuery, NotByRows, WrongArguments, shown
from ..fence import fenced
from ..plan.types import DataType
from ..reading import Reading
from ..records import dataclass
from .exported import exported, exported_schema

if TYPE_CHECKING:
    from ..connection import Connection
    from ..plan_cache import Parameters


MOST_ROWS = 1_000_000  # of a batch by default, as in DuckDB


def batch_rows(rows: object) -> int:
    """Return how many rows a batch may have; raises `WrongArguments` for what is no such number."""
    most = rows if isinstance(rows, int) else 0
    if most < 1:
        raise WrongArguments(f"A batch has a whole number of rows, at least 1, not {shown(rows)}.")
    return most


@fenced
class Batches(Iterator["pa.RecordBatch"]):
    """An answer as pyarrow.RecordBatches, each of at most so many rows, read once.

    Where the whole answer does not fit into `memory_limit`, its rows are made while they are read: reading raises what running can raise.
    Everything is let go of at the end, by an error, by `close` or the end of a `with`, when the connection is closed, and with
    the object itself.  It has the Arrow stream interface: `pyarrow.RecordBatchReader.from_stream(batches)`, or what DuckDB and Polars read.
    """

    def __init__(
        self,
        tables: Iterator[pa.Table],
        schema: pa.Schema,
        rows: int,
        close: Callable[[], None],
    ) -> None:
        self._tables, self._most, self._close = tables, rows, close
        self._schema = exported_schema(schema)
        self._ready: list[pa.RecordBatch] = []  # the last one first

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, known before any batch is read."""
        return self._schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        while not self._ready:
            self._ready = exported(next(self._tables)).to_batches(self._most)[::-1]
        return self._ready.pop()

    def close(self) -> None:
        """Let the answer go; reading raises from now on."""
        self._ready.clear()
        self._close()

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the rest over through the Arrow C stream interface."""
        import pyarrow as pa

        stream = pa.RecordBatchReader.from_batches(self.schema, _told(self))
        try:
            return stream.__arrow_c_stream__(requested_schema)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise WrongArguments(f"The result cannot be given in that schema: {error}.") from error

    def __repr__(self) -> str:
        return f"<Batches: {', '.join(self.schema.names)}>"


def _told(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Raise what reading raises without its way through this package, since a consumer in C shows the traceback as the message."""
    try:
        yield from batches
    except FuselineError as error:
        raise error.with_traceback(None) from None


@dataclass(frozen=True)
class Rowset:
    """The rows that a statement gave, in memory or made while they are read, and how they may be stopped meanwhile.

    `source` is None for a statement that is not written for rows.  `count`: of the rows, or of those that were written; -1 where
    nobody knows.
    """

    source: pa.Table | Reading | None
    types: tuple[DataType, ...] = ()
    count: int = -1
    stoppable: Callable[[], AbstractContextManager[object]] = nullcontext
    of_query: bool = False


NOTHING = Rowset(None)


def run_many(connection: Connection, text: str, sets: Sequence[Parameters]) -> Rowset:
    """Run a statement for each set of parameters; raises `InvalidQuery` for a query. RETURNING gives the rows of all sets.

    INSERT ... VALUES of plain parameters stores all sets at once, or none.  Other statements run one after the other, and what ran
    before an error stays, unless a transaction takes it back.
    """
    table = _as_table(sets)
    if table is not None:
        try:
            return connection._rowset(text, sets[0], table)
        except NotByRows:
            pass
    found, written, returned = NOTHING, 0, []
    for given in sets:
        found = connection._rowset(text, given)
        if isinstance(found.source, Reading):
            found.source.close()
        if found.of_query:
            raise InvalidQuery("executemany() takes a statement that is no query: use execute().")
        written += max(found.count, 0)
        if found.source is not None:
            returned.append(found.source)
    return Rowset(pa.concat_tables(returned) if returned else None, found.types, written)


def _as_table(sets: Sequence[Parameters]) -> pa.Table | None:
    """Return a column for each parameter; None where its values are of several types."""
    first = sets[0] if sets else None
    if isinstance(first, Mapping):
        names: list[str] = list(first)
        named = [s for s in sets if isinstance(s, Mapping) and s.keys() == first.keys()]
        columns = [[one[name] for one in named] for name in names]
    elif isinstance(first, list | tuple):
        names = [str(number) for number in range(1, len(first) + 1)]
        plain = [s for s in sets if isinstance(s, list | tuple) and len(s) == len(first)]
        columns = [list(column) for column in zip(*plain, strict=True)]
    else:
        return None
    if not names or len(columns[0]) < len(sets):
        return None
    if any(len({type(value) for value in column} - {type(None)}) > 1 for column in columns):
        return None
    try:
        return pa.table([pa.array(column) for column in columns], names=names)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None  # one after the other says which value it is
