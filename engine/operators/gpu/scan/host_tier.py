"""Columns that the device has no room for, encoded by it a run of row groups at a time, and kept whole on the host."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import pyarrow as pa

from ....errors import ExecutionError
from ....plan import physical as p
from ....storage.column_store.column_file import StoredColumn
from ....storage.column_store.column_store import StoredPlace, place_of
from ....storage.columns.cache import HOST, ChunkCache, plain_key
from ....storage.columns.encodings import EncodedColumn
from ....storage.tables.parquet import ParquetTable
from ...column_tiers import LiftedColumn, keep_in_memory, lift, mapped_column
from ...context import Context
from ...whole_columns import HostMemory, Keeper, missing_columns, store_whole
from ..memory.device import on_device
from ..memory.link import locked_bytes, locked_copy
from .load_columns import load
from .scan import DEVICE
from .stored_columns import on_host


def store_columns(scan: p.ParquetScan, context: Context) -> None:
    """Have the columns of a scan kept in memory of the host, or in the column store, if they are in neither; without room they stay in their files."""
    try:
        _store_columns(scan, (), context)
    except (MemoryError, ExecutionError):  # the run itself goes on in chunks, or says what is wrong
        return


@on_device
def _store_columns(scan: p.ParquetScan, inputs: tuple[()], context: Context) -> None:
    cache, table = context.cache.lasting, scan.table
    assert isinstance(table, ParquetTable)
    limit, rows = cache.limits[HOST], table.num_rows
    has_room = table.sizes.narrow(scan.sources, rows) <= limit
    whole = dataclasses.replace(scan, selection=None)
    lift(whole, whole.sources, HOST, dataclasses.replace(context, lifted=[]))
    if has_room:
        _lock(table, scan.sources, context)
    missing = missing_columns(scan, context)
    if not missing:
        return
    keeper: Keeper
    if has_room:
        # Parts of columns are no less in memory than the columns are
        size = table.sizes.narrow([source for _, source in missing], rows)
        cache.release(HOST, max(0, cache.used(HOST) + size - limit))
        keeper = HostMemory(cache, locked_bytes)
    elif cache.store is not None:
        keeper = cache.store
        missing = [pair for pair in missing if place_of(table, None, pair[1]) is not None]
    else:
        return
    store_whole(scan, missing, keeper, _read_on_host, context)


def _lock(table: ParquetTable, sources: Iterable[str], context: Context) -> None:
    """Have what the host has over mapped files in locked memory instead, as far as there is any."""
    cache = context.cache.lasting
    for source in dict.fromkeys(sources):
        place = StoredPlace(table, None, source)
        column = mapped_column(cache, place)
        if column is not None:
            try:
                value = locked_copy(column.value, context.threads)
            except (MemoryError, ExecutionError):
                return
            if keep_in_memory(cache, place, StoredColumn(value, column.refused)):
                context.lifted.append(LiftedColumn(table.name, source, "store", value.nbytes))
            context.check()


def _read_on_host(
    scan: p.ParquetScan, context: Context
) -> dict[str, EncodedColumn | pa.Array | None]:
    """Return columns of some row groups as the device encodes them, and texts that it leaves as they are."""
    own = ChunkCache(context.cache, is_stored=False)
    inner = dataclasses.replace(context, cache=own, bytes_read=0)
    found: dict[str, EncodedColumn | pa.Array | None] = {}
    for made, refused in load(scan, scan.sources, inner):
        found |= {source: on_host(column) for source, column in made.items()}
        found |= {source: on_host(own.get(plain_key(scan, source, DEVICE))) for source in refused}
        own.clear()
    context.bytes_read += inner.bytes_read
    return found
