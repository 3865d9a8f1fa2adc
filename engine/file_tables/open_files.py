"""Opens files of each format for a connection.

read_text and read_blob: files of which each is a row, with all that is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from ..errors import FileError, Unsupported
from ..plan.arrow.arrow_types import arrow_table
from ..plan.types import BIGINT, BLOB, TIMESTAMPTZ, VARCHAR, DataType, to_arrow
from ..storage.tables.access import Access, AccessRules, opened
from ..storage.tables.files import FoundFile, find_files
from .arrow_source import ArrowSource
from .converted_table import UnreadTable
from .csv_fields import Options
from .csv_source import CsvSource, SniffedSource
from .file_source import FormatSource
from .json_source import JsonObjectsSource, JsonSource

if TYPE_CHECKING:
    from ..running import QueryRunner


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
