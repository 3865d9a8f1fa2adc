"""The rows of an answer as Arrow record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..errors import FuselineError, WrongArguments, shown
from ..fence import fenced
from .exported import exported, exported_schema

if TYPE_CHECKING:
    import pyarrow as pa

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
