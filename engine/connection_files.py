"""What a connection does with files: those it reads are tables, and those it writes have a query's rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, cast

from .catalog import Catalog, file_paths
from .db_api import HasErrors
from .errors import FileError, Unsupported, WrongArguments, shown
from .fence import fenced
from .plan.logical import CatalogTable, Logical
from .plan.temporal import zones
from .settings import Settings

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from .connection import Connection
    from .frame.frame import Frame

Path = str | PathLike[str]
Source = Path | Iterable[Path] | IO[str] | IO[bytes]  # of which an open file is read at once


@fenced
class FileReaders:
    """The methods of a connection that read and write files."""

    catalog: Catalog

    if TYPE_CHECKING:  # what a connection has

        @property
        def settings(self) -> Settings: ...
        def forget(self, entry: object) -> None: ...
        def stoppable(self) -> AbstractContextManager[object]: ...
        def _check_open(self) -> None: ...
        @property
        def server(self) -> str: ...
        def _scan(self, table: CatalogTable) -> Frame: ...

    def read_parquet(
        self, path: Path | Iterable[Path], name: str | None = None, **options: object
    ) -> Frame:
        """Return the table of a file, a list of files, a glob or a directory; reads the footers alone.

        With `name` it can be used in SQL.  Options: hive_partitioning, hive_types_autocast, filename, binary_as_string.  Raises `FileError`,
        naming the file, for files that are missing, damaged or of different columns.
        """
        return self._read_files("parquet", path, name, options)

    def read_csv(self, path: Source, name: str | None = None, **options: object) -> Frame:
        """Return the table of CSV files: a path, a list or a glob; looks at the first rows, from which DuckDB's rules tell dialect and types.

        An open file, or another object with `read`, is read at once.
        With `name` it can be used in SQL.  Options: those of `read_csv` in SQL, such as delim, header, types, nullstr, skip.
        """
        return self._read_files("csv", path, name, options)

    from_csv_auto, from_parquet = read_csv, read_parquet

    def read_json(self, path: Source, name: str | None = None, **options: object) -> Frame:
        """Return the table of JSON files, of lines or an array; the first values tell columns and types, by DuckDB's rules.

        An open file, or another object with `read`, is read at once.
        With `name` it can be used in SQL.  Options: those of `read_json` in SQL, such as format, columns, ignore_errors, sample_size.
        """
        return self._read_files("json", path, name, options)

    def read_ipc(
        self, path: Path | Iterable[Path], name: str | None = None, **options: object
    ) -> Frame:
        """Return the table of Arrow IPC files, streams or Feather files; reads the schemas alone.

        With `name` it can be used in SQL.  Option: filename.
        """
        return self._read_files("arrow", path, name, options)

    def read_delta(self, path: Path, name: str | None = None, **options: object) -> Frame:
        """Return a table of Delta Lake, by the path of its folder; options: version, timestamp.

        Raises `FileError` where there is none, and `Unsupported` for what a reader of it must know and this does not.
        """
        return self._read_files("delta", path, name, options)

    def read_iceberg(self, path: Path, name: str | None = None, **options: object) -> Frame:
        """Return a table of Iceberg, by the path of its folder or of its metadata; options: snapshot_from_id, snapshot_from_timestamp.

        Raises `FileError` where there is none, and `Unsupported` where rows are deleted by their values.
        """
        return self._read_files("iceberg", path, name, options)

    def _read_files(
        self,
        form: str,
        path: Source,
        name: str | None,
        options: Mapping[str, object],
    ) -> Frame:
        from .plan.files.read_options import READ_OPTIONS

        self._check_open()
        if self.server:
            raise Unsupported(
                f"Queries of this connection run at {self.server}, whose files SQL reads: FROM read_{form}('path')."
            )
        if form in READ_OPTIONS:
            options = dict(READ_OPTIONS[form].read(n, value) for n, value in options.items())
        if hasattr(path, "read"):
            return self._read_object(form, cast("IO[str] | IO[bytes]", path), name, options)
        with zones.of_session(self.settings.timezone):
            table = self.catalog.read_files(form, file_paths(path), options)
        if name is not None:
            table = table.renamed(name)
            self.forget(self.catalog.put(table))
        warn_of_columns(table.name, table.unsupported)
        return self._scan(table)

    def _read_object(
        self, form: str, given: IO[str] | IO[bytes], name: str | None, options: Mapping[str, object]
    ) -> Frame:
        """Return the rows of what the caller holds, by a copy of it in a folder of its own: it may not be read twice."""
        try:
            content = given.read()
            data = content.encode() if isinstance(content, str) else content
        except Exception as error:  # whatever an object of the caller raises
            raise FileError(
                f"{shown(given)} cannot be read: {type(error).__name__}: {error}."
            ) from error
        if not isinstance(data, bytes):
            raise WrongArguments(f"What {shown(given)} reads is no text and no bytes.")
        with TemporaryDirectory(prefix="fuseline-") as folder:
            path = FilePath(folder) / "rows"
            path.write_bytes(data)
            with zones.of_session(self.settings.timezone):
                table = self.catalog.open_own(form, str(path), options)
            warn_of_columns(table.name, table.unsupported)
            rows = self._scan(table).persist()
        return rows if name is None else rows.create_view(name)

    def write(self, plan: Logical, path: Path, form: str, options: Mapping[str, object]) -> None:
        """Run a plan and write its rows to a file, or with `partition_by` to a folder, as COPY TO does."""
        from .plan.files.write_options import WRITE_OPTIONS
        from .plan.statements import CopyTo, Query
        from .writing.copy_to import copy_to

        self._check_open()
        read = dict(WRITE_OPTIONS[form].read(name, value) for name, value in options.items())
        places = file_paths(path)
        if len(places) != 1:
            raise WrongArguments(f"Rows are written to one path, not to {shown(path)}.")
        (place,) = places
        with self.stoppable(), zones.of_session(self.settings.timezone):
            copy_to(cast("Connection", self), CopyTo(Query(plan), place, form, read))


def warn_of_columns(name: str, unsupported: Mapping[str, object]) -> None:
    """Say which columns a Frame does not have; SQL that asks for one raises instead."""
    if unsupported:
        columns = ", ".join(f'"{column}" ({kind})' for column, kind in unsupported.items())
        warnings.warn(
            f'The table "{name}" is without the columns {columns}, of types that queries cannot read.',
            HasErrors.Warning,
            stacklevel=4,
        )
