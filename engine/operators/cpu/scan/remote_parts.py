"""Remote Parquet files: only the bytes of the column chunks that a scan reads are asked for, those of the next parts while one is decoded."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

import pyarrow as pa

from ....plan.physical import RowGroups
from ....storage.remote.remote_files import (
    ByteRanges,
    Range,
    RemoteFile,
    ask,
    coalesced,
    fetched,
    gathered,
)
from ....storage.tables.access import opened
from ....storage.tables.parquet import ParquetTable

AHEAD_BYTES = 64 << 20  # that are here or under way before somebody decodes them


def chunk_ranges(table: ParquetTable, part: RowGroups, sources: Sequence[str]) -> list[Range]:
    """Return where the column chunks of some columns lie in a file."""
    names = (table.name_in(source, part.file) for source in sources)
    wanted = {name for name in names if name is not None}
    footer = table.footers[part.file]
    leaves = [i for i in range(footer.num_columns) if _is_of(footer.schema.column(i).path, wanted)]
    found: list[Range] = []
    for group in part.groups:
        row_group = footer.row_group(group)
        for leaf in leaves:
            chunk = row_group.column(leaf)
            begin = chunk.data_page_offset
            if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                begin = min(begin, chunk.dictionary_page_offset)
            found.append((begin, begin + chunk.total_compressed_size))
    return found


def _is_of(path: str, names: set[str]) -> bool:
    """Whether a leaf of the schema lies in one of some columns, whose names may have dots."""
    ends = [i for i, sign in enumerate(path) if sign == "."]
    return path in names or any(path[:end] in names for end in ends)


class ReadAhead:
    """The bytes of some parts of a table, asked for in their order; each is taken once."""

    def __init__(
        self, table: ParquetTable, parts: Sequence[RowGroups], sources: Sequence[str]
    ) -> None:
        remote = [
            (part, f) for part in parts if isinstance(f := table.files[part.file], RemoteFile)
        ]
        self._files = [file for _, file in remote]
        self._runs = [coalesced(chunk_ranges(table, part, sources)) for part, _ in remote]
        self._place = {part: number for number, (part, _) in enumerate(remote)}
        self._asked: list[list[list[Future[memoryview]]]] = []
        self._waiting = 0
        self._lock = threading.Lock()

    def take(self, part: RowGroups) -> ByteRanges:
        """Return a file of which the part's bytes are here; raises `FileError`."""
        number = self._place[part]
        with self._lock:
            self._go_on(number)
            asked = self._asked[number]
        made = gathered(self._files[number], self._runs[number], asked)
        with self._lock:
            self._asked[number] = []
            self._waiting -= self._size(number)
            self._go_on(-1)
        return made

    def close(self) -> None:
        """Ask for nothing any more."""
        with self._lock:
            futures = [f for asked in self._asked for pieces in asked for f in pieces]
            self._waiting = AHEAD_BYTES
        for future in futures:
            future.cancel()

    def _go_on(self, least: int) -> None:
        """Ask for the next parts up to one, and as far as there is room."""
        while (number := len(self._asked)) < len(self._files):
            if number > least and self._waiting + self._size(number) > AHEAD_BYTES:
                return
            self._asked.append(ask(self._files[number], self._runs[number]))
            self._waiting += self._size(number)

    def _size(self, number: int) -> int:
        return sum(end - begin for begin, end in self._runs[number])


@contextmanager
def bytes_of(
    table: ParquetTable, part: RowGroups, sources: Sequence[str], ahead: ReadAhead | None
) -> Iterator[pa.NativeFile]:
    """Open a file of a table for some columns of a part."""
    file = table.files[part.file]
    if not isinstance(file, RemoteFile):
        with opened(file) as source:
            yield source
        return
    taken = fetched(file, chunk_ranges(table, part, sources)) if ahead is None else ahead.take(part)
    with pa.PythonFile(taken, "r") as source:
        yield source
