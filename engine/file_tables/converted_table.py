"""Opens files of each format for a connection, and tables of those that are converted: of the first query, which writes its rows to a Parquet file in the spill folder, and of the later ones.

read_text and read_blob: files of which each is a row, with all that is in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, Self

import pyarrow as pa

from ..errors import FileError, MemoryLimitError, Unsupported
from ..operators.host_memory import readable
from ..plan.arrow.arrow_types import arrow_table
from ..plan.logical import TableStatistics
from ..plan.types import BIGINT, BLOB, TIMESTAMPTZ, VARCHAR, DataType, to_arrow
from ..records import dataclass
from ..settings import Settings
from ..stopping import check
from ..storage.spill_folders import SpillFolder
from ..storage.tables.access import Access, AccessRules, opened
from ..storage.tables.files import FoundFile, are_current, find_files
from ..storage.tables.footers import is_settled
from ..storage.tables.parquet import ParquetTable
from ..writing.file_writers import writer_of
from .csv_fields import Options
from .csv_source import CsvSource, SniffedSource
from .file_source import ArrowSource, FileSource, FormatSource
from .json_source import JsonObjectsSource, JsonSource

if TYPE_CHECKING:
    from ..running import QueryRunner


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


@dataclass(frozen=True)
class WholeFileSource(FormatSource):
    """Files as rows; what is in them is text where the option `content` says so, else bytes."""

    parts: tuple[FoundFile, ...]

    @classmethod
    def open(cls, patterns: Sequence[str], options: Options, rules: AccessRules) -> Self:
        """Find the files; raises `FileError` and `AccessDenied`."""
        parts = find_files(patterns, rules)
        return cls(parts[0].path, tuple(patterns), options, rules, parts)

    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        content = VARCHAR if self.options.get("content") == "text" else BLOB
        return (
            ("filename", VARCHAR),
            ("content", content),
            ("size", BIGINT),
            ("last_modified", TIMESTAMPTZ),
        )

    def tables(self) -> Iterator[pa.Table]:
        schema = pa.schema([(name, to_arrow(kind)) for name, kind in self.fields])
        for part in self.parts:
            moment = part.identity.mtime_ns // 1000  # microseconds, as DuckDB has it
            values = [part.path, self._content(part), part.identity.size, moment]
            yield arrow_table([values], schema)

    def _content(self, part: FoundFile) -> str | bytes:
        try:
            with opened(part.identity) as file:
                data: bytes = file.read()
        except (OSError, pa.ArrowException) as error:
            raise FileError(f'The file "{part.path}" cannot be read: {error}.') from error
        if self.options.get("content") != "text":
            return data
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise FileError(
                f'The file "{part.path}" is not UTF-8 from byte {error.start} on: read it with read_blob.'
            ) from error


_SOURCES: dict[str, type[FormatSource]] = {
    "csv": CsvSource,
    "sniffed": SniffedSource,
    "json": JsonSource,
    "json_objects": JsonObjectsSource,
    "arrow": ArrowSource,
    "other": WholeFileSource,
}


def open_files(
    runner: QueryRunner,
    form: str,
    paths: Sequence[str],
    options: Mapping[str, object],
    access: Access,
) -> UnreadTable:
    """Return a table of files, whose columns are found out and whose rows are not read yet; raises `FileError`."""
    if not runner.converts_files:
        raise Unsupported(
            f"A cluster does not read {form.partition('_')[0].upper()} files: write them as Parquet first, with COPY on a connection without cluster=."
        )

    return UnreadTable(_SOURCES[form].open(paths, options, access.rules), access, runner)


def form_of(source: object) -> str | None:
    """Return the format of a table's files; None for what is no such source."""
    return next((form for form, kind in _SOURCES.items() if isinstance(source, kind)), None)
