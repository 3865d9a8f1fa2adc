"""Frame: a lazy table.  Each method builds the logical nodes that SQL would.

The methods that write files are here, and what a REPL shows: the first rows, within the width of the terminal.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING

from ..errors import FuselineError, InvalidQuery, in_text
from ..fence import fenced
from ..plan.functions import aggregate_name, window_name
from ..plan.logical import Logical, Scan
from ..plan.node import walk
from ..plan.types import DataType
from .api_hints import DUCKDB_FUNCTIONS, missing
from .expressions.expression import Expression
from .methods.relation_names import RelationNames
from .methods.reshape_methods import ReshapeMethods
from .notebook_methods import NotebookMethods

if TYPE_CHECKING:
    import pyarrow as pa

    from ..connection import Connection


Path = str | PathLike[str]


@fenced
class FileMethods:
    """Writing the rows of a query while they are made: `COPY ... TO`, whose options these methods take by their names.

    A file has its name when all of it is written, so that nobody reads half of it; an error leaves what was there before.
    With `partition_by` the path is a folder, which gets a file for each value of those columns.
    """

    _connection: Connection
    _plan: Logical
    _text: str | None

    def write_parquet(self, path: Path, **options: object) -> None:
        """Run and write a Parquet file: compression, compression_level, row_group_size, partition_by, overwrite, append."""
        self._write(path, "parquet", options)

    def write_csv(self, path: Path, **options: object) -> None:
        """Run and write CSV: header, delim, quote, escape, nullstr, force_quote, dateformat, timestampformat, compression, partition_by."""
        self._write(path, "csv", options)

    def write_json(self, path: Path, **options: object) -> None:
        """Run and write an object of JSON for each row, a line each, or with `array=True` one array of them."""
        self._write(path, "json", options)

    def write_ipc(self, path: Path, **options: object) -> None:
        """Run and write an Arrow IPC file, which is Feather's second version too: compression, partition_by."""
        self._write(path, "arrow", options)

    to_parquet, to_csv = write_parquet, write_csv  # their names in pandas

    def _write(self, path: Path, form: str, options: dict[str, object]) -> None:
        with in_text(self._text):
            self._connection.write(self._plan, path, form, options)


@fenced
class Frame(ReshapeMethods, RelationNames, FileMethods, NotebookMethods):
    """A query that has not run: of `connection.sql`, of a table, or of the methods below.

    Column names are case-insensitive.  Where a method takes expressions, a string names a column, and a list of them is
    as good as several.  Results are computed anew by each call that returns data; `profile` describes the latest of them.

    >>> import fuseline
    >>> sales = fuseline.connect(device="cpu").register("sales", {"city": ["Oslo", "Rome", "Oslo"], "sold": [3, 5, 4]})
    >>> sales.group_by("city").agg(total=fuseline.sum_("sold")).sort("city").fetchall()
    [('Oslo', 7), ('Rome', 5)]
    """

    @property
    def schema(self) -> dict[str, DataType]:
        """Column name -> SQL type, in order."""
        return {c.name: c.type for c in self._plan.columns}

    def __getitem__(self, name: str) -> Expression:
        """Return a column as an expression that stays this frame's in a join with a table that has the name too."""
        if not isinstance(name, str):
            raise InvalidQuery(
                "frame[...] takes one column name: use select(...) for columns, limit(...) for rows."
            )
        column = self.resolve(name)
        return Expression(lambda _: column, name)

    def __contains__(self, name: object) -> bool:
        """Whether a column is called so; without this, Python would run the query and look through its rows."""
        return isinstance(name, str) and name in self.columns

    def __getattr__(self, name: str) -> Callable[..., Frame]:
        """Return an aggregate or window function of columns, by its name in SQL, or say what a method of other libraries is called here."""
        function = DUCKDB_FUNCTIONS.get(name, name)
        if aggregate_name(function) is not None or window_name(function) is not None:
            return self._function_method(function)
        raise missing(Frame, name, () if name.startswith("_") else self.columns)

    def __bool__(self) -> bool:
        """Raise: the truth of a frame could mean that it is there or that it has rows, which takes a run."""
        raise InvalidQuery(
            "A frame has no truth value: ask `frame is None` or `frame.count() > 0`."
        )

    def __reduce__(self) -> tuple[Callable[..., Frame], tuple[object, ...]]:
        """The plan, and the files that it reads; raises `Unsupported` where a table lies in memory."""
        from ..interop.sent_frames import sent

        return sent(self._plan)

    def __repr__(self) -> str:
        """The first rows, where tables are not too large to run the query for them; `show()` runs any."""
        return frame_text(self)


MOST_SHOWN = 10
# Rows of all tables that a query reads, up to which it runs to be shown: some tenths of a second on two cores
MOST_READ = 20_000_000


def frame_text(frame: Frame) -> str:
    """Return the first rows with names and types, cut to the width of the terminal; the names and types alone where that would read much.

    How much a query reads is known of its tables, without a run.  An error of the run is told in the place of the rows.
    """
    columns = ", ".join(f"{c.name} {c.type}" for c in frame.plan.columns)
    read = rows_read(frame.plan)
    if read is None or read > MOST_READ:
        return f"<Frame: {columns}; show() or to_arrow() runs it>"
    try:
        table = frame._preview(MOST_SHOWN)
    except FuselineError as error:
        return f"<Frame: {columns}; {type(error).__name__}: {error.message}>"
    return _drawn(frame, table)


def rows_read(plan: Logical) -> int | None:
    """Return how many rows there are in all tables that a plan reads; None where a table does not tell."""
    rows = 0
    for node in walk(plan):
        if isinstance(node, Scan):
            known = node.table.statistics().rows
            if known is None:
                return None
            rows += known
    return rows


def _drawn(frame: Frame, table: pa.Table) -> str:
    from rich.console import Console

    from .fitted_table import TableLayout, fitted, rows_of

    width = shutil.get_terminal_size((120, 24)).columns
    more, count = table.num_rows > MOST_SHOWN, table.num_rows
    note = (
        f"the first {MOST_SHOWN} rows; there are more"
        if more
        else f"{count} row{'s' * (count != 1)}"
    )
    types = [column.type for column in frame.plan.columns]
    rows = rows_of(table.slice(0, MOST_SHOWN), types)
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None)
    console.print(fitted(table.column_names, types, rows, TableLayout(width), note))
    return out.getvalue().rstrip()
