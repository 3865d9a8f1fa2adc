"""What `fuseline sql` writes: a table, an Arrow stream, or rows as the shell has them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..frame.batches import Batches
    from ..frame.frame import Frame


def write_result(frame: Frame, format: str) -> None:
    """Run a frame and write its rows to standard output."""
    if format == "table":
        from ..frame.display import print_table

        print_table(frame.to_arrow(), [c.type for c in frame.plan.columns], None)
        return
    if format in ("csv", "arrow"):
        with frame.to_batches() as batches:
            _write_binary(batches, format)
        return
    from ..frame.display import rows_of_batches
    from .shell.output_modes import ROW_MODES, Header

    header = Header(
        tuple(c.name for c in frame.plan.columns), tuple(c.type for c in frame.plan.columns)
    )
    with frame.to_batches() as batches:
        sys.stdout.writelines(ROW_MODES[format](header, rows_of_batches(batches)))


def _write_binary(batches: Batches, format: str) -> None:
    """Write rows a part at a time, after the names of their columns."""
    import pyarrow as pa
    import pyarrow.csv

    out = pa.PythonFile(sys.stdout.buffer, mode="w")
    if format == "csv":
        from ..frame.display import csv_columns

        pyarrow.csv.write_csv(batches.schema.empty_table(), out)
        headless = pyarrow.csv.WriteOptions(include_header=False)
        for batch in batches:
            pyarrow.csv.write_csv(csv_columns(pa.Table.from_batches([batch])), out, headless)
    else:
        with pa.ipc.new_stream(out, batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    sys.stdout.buffer.flush()
