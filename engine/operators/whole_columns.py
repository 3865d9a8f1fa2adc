"""Columns that do not fit into memory, encoded whole before the run that reads them, a run of row groups at a time.

On the CPU they are written to the column store: the run then maps them and needs no chunks, and neither does any later one, whichever of
the columns it reads.  CPU seconds of TPC-H's 22 queries: SF1 with memory_limit = 256 MB and a cache of 64 MB, 6.4 while the store fills
and 0.8 afterwards, 11.7 each time without a store; SF10 with 2 GB and 512 MB, 48 and 14, without 138 (`benchmarks.micro.store_limits`).
For a GPU they are kept in the host's memory, or else in the store: the chunks of later runs are rows of them, which are copied as they
are where Parquet would have to be read and encoded.  `LEAST_SHARE` above 1 switches it off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Protocol, cast

import pyarrow as pa

from ..plan import physical as p
from ..plan.expr import Column
from ..records import dataclass
from ..storage.column_store.column_file import StoredColumn
from ..storage.column_store.column_parts import MOST_TEXT, Allocate, ColumnParts
from ..storage.column_store.column_store import StoredPlace, place_of
from ..storage.columns.cache import HOST, CacheKey, ColumnCache, encoded_key, part_of
from ..storage.columns.encodings import EncodedColumn
from ..storage.tables.parquet import ParquetTable
from .column_tiers import is_on_host, keep_in_memory
from .context import Context
from .streaming import row_group_runs

LEAST_SHARE = 0.5  # of a table's rows that a scan reads, so that all are worth being read

# Reads columns of some row groups, by their sources: encoded, or as operators read them, on the host; None for what is neither
Read = Callable[[p.ParquetScan, Context], Mapping[str, EncodedColumn | pa.Array | None]]


class Keeper(Protocol):
    """Where columns are kept whole: a column store, or memory."""

    def parts(self, place: StoredPlace) -> ColumnParts | None:
        """Begin a column; None where it is not worth it."""
        ...

    def write(self, place: StoredPlace, column: StoredColumn, check: Callable[[], None]) -> bool:
        """Keep a column; False where there is no room."""
        ...

    def leave(self, place: StoredPlace) -> None:
        """Do not begin a column again."""
        ...

    def refuse(self, error: Exception) -> None:
        """Keep nothing more."""
        ...


@dataclass(frozen=True)
class HostMemory:
    """Memory of the host as a keeper, beside the device whose cache has no room; `allocate` gives it.  The column store gets the columns too."""

    cache: ColumnCache
    allocate: Allocate

    def parts(self, place: StoredPlace) -> ColumnParts | None:
        if _key(place) in self.cache.left:
            return None
        return ColumnParts(self.allocate, place.table.types[place.source])

    def write(self, place: StoredPlace, column: StoredColumn, check: Callable[[], None]) -> bool:
        store, value = self.cache.store, column.value
        if store is not None and place_of(*place) is not None:
            if not isinstance(value, pa.ChunkedArray):
                store.write(place, column, check)
            elif value.nbytes <= MOST_TEXT:
                store.write(place, StoredColumn(pa.concat_arrays(value.chunks), True), check)
        return keep_in_memory(self.cache, place, column)

    def leave(self, place: StoredPlace) -> None:
        self.cache.left.add(_key(place))

    def refuse(self, error: Exception) -> None:
        raise error


def _key(place: StoredPlace) -> CacheKey:
    return CacheKey(place.table.identity, place.rows, place.source, HOST)


def missing_columns(scan: p.ParquetScan, context: Context) -> list[tuple[Column, str]]:
    """Return those columns of a scan that are in no cache whole; none where it reads too few of the rows."""
    cache = context.cache.lasting
    table = cast("ParquetTable", scan.table)
    if table.identity is None or _rows(scan) < LEAST_SHARE * table.num_rows:
        return []

    def is_there(source: str) -> bool:
        keys = (make(table.identity, None, source, scan.device) for make in (encoded_key, CacheKey))
        return any(map(cache.holds, keys)) or is_on_host(cache, StoredPlace(table, None, source))

    unique = {source: column for column, source in zip(scan.made, scan.sources, strict=True)}
    return [(c, s) for s, c in unique.items() if not is_there(s) and s not in table.constants]


def store_whole(
    scan: p.ParquetScan,
    columns: Sequence[tuple[Column, str]],
    keeper: Keeper,
    read: Read,
    context: Context,
) -> bool:
    """Have columns of a scan kept whole, all that are read together; False where no more are to be tried.  Raises `MemoryError`."""
    every = replace(scan, selection=None)
    table = cast("ParquetTable", scan.table)
    with ExitStack() as opened:
        try:
            begun = {}
            for column, source in columns:
                place = StoredPlace(table, None, source)
                parts = keeper.parts(place)
                if parts is not None:
                    begun[source] = column, place, opened.enter_context(parts)
            if begun:
                _store(every, begun, keeper, read, context)
        except OSError as error:
            keeper.refuse(error)
            return False
    return True


def _store(
    every: p.ParquetScan,
    begun: dict[str, tuple[Column, StoredPlace, ColumnParts]],
    keeper: Keeper,
    read: Read,
    context: Context,
) -> None:
    def scan_left() -> p.ParquetScan:
        found = part_of(every, [(column, source) for source, (column, *_) in begun.items()])
        assert isinstance(found, p.ParquetScan)
        return found

    for chunk in row_group_runs(scan_left(), context):
        context.check()
        if not begun:
            return
        rows = dict(read(replace(scan_left(), selection=chunk), context))
        for source in list(begun):
            _, place, parts = begun[source]
            some_rows = rows.pop(source)
            if some_rows is None or not parts.add(some_rows, context.threads):
                keeper.leave(place)
                del begun[source]
    for source in list(begun):
        _, place, parts = begun.pop(source)
        whole = parts.whole(context.threads)
        if whole is None or not keeper.write(place, whole, context.check):
            keeper.leave(place)


def _rows(scan: p.ParquetScan) -> int:
    table = cast("ParquetTable", scan.table)
    parts = table.all_row_groups if scan.selection is None else scan.selection
    return sum(table.group_rows[part.file][group] for part in parts for group in part.groups)
