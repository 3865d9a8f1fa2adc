"""A table of a folder: its columns and rules, the files of its rows, and the rows that stand in the catalog's log."""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from ..errors import FileError
from ..plan.changes.catalog_objects import TableRules
from ..plan.logical import TableStatistics
from ..plan.types import DataType, to_arrow
from ..records import dataclass
from ..threads.fork_locks import new_lock
from .rows_files import (
    Fields,
    InlineRows,
    RowsFile,
    check_file,
    read_arrow,
    read_parquet,
    row_groups,
    schema_of,
    write_rows,
)

if TYPE_CHECKING:
    from ..storage.tables.memory_table import MemoryTable
    from ..storage.tables.parquet import ParquetTable

    Rows = MemoryTable | ParquetTable


class RowsPlace:
    """Where the rows of a folder's tables lie; `scratch` gives a folder for copies of rows that stand in the log alone.

    `written` are the files since it was emptied.
    """

    def __init__(self, data: Path, scratch: Callable[[], Path]) -> None:
        self.data, self.scratch = data, scratch
        self.written: list[str] = []
        self._in_use: weakref.WeakSet[object] = weakref.WeakSet()
        self._lock = new_lock()

    def write(self, fields: Fields, tables: Iterable[pa.Table]) -> RowsFile:
        """Write rows to a new file; raises `FileError`."""
        file = write_rows(self.data, fields, tables)
        self.written.append(file.name)
        return file

    def hold(self, table: object) -> None:
        """Keep the files of a table while somebody has it."""
        with self._lock:
            self._in_use.add(table)

    def names_in_use(self) -> set[str]:
        """Return the names of files that tables have which somebody has."""
        with self._lock:
            tables = tuple(self._in_use)
        files = (file for table in tables for file in getattr(table, "files", ()))
        return {f.name if isinstance(f, RowsFile) else Path(f.path).name for f in files}


@dataclass(eq=False)
class OpenedRows:
    """What queries read of a version of a table, once one has asked for it."""

    read: Rows | None = None
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)


class StoredTable:
    """One version of a table in a folder; a change makes the next one, and queries that run keep theirs.

    What a query plans with is its columns and how many rows it has; `reopened` opens the files when it runs.
    """

    settled = True
    stays_in_catalog = True  # when a plan has what `reopened` gives in its place

    def __init__(
        self,
        name: str,
        fields: Fields,
        rules: TableRules,
        place: RowsPlace,
        files: tuple[RowsFile, ...] = (),
        tail: tuple[InlineRows, ...] = (),
    ) -> None:
        self.name, self.fields, self.table_rules = name, tuple(fields), rules
        self.all_fields = self.fields
        self.unsupported: Mapping[str, DataType] = {}
        self.place, self.files, self.tail = place, files, tail
        self.rows = OpenedRows()
        place.hold(self)

    @cached_property
    def types(self) -> Mapping[str, DataType]:
        return dict(self.fields)

    @property
    def num_rows(self) -> int:
        return sum(file.rows for file in self.files) + sum(part.count for part in self.tail)

    @property
    def identity(self) -> Hashable:
        """What columns of it are cached under, once it was read."""
        return None if self.rows.read is None else self.rows.read.identity

    def statistics(self) -> TableStatistics:
        return TableStatistics(self.num_rows, {})

    def is_current(self) -> bool:
        """Whether it can be read from, which what `reopened` gives can."""
        return False

    def changed(
        self,
        *,
        name: str | None = None,
        rules: TableRules | None = None,
        files: tuple[RowsFile, ...] | None = None,
        tail: tuple[InlineRows, ...] | None = None,
    ) -> StoredTable:
        """Return a version of the table with some parts of it exchanged."""
        return StoredTable(
            self.name if name is None else name,
            self.fields,
            self.table_rules if rules is None else rules,
            self.place,
            self.files if files is None else files,
            self.tail if tail is None else tail,
        )

    def renamed(self, name: str) -> StoredTable:
        """Return the same version under another name, which shares what was read."""
        if name == self.name and getattr(name, "place", None) == getattr(self.name, "place", None):
            return self
        made = self.changed(name=name)
        made.rows = self.rows
        return made

    def appended(self, rows: pa.Table) -> StoredTable:
        """Return the next version of the table; `rows` has its columns in their order, in the types of results."""
        return self.changed(tail=(*self.tail, InlineRows.of(rows))) if rows.num_rows else self

    def reopened(self) -> Rows:
        """Return the table of its rows; raises `FileError`, naming a file that is gone or damaged."""
        with self.rows.lock:
            found = self.rows.read
            if found is None or not self._is_as_read(found):
                found = self.rows.read = self._opened()
                self.place.hold(found)
            return found

    @staticmethod
    def _is_as_read(read: Rows) -> bool:
        looked = getattr(read, "is_current", None)
        return looked is None or looked()

    def _opened(self) -> Rows:
        for file in self.files:
            check_file(self.place.data, file, self.name)
        if all(file.is_parquet for file in self.files) and self.files:
            return self._of_parquet()
        from ..storage.tables.memory_table import MemoryTable

        data = self._in_memory()
        return MemoryTable(self.name, data, [t for _, t in self.fields], self.table_rules)

    def _of_parquet(self) -> ParquetTable:
        from ..storage.tables.access import Access, AccessRules
        from ..storage.tables.parquet import ParquetTable

        paths = [self.place.data / file.name for file in self.files]
        if self.tail:
            scratch = self.place.scratch()
            rows = [part.table(self.fields) for part in self.tail]
            paths.append(scratch / write_rows(scratch, self.fields, rows).name)
        folders = tuple(dict.fromkeys(str(path.parent.resolve()) for path in paths))
        access = Access(AccessRules(folders))
        whole = {"hive_partitioning": False}
        found = ParquetTable.open(list(map(str, paths)), whole, self.name, access)
        for name, data_type in self.fields:
            known = found.types.get(name)
            if known is None or to_arrow(known) != to_arrow(data_type):
                raise FileError(
                    f'The file "{paths[0]}" has no column "{name}" of the type {data_type}, which the table "{self.name}" has: '
                    "restore it from a backup, or drop the table."
                )
        return dataclasses.replace(
            found, fields=self.fields, settled=True, unsupported={}, has_checksums=True
        )

    def _in_memory(self) -> pa.Table:
        """Return all rows."""
        parts = [schema_of(self.fields).empty_table()]
        for file in self.files:
            check_file(self.place.data, file, self.name)
            if file.is_parquet:
                parts += read_parquet(self.place.data, file, self.fields, self.name)
            else:
                parts.append(read_arrow(self.place.data, file, self.fields, self.name))
        parts += [part.table(self.fields) for part in self.tail]
        return pa.concat_tables(parts)

    def on_host(self) -> MemoryTable:
        """Return the table with all of its rows in memory, as statements that change rows need it."""
        from ..storage.tables.memory_table import MemoryTable

        data = self._in_memory()
        return MemoryTable(self.name, data, [t for _, t in self.fields], self.table_rules)


def stored(
    table: MemoryTable, place: RowsPlace, inline_bytes: int, name: str | None = None
) -> StoredTable:
    """Return a table of memory as one of a folder, with its rows in a file unless they are few; raises `FileError`."""
    host = table.on_host()
    fields = tuple(host.fields)
    data = host.in_result_types()
    made = StoredTable(table.name if name is None else name, fields, host.table_rules, place)
    if not data.num_rows:
        return made
    if data.nbytes <= inline_bytes:
        return made.changed(tail=(InlineRows.of(data.combine_chunks()),))
    return made.changed(files=(place.write(fields, row_groups(data)),))


def without_tail(table: StoredTable) -> StoredTable:
    """Return a table whose rows all lie in files; raises `FileError`."""
    if not table.tail:
        return table
    rows = pa.concat_tables([part.table(table.fields) for part in table.tail])
    written = table.place.write(table.fields, row_groups(rows))
    return table.changed(files=(*table.files, written), tail=())


def merged(table: StoredTable, small: int, largest: int) -> StoredTable:
    """Return a table in which small files that follow each other are one; raises `FileError`."""
    files: list[RowsFile] = []
    for run in _runs(table.files, small, largest):
        if len(run) == 1:
            files += run
            continue
        read = (part for file in run for part in _read(table, file))
        files.append(table.place.write(table.fields, read))
    return table if len(files) == len(table.files) else table.changed(files=tuple(files))


def _runs(files: Sequence[RowsFile], small: int, largest: int) -> list[list[RowsFile]]:
    runs: list[list[RowsFile]] = []
    for file in files:
        joins = bool(runs) and file.bytes < small and runs[-1][-1].bytes < small
        if joins and sum(f.bytes for f in runs[-1]) + file.bytes <= largest:
            runs[-1].append(file)
        else:
            runs.append([file])
    return runs


def _read(table: StoredTable, file: RowsFile) -> Sequence[pa.Table]:
    check_file(table.place.data, file, table.name)
    reader = read_parquet if file.is_parquet else read_arrow
    found = reader(table.place.data, file, table.fields, table.name)
    return [found] if isinstance(found, pa.Table) else list(found)
