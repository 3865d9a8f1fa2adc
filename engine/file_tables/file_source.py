"""What each format of files has in common: files that were found and looked at, whose rows are read later.

Columns that tell of a file's path: the path itself, and the folders that name partitions as Hive does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from ..errors import InvalidQuery
from ..plan.types import VARCHAR, DataType, to_arrow
from ..storage.file_identity import FileIdentity
from ..storage.tables.access import AccessRules
from ..storage.tables.files import FoundFile
from ..storage.tables.hive import partition_columns
from .csv_fields import CsvFile, Options


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
    def tables(self) -> Iterator[pa.Table]:
        """Yield all rows, in the Arrow types of `fields`; raises `FileError` and `ConversionError`."""

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
        return pa.repeat(pa.scalar(self.values[file], to_arrow(self.type)), rows)


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
