"""A table of files of another format: of the first query, which writes its rows to a Parquet file in the spill folder, and of the later ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from ..errors import FileError, MemoryLimitError
from ..operators.host_memory import readable
from ..plan.statistics import TableStatistics
from ..plan.types import DataType, to_arrow
from ..settings import Settings
from ..stopping import check
from ..storage.spill_folders import SpillFolder
from ..storage.tables.access import Access
from ..storage.tables.files import are_current
from ..storage.tables.footers import is_settled
from ..storage.tables.parquet import ParquetTable
from ..writing.file_writers import writer_of
from .file_source import FileSource

ROWS_FILE = "rows.parquet"
GUESSED_ROWS = 1_000_000  # of a file that was not read yet


WAITING_SHARE = 4  # part of memory_limit that rows take while they wait for their row group


class ConversionSpace(Protocol):
    """Where rows are kept, and how much memory they may take on their way; a connection's runner."""

    @property
    def settings(self) -> Settings: ...
    @property
    def catalog(self) -> object: ...

    def new_folder(self) -> SpillFolder: ...


class UnreadTable:
    """Files of which the columns are known; `reopened` reads them, once."""

    settled = True

    def __init__(self, source: FileSource, access: Access, space: ConversionSpace) -> None:
        self.source, self.access, self.space = source, access, space
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
        made = UnreadTable(self.source, self.access, self.space)
        made.name = name
        return made

    def reopened(self) -> ConvertedTable:
        """Return the table of the rows as they are now; raises `FileError` when the files no longer have its columns."""
        if self._read is None or not self._read.is_current():
            source = self.source if self.is_as_found() else self.source.anew(self.access.rules)
            check_columns(self.fields, source)
            self._read = read(source, self.name, self.access, self.space)
        return self._read

    def anew(self) -> UnreadTable:
        return UnreadTable(self.source.anew(self.access.rules), self.access, self.space).renamed(
            self.name
        )


@dataclass(frozen=True, eq=False)
class ConvertedTable(ParquetTable):
    """The rows of files of another format, in a Parquet file that goes with the connection, or with the last table over it."""

    origin: FileSource = field(kw_only=True, repr=False)
    folder: SpillFolder = field(kw_only=True, repr=False)
    space: ConversionSpace = field(kw_only=True, repr=False)

    def has_its_files(self) -> bool:
        return is_as_found(self.origin, self.access)

    def reopened(self) -> ParquetTable:
        source = self.origin.anew(self.access.rules)
        check_columns(self.fields, source)
        return read(source, self.name, self.access, self.space)

    def anew(self) -> UnreadTable:  # type: ignore[override]
        return UnreadTable(self.origin.anew(self.access.rules), self.access, self.space).renamed(
            self.name
        )


def read(source: FileSource, name: str, access: Access, space: ConversionSpace) -> ConvertedTable:
    """Read all rows once and keep them as Parquet; raises `FileError` where a file changes meanwhile."""
    settled = all(map(is_settled, source.files))
    folder, limit = space.new_folder(), space.settings.memory_limit
    path = folder.path / ROWS_FILE
    names = [n for n, _ in source.fields]
    types = [t for _, t in source.fields]
    schema = pa.schema([(n, to_arrow(t)) for n, t in source.fields])
    kept = {} if limit is None else {"row_group_bytes": max(limit // WAITING_SHARE, 1)}
    with path.open("wb") as file, writer_of("parquet", file, names, types, schema, kept) as writer:
        for table in source.tables():
            check()
            if limit is not None and writer.held + table.nbytes > limit:
                raise MemoryLimitError(
                    f'Some rows of "{source.name}" that are read at a time take {readable(table.nbytes)}: '
                    f"more than memory_limit = {readable(limit)} leaves. Raise it with SET memory_limit."
                )
            writer.write(table)
    rejects = getattr(source, "rejects", None)  # of what leaves out rows
    if rejects is not None:
        rejects.store(space.catalog)
    if not is_as_found(source, access):
        raise FileError(f'The files of "{name}" have changed while they were read: run it again.')
    table = ParquetTable.open([str(path)], {}, name)
    known: dict[str, object] = {f.name: getattr(table, f.name) for f in dataclasses.fields(table)}
    known |= {"fields": source.fields, "settled": settled, "access": access, "rules": source.rules}
    known |= {"patterns": tuple(source.patterns), "unsupported": source.unsupported}
    return ConvertedTable(**known, origin=source, folder=folder, space=space)  # type: ignore[arg-type]


def is_as_found(source: FileSource, access: Access) -> bool:
    """Whether the files are unchanged and may be read as when they were found."""
    newest = getattr(source, "is_newest", None)  # of what has versions
    same = source.rules is access.rules and (newest is None or newest())
    return same and are_current(source.patterns, source.files, source.rules)


def check_columns(fields: Sequence[tuple[str, DataType]], source: FileSource) -> None:
    found = dict(source.fields)
    for name, data_type in fields:
        if found.get(name) != data_type:
            raise FileError(
                f'The file "{source.files[0].path}" has changed and its column "{name}" is no longer {data_type}: '
                "make the query anew."
            )
