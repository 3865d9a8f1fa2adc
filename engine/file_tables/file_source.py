"""What each format of files has in common: files that were found and looked at, whose rows are read later;
and the simplest of them, Arrow IPC files, streams and Feather files.

Columns that tell of a file's path: the path itself, and the folders that name partitions as Hive does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

import pyarrow as pa

from ..errors import FileError, InvalidQuery, Unsupported
from ..plan.arrow.arrow_arrays import scalar_from
from ..plan.text.quoted_name import distinct_names
from ..plan.types import VARCHAR, DataType, Kind, to_arrow
from ..records import dataclass
from ..storage.file_identity import FileIdentity
from ..storage.tables.access import AccessRules, opened
from ..storage.tables.files import FoundFile, find_files
from ..storage.tables.hive import partition_columns
from ..storage.tables.memory_table import MemoryTable
from ..storage.tables.other_types import type_of
from .csv_fields import CsvFile, Options
from .text_types import NOT_KEPT

NO_COLUMN = ""


@dataclass(frozen=True)
class FileSource(ABC):
    """The files of a table as they were when they were looked at, called by the path of the first one."""

    name: str
    patterns: tuple[str, ...]
    options: Options
    rules: AccessRules
    parts: tuple[FoundFile, ...] | tuple[CsvFile, ...]

    @property
    @abstractmethod
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        """The names and types of the columns."""

    @abstractmethod
    def tables(self, columns: frozenset[str]) -> Iterator[pa.Table]:
        """Yield all rows with the schema that `schema_of` has for some columns; raises `FileError` and `ConversionError`."""

    def selected(self, columns: frozenset[str]) -> frozenset[str]:
        """Return the columns that `tables` has to make where a query asks for some: all, unless a format knows better."""
        return frozenset(name for name, _ in self.fields)

    @property
    def leaves_out_rows(self) -> bool:
        """Whether rows are left out that have bad values in columns that are asked for."""
        return False

    @property
    def files(self) -> tuple[FileIdentity, ...]:
        return tuple(part.identity for part in self.parts)

    @property
    def unsupported(self) -> Mapping[str, DataType]:
        """Columns that the files have and queries do not read."""
        return {}

    @abstractmethod
    def anew(self, rules: AccessRules) -> FileSource:
        """Return the files as they are now, with the columns that they have now; raises `AccessDenied`."""


def schema_of(source: FileSource, columns: frozenset[str]) -> pa.Schema:
    """Return the schema of rows with some columns; without any they have one of no values, since they are counted."""
    found = [(name, to_arrow(kind)) for name, kind in source.fields if name in columns]
    return pa.schema(found or [(NO_COLUMN, pa.bool_())])


class FormatSource(FileSource):
    """Files of one format, which paths and options tell of."""

    @classmethod
    @abstractmethod
    def open(cls, patterns: Sequence[str], options: Options, rules: AccessRules) -> Self:
        """Find the files and what their columns are; raises `FileError`, `AccessDenied` and `InvalidQuery`."""

    def anew(self, rules: AccessRules) -> Self:
        return self.open(self.patterns, self.options, rules)


@dataclass(frozen=True)
class PathColumn:
    """A column with one value for each file."""

    name: str
    type: DataType
    values: tuple[object, ...]

    def array(self, file: int, rows: int) -> pa.Array:
        return pa.repeat(scalar_from(self.values[file], to_arrow(self.type)), rows)


def path_columns(
    paths: Sequence[str], options: Mapping[str, object], names: Sequence[str]
) -> tuple[PathColumn, ...]:
    """Return the columns that `filename` and the options of Hive's folders ask for, of files with columns of some names.

    A folder's value stands for that of a column with its name.  Raises `InvalidQuery` and `FileError`.
    """
    asked, types = options.get("hive_partitioning"), options.get("hive_types")
    found = [
        PathColumn(column.name, column.type, column.values)
        for column in partition_columns(
            paths,
            asked if isinstance(asked, bool) else None,
            options.get("hive_types_autocast") is not False,
            types if isinstance(types, dict) else None,
        )
    ]
    wanted = options.get("filename")
    name = "filename" if wanted is True else wanted if isinstance(wanted, str) else None
    if name is not None and name.lower() in {known.lower() for known in names}:
        raise InvalidQuery(f'The files have a column "{name}" already: give filename another name.')
    return (*([PathColumn(name, VARCHAR, tuple(paths))] if name else []), *found)


_MAGIC, _FEATHER_1 = b"ARROW1", b"FEA1"


@dataclass(frozen=True)
class ArrowSource(FormatSource):
    """Files of the same columns that are read as one table."""

    parts: tuple[FoundFile, ...]
    own: tuple[tuple[str, DataType], ...]  # all columns of the files
    constant: str | None  # the name of the column of paths

    @classmethod
    def open(cls, patterns: Sequence[str], options: Options, rules: AccessRules) -> Self:
        """Find the files and read their schemas; raises `FileError` and `AccessDenied`."""
        parts = find_files(patterns, rules)
        own = _columns(parts[0])
        for part in parts[1:]:
            if _columns(part) != own:
                raise FileError(
                    f'The file "{part.path}" has not the columns of "{parts[0].path}": '
                    "files that are read as one table need the same names and types."
                )
        wanted = options.get("filename")
        constant = "filename" if wanted is True else wanted if isinstance(wanted, str) else None
        if all(_is_refused(kind) for _, kind in own) and not constant:
            raise Unsupported(f'The file "{parts[0].path}" has no column that queries can read.')
        return cls(parts[0].path, tuple(patterns), options, rules, parts, own, constant)

    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        constant = [(self.constant, VARCHAR)] if self.constant else []
        return (*((n, t) for n, t in self.own if not _is_refused(t)), *constant)

    @property
    def unsupported(self) -> Mapping[str, DataType]:
        return {name: kind for name, kind in self.own if _is_refused(kind)}

    def selected(self, columns: frozenset[str]) -> frozenset[str]:
        return columns

    def tables(self, columns: frozenset[str]) -> Iterator[pa.Table]:
        kept = [i for i, (n, kind) in enumerate(self.own) if n in columns and not _is_refused(kind)]
        for part in self.parts:
            for batch in _batches(part):
                table = pa.Table.from_batches([batch]).rename_columns([n for n, _ in self.own])
                rows = MemoryTable(part.path, table.select(kept)).in_result_types()
                if self.constant in columns:
                    rows = rows.append_column(self.constant, pa.repeat(part.path, len(batch)))
                if not rows.num_columns:
                    rows = pa.table([pa.nulls(len(batch), pa.bool_())], schema_of(self, columns))
                yield rows


def _is_refused(kind: DataType) -> bool:
    return kind.kind is Kind.OTHER or (kind.kind in NOT_KEPT and kind.kind is not Kind.NULL)


def _columns(part: FoundFile) -> tuple[tuple[str, DataType], ...]:
    with _reader(part) as reader:
        names = distinct_names(reader.schema.names)
        return tuple((n, type_of(t)) for n, t in zip(names, reader.schema.types, strict=True))


def _batches(part: FoundFile) -> Iterator[pa.RecordBatch]:
    with _reader(part) as reader:
        if isinstance(reader, pa.ipc.RecordBatchFileReader):
            numbers = range(reader.num_record_batches)
            batches: Iterator[pa.RecordBatch] = (reader.get_batch(i) for i in numbers)
        else:
            batches = iter(reader)
        for batch in batches:
            batch.validate(full=True)
            yield batch


@contextmanager
def _reader(
    part: FoundFile,
) -> Iterator[pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader]:
    try:
        with opened(part.identity) as file:
            magic = file.read(len(_MAGIC))
            file.seek(0)
            if magic.startswith(_FEATHER_1):
                raise Unsupported(
                    f'The file "{part.path}" is Feather of version 1: write it anew with version 2.'
                )
            is_file = magic == _MAGIC
            yield pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
    except (OSError, UnicodeError, pa.ArrowException) as error:
        raise FileError(f'The file "{part.path}" cannot be read as Arrow IPC: {error}.') from error
