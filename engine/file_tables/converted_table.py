"""Opens files of each format for a connection, and tables of those that are converted: of the first query, which writes its rows to a Parquet file in the spill folder, and of the later ones.

Of formats whose columns can be left out only those are kept that queries have asked for; one that asks for others has all of them read.

read_text and read_blob: files of which each is a row, with all that is in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, Self
from weakref import WeakSet

import pyarrow as pa

from ..errors import FileError, MemoryLimitError, Unsupported
from ..operators.host_memory import readable
from ..plan.arrow.arrow_types import arrow_table
from ..plan.logical import ColumnStatistics, TableStatistics
from ..plan.types import BIGINT, BLOB, BOOLEAN, TIMESTAMPTZ, VARCHAR, DataType, to_arrow
from ..records import dataclass
from ..settings import Settings
from ..stopping import check
from ..storage.spill_folders import SpillFolder
from ..storage.tables.access import Access, AccessRules, opened
from ..storage.tables.column_chunks import ColumnChunks, chunks_of_files
from ..storage.tables.files import FoundFile, are_current, find_files
from ..storage.tables.footers import is_settled
from ..storage.tables.parquet import ParquetTable
from ..writing.file_writers import writer_of
from .csv_fields import Options
from .csv_source import CsvSource, SniffedSource
from .file_source import ArrowSource, FileSource, FormatSource, schema_of
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
    """Files of which the columns are known; `with_columns` reads their rows."""

    settled = True

    def __init__(self, source: FileSource, access: Access, space: ConversionSpace) -> None:
        self.source, self.access, self.space = source, access, space
        self.name, self.fields, self.unsupported = source.name, source.fields, source.unsupported
        self.identity: Hashable = None
        self._reads = Reads(source, access, space)
        self._last: ConvertedTable | None = None

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
        """Whether the files are those that its columns were found in."""
        return is_as_found(self.source, self.access)

    def lacks(self, columns: frozenset[str]) -> bool:
        """Whether it has to be read for a query that asks for some columns, or for none but its rows."""
        return True

    def with_columns(self, columns: frozenset[str]) -> ConvertedTable:
        """Return a table of the rows that has some columns at least; raises `FileError`, and `ConversionError` for their values."""
        self._last = self._reads.with_columns(self.name, columns)
        return self._last

    def renamed(self, name: str) -> UnreadTable:
        made = UnreadTable(self.source, self.access, self.space)
        made.name = name
        return made

    def reopened(self) -> UnreadTable:
        """Return the files as they are now; raises `FileError` when they no longer have its columns."""
        return _renewed(self)

    def anew(self) -> UnreadTable:
        return UnreadTable(self.source.anew(self.access.rules), self.access, self.space).renamed(
            self.name
        )


@dataclass(frozen=True, eq=False)
class ConvertedTable(ParquetTable):
    """The rows of files of another format, in a Parquet file that goes with the connection, or with the last table over it; `columns` are those that were read."""

    origin: FileSource = field(kw_only=True, repr=False)
    folder: SpillFolder = field(kw_only=True, repr=False)
    reads: Reads = field(kw_only=True, repr=False)
    columns: frozenset[str] = field(kw_only=True, repr=False)

    @property
    def all_fields(self) -> tuple[tuple[str, DataType], ...]:
        return (*self.fields, *self.unsupported.items())

    def has_its_files(self) -> bool:
        return is_as_found(self.origin, self.access)

    def lacks(self, columns: frozenset[str]) -> bool:
        """Whether a query that asks for some columns needs other rows: also those with bad values in columns that it does not ask for."""
        columns = self.origin.selected(columns)
        return (
            columns != self.columns if self.origin.leaves_out_rows else not columns <= self.columns
        )

    def with_columns(self, columns: frozenset[str]) -> ConvertedTable:
        return self.reads.with_columns(self.name, columns)

    def chunks(self, name: str) -> ColumnChunks:
        if name in self.columns:
            return super().chunks(name)
        return chunks_of_files(self.footers, self._groups, [None], self.types[name])

    def _column_statistics(self, name: str) -> ColumnStatistics:
        # What is in a column may not keep a query from asking for it, where that leaves out rows
        unknown = self.origin.leaves_out_rows or name not in self.columns
        return ColumnStatistics() if unknown else super()._column_statistics(name)

    def reopened(self) -> UnreadTable:  # type: ignore[override]
        return _renewed(self)

    def anew(self) -> UnreadTable:  # type: ignore[override]
        return UnreadTable(
            self.origin.anew(self.access.rules), self.access, self.reads.space
        ).renamed(self.name)


class Reads:
    """The tables that were read of some files, each with the columns that were asked for by then."""

    def __init__(self, source: FileSource, access: Access, space: ConversionSpace) -> None:
        self.source, self.access, self.space = source, access, space
        self._tables: WeakSet[ConvertedTable] = WeakSet()

    def with_columns(self, name: str, columns: frozenset[str]) -> ConvertedTable:
        """Return a table that has some columns, and where it is read now those of earlier ones; raises `FileError` where the files are no longer as they were found."""
        columns = self.source.selected(columns)
        known = [table for table in self._tables if table.is_current()]
        for table in known:
            if not table.lacks(columns):
                return table
        if not self.source.leaves_out_rows:
            columns = columns.union(*(table.columns for table in known))
        made = self._read(name, columns)
        self._tables.add(made)
        return made

    def _read(self, name: str, columns: frozenset[str]) -> ConvertedTable:
        """Read all rows once and keep some columns as Parquet; raises `FileError` where a file changes meanwhile."""
        source, space = self.source, self.space
        settled = all(map(is_settled, source.files))
        folder, limit = space.new_folder(), space.settings.memory_limit
        path = folder.path / ROWS_FILE
        kept = {} if limit is None else {"row_group_bytes": max(limit // WAITING_SHARE, 1)}
        schema, found = schema_of(source, columns), dict(source.fields)
        types = [found.get(n, BOOLEAN) for n in schema.names]
        with (
            path.open("wb") as file,
            writer_of("parquet", file, schema.names, types, schema, kept) as writer,
        ):
            for table in source.tables(columns):
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
        if not is_as_found(source, self.access):
            raise FileError(
                f'The files of "{name}" have changed while they were read: run it again.'
            )
        made = ParquetTable.open([str(path)], {}, name)
        known: dict[str, object] = {f.name: getattr(made, f.name) for f in dataclasses.fields(made)}
        known |= {"fields": source.fields, "settled": settled, "unsupported": source.unsupported}
        known |= {"patterns": tuple(source.patterns), "access": self.access, "rules": source.rules}
        return ConvertedTable(**known, origin=source, folder=folder, reads=self, columns=columns)  # type: ignore[arg-type]


def _renewed(table: UnreadTable | ConvertedTable) -> UnreadTable:
    made = table.anew()
    check_columns(table.fields, made.source)
    return made


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

    def tables(self, columns: frozenset[str]) -> Iterator[pa.Table]:
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
