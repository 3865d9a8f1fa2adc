"""What a Frame writes to files."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from ..errors import in_text
from ..fence import fenced

if TYPE_CHECKING:
    from ..connection import Connection
    from ..plan.logical import Logical

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

    def to_parquet(self, path: Path, **options: object) -> None:
        """Do what `write_parquet` does, by its name in pandas."""
        self._write(path, "parquet", options)

    def to_csv(self, path: Path, **options: object) -> None:
        """Do what `write_csv` does, by its name in pandas."""
        self._write(path, "csv", options)

    def _write(self, path: Path, form: str, options: dict[str, object]) -> None:
        with in_text(self._text):
            self._connection.write(self._plan, path, form, options)
