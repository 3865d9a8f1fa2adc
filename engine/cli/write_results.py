"""What `fuseline sql` writes: a table, an Arrow stream, or rows as the shell has them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..storage.tables.access import EVERYTHING
from ..writing.new_files import NewFiles

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..frame.batches import Batches
    from ..frame.frame import Frame
    from ..observe.profile import Profile


def write_result(frame: Frame, format: str) -> None:
    """Run a frame and write its rows to standard output."""
    if format == "table":
        from ..frame.fitted_table import print_table

        print_table(frame.to_arrow(), [c.type for c in frame.plan.columns], None)
        return
    if format in ("csv", "arrow"):
        with frame.to_batches() as batches:
            _write_binary(batches, format)
        return
    from ..frame.fitted_table import rows_of_batches
    from .shell.output_modes import ROW_MODES, Header

    header = Header(
        tuple(c.name for c in frame.plan.columns), tuple(c.type for c in frame.plan.columns)
    )
    with frame.to_batches() as batches:
        sys.stdout.writelines(ROW_MODES[format](header, rows_of_batches(batches, header.types)))


def _write_binary(batches: Batches, format: str) -> None:
    """Write rows a part at a time, after the names of their columns."""
    import pyarrow as pa
    import pyarrow.csv

    out = pa.PythonFile(sys.stdout.buffer, mode="w")
    if format == "csv":
        from ..frame.fitted_table import csv_columns

        pyarrow.csv.write_csv(batches.schema.empty_table(), out)
        headless = pyarrow.csv.WriteOptions(include_header=False)
        for batch in batches:
            pyarrow.csv.write_csv(csv_columns(pa.Table.from_batches([batch])), out, headless)
    else:
        with pa.ipc.new_stream(out, batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    sys.stdout.buffer.flush()


def write_profile_files(profile: Profile, query: str, files: Mapping[str, Path | None]) -> None:
    """Write what a query did to each file that is named; raises `FileError`."""
    make = {
        "html": lambda: profile.to_html(query),
        "json": profile.to_json,
        "mermaid": profile.to_mermaid,
    }
    with NewFiles(EVERYTHING) as new:
        for form, path in files.items():
            if path is not None:
                place = new.resolved(str(path))
                with new.opened(place, str(path)) as out:
                    out.write(make[form]().encode())
