"""A table of files of another format: of the first query, which writes its rows to a Parquet file in the spill folder, and of the later ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from ..errors import FileError
from ..plan.statistics import TableStatistics
from ..plan.types import DataType, to_arrow
from ..stopping import check
from ..storage.spill_folders import SpillFolder
from ..storage.tables.access import Access, AccessRules, FileIdentity
from ..storage.tables.files import are_current
from ..storage.tables.footers import is_settled
from ..storage.tables.parquet import ParquetTable
from ..writing.file_writers import writer_of

ROWS_FILE = "rows.parquet"
GUESSED_ROWS = 1_000_000  # of a file that was not read yet


class FileSource(Protocol):
    """The files of a table as they were when they were looked at."""

    @property
    def name(self) -> str: ...
    @property
    def patterns(self) -> Sequence[str]: ...
    @property
    def files(self) -> tuple[FileIdentity, ...]: ...
    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]: ...
    @property
    def unsupported(self) -> Mapping[str, DataType]: ...
    @property
    def rules(self) -> AccessRules: ...

    def tables(self) -> Iterator[pa.Table]:
        """Yield all rows, in the Arrow types of `fields`; raises `FileError` and `ConversionError`."""

    def anew(self, rules: AccessRules) -> FileSource:
        """Return the files as they are now, with the columns that they have now; raises `AccessDenied`."""


class UnreadTable:
    """Files of which the columns are known; `reopened` reads them, once."""

    settled = True

    def __init__(
        self, source: FileSource, access: Access, new_folder: Callable[[], SpillFolder]
    ) -> None:
        self.source, self.access, self.new_folder = source, access, new_folder
        self.name, self.fields, self.unsupported = source.name, source.fields, source.unsupported
        self.identity: Hashable = None
        self._read: ConvertedTable | None = None

    @property
    def types(self) -> dict[str, DataType]:
        return dict(self.fields)

    @property
    def all_fields(self) -> tuple[tuple[str, DataType], ...]:
        return (*self.fields, *self.unsupported.items())

    @property
    def num_rows(self) -> int:
        return GUESSED_ROWS

    def statistics(self) -> TableStatistics:
        return TableStatistics(GUESSED_ROWS, {})

    def is_current(self) -> bool:
        """Whether it can be read from, which it never can."""
        return False

    def is_as_found(self) -> bool:
        """Whether the files are those that its columns were found in."""
        return is_as_found(self.source, self.access)

    def renamed(self, name: str) -> UnreadTable:
        made = UnreadTable(self.source, self.access, self.new_folder)
        made.name = name
        return made

    def reopened(self) -> ConvertedTable:
        """Return the table of the rows as they are now; raises `FileError` when the files no longer have its columns."""
        if self._read is None or not self._read.is_current():
            source = self.source if self.is_as_found() else self.source.anew(self.access.rules)
            check_columns(self.fields, source)
            self._read = read(source, self.name, self.access, self.new_folder)
        return self._read

    def anew(self) -> UnreadTable:
        return UnreadTable(
            self.source.anew(self.access.rules), self.access, self.new_folder
        ).renamed(self.name)


@dataclass(frozen=True, eq=False)
class ConvertedTable(ParquetTable):
    """The rows of files of another format, in a Parquet file that goes with the connection, or with the last table over it."""

    origin: FileSource = field(kw_only=True, repr=False)
    folder: SpillFolder = field(kw_only=True, repr=False)
    new_folder: Callable[[], SpillFolder] = field(kw_only=True, repr=False)

    def has_its_files(self) -> bool:
        return is_as_found(self.origin, self.access)

    def reopened(self) -> ParquetTable:
        source = self.origin.anew(self.access.rules)
        check_columns(self.fields, source)
        return read(source, self.name, self.access, self.new_folder)

    def anew(self) -> UnreadTable:  # type: ignore[override]
        return UnreadTable(
            self.origin.anew(self.access.rules), self.access, self.new_folder
        ).renamed(self.name)


def read(
    source: FileSource, name: str, access: Access, new_folder: Callable[[], SpillFolder]
) -> ConvertedTable:
    """Read all rows once and keep them as Parquet; raises `FileError` where a file changes meanwhile."""
    settled = all(map(is_settled, source.files))
    folder = new_folder()
    path = folder.path / ROWS_FILE
    names = [n for n, _ in source.fields]
    types = [t for _, t in source.fields]
    schema = pa.schema([(n, to_arrow(t)) for n, t in source.fields])
    with path.open("wb") as file, writer_of("parquet", file, names, types, schema, {}) as writer:
        for table in source.tables():
            check()
            writer.write(table)
    if not is_as_found(source, access):
        raise FileError(f'The files of "{name}" have changed while they were read: run it again.')
    table = ParquetTable.open([str(path)], {}, name)
    known: dict[str, object] = {f.name: getattr(table, f.name) for f in dataclasses.fields(table)}
    known |= {"fields": source.fields, "settled": settled, "access": access, "rules": source.rules}
    known |= {"patterns": tuple(source.patterns), "unsupported": source.unsupported}
    return ConvertedTable(**known, origin=source, folder=folder, new_folder=new_folder)  # type: ignore[arg-type]


def is_as_found(source: FileSource, access: Access) -> bool:
    """Whether the files are unchanged and may be read as when they were found."""
    return source.rules is access.rules and are_current(source.patterns, source.files, source.rules)


def check_columns(fields: Sequence[tuple[str, DataType]], source: FileSource) -> None:
    found = dict(source.fields)
    for name, data_type in fields:
        if found.get(name) != data_type:
            raise FileError(
                f'The file "{source.files[0].path}" has changed and its column "{name}" is no longer {data_type}: '
                "make the query anew."
            )
