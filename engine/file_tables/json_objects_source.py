"""JSON files as a table of one column, which has the text of each value as it is in the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from ..plan.types import JSON, DataType, to_arrow
from ..storage.file_identity import FileIdentity
from ..storage.tables.access import AccessRules
from ..storage.tables.files import find_files
from .csv_fields import Options
from .json_records import MALFORMED, records
from .json_source import ROWS_AT_A_TIME, VALUE_COLUMN
from .path_columns import PathColumn, path_columns


@dataclass(frozen=True)
class JsonObjectsSource:
    """JSON files of which each value is a row."""

    name: str
    patterns: tuple[str, ...]
    options: Options
    rules: AccessRules
    parts: tuple[tuple[str, FileIdentity], ...]
    of_paths: tuple[PathColumn, ...]

    @classmethod
    def open(
        cls, patterns: Sequence[str], options: Options, rules: AccessRules
    ) -> JsonObjectsSource:
        """Find the files, of which none is read yet; raises `FileError` and `AccessDenied`."""
        parts = tuple((f.path, f.identity) for f in find_files(patterns, rules))
        of_paths = path_columns([path for path, _ in parts], options, [VALUE_COLUMN])
        return cls(parts[0][0], tuple(patterns), options, rules, parts, of_paths)

    @property
    def files(self) -> tuple[FileIdentity, ...]:
        return tuple(identity for _, identity in self.parts)

    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        named = {VALUE_COLUMN: JSON} | {column.name: column.type for column in self.of_paths}
        return tuple(named.items())

    @property
    def unsupported(self) -> Mapping[str, DataType]:
        return {}

    def anew(self, rules: AccessRules) -> JsonObjectsSource:
        return JsonObjectsSource.open(self.patterns, self.options, rules)

    def tables(self) -> Iterator[pa.Table]:
        schema = pa.schema([(name, to_arrow(t)) for name, t in self.fields])
        for number, (path, identity) in enumerate(self.parts):
            rows = records(path, identity, self.options, as_text=True)
            while batch := list(islice(rows, ROWS_AT_A_TIME)):
                texts = [None if value is MALFORMED else value for _, value in batch]
                columns = {VALUE_COLUMN: pa.array(texts, to_arrow(JSON))}
                columns |= {c.name: c.array(number, len(batch)) for c in self.of_paths}
                yield pa.table(columns, schema=schema)
