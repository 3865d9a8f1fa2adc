"""Arrow IPC files, streams and Feather files as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from ..errors import FileError, Unsupported
from ..plan.distinct_names import distinct_names
from ..plan.types import VARCHAR, DataType, Kind
from ..storage.tables.access import AccessRules, opened
from ..storage.tables.files import FoundFile, find_files
from ..storage.tables.memory_table import MemoryTable
from ..storage.tables.other_types import type_of
from .csv_fields import Options
from .file_source import FormatSource
from .text_types import NOT_KEPT

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

    def tables(self) -> Iterator[pa.Table]:
        kept = [i for i, (_, kind) in enumerate(self.own) if not _is_refused(kind)]
        for part in self.parts:
            for batch in _batches(part):
                table = pa.Table.from_batches([batch]).rename_columns([n for n, _ in self.own])
                rows = MemoryTable(part.path, table.select(kept)).in_result_types()
                if self.constant:
                    rows = rows.append_column(self.constant, pa.repeat(part.path, len(batch)))
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
