"""read_text and read_blob: files of which each is a row, with all that is in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from ..errors import FileError
from ..plan.arrow.arrow_types import arrow_table
from ..plan.types import BIGINT, BLOB, TIMESTAMPTZ, VARCHAR, DataType, to_arrow
from ..storage.tables.access import AccessRules, opened
from ..storage.tables.files import FoundFile, find_files
from .csv_fields import Options
from .file_source import FormatSource


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
