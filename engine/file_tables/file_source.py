"""What each format of files has in common: files that were found and looked at, whose rows are read later."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from ..plan.types import DataType
from ..storage.file_identity import FileIdentity
from ..storage.tables.access import AccessRules
from ..storage.tables.files import FoundFile
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
