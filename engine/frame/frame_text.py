"""What a REPL shows of a frame: its first rows, within the width of the terminal."""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING

from ..errors import FuselineError
from ..plan.logical import Logical, Scan
from ..plan.node import walk

if TYPE_CHECKING:
    import pyarrow as pa

    from .frame import Frame

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

    from .display import rows_of
    from .fitted_table import TableLayout, fitted

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
