"""Where columns of Parquet files come from when the cache lacks them: from the column store, where a connection has one, else from the files.

Both backends call `lift` before they read a file, and `keep` with what they have read; a device has functions of its own to take a
column of the host in, and to give one back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple
from typing import Literal as OneOf
from weakref import ref

from ..plan.physical import ParquetScan
from ..storage.column_store.column_file import StoredColumn
from ..storage.column_store.column_store import StoredPlace, place_of
from ..storage.columns.cache import (
    NO_ENCODING,
    CacheKey,
    ColumnCache,
    Tier,
    encoded_key,
    kernel_key,
    row_groups,
)
from ..storage.columns.encodings import EncodedColumn

if TYPE_CHECKING:
    import pyarrow as pa

    from ..plan.physical import RowGroups
    from ..storage.tables.parquet import ParquetTable
    from .context import Context

# A column of the host on the device with its bytes there, or None where the device would not have it so
Uploaded = Callable[[StoredColumn, StoredPlace], tuple[object, int] | None]

NOT_ON_DEVICE = "the GPU has no room for it, or not in this form"


class LiftedColumn(NamedTuple):
    """A column that a run has brought into the cache: from the store, or the bytes of Parquet files, for a `reason` if it was to be in the store."""

    table: str
    column: str
    tier: Tier | OneOf["Parquet"]
    bytes: int
    reason: str = ""


def lift(
    scan: object,
    sources: Iterable[str],
    device: str,
    context: Context,
    uploaded: Uploaded | None = None,
) -> None:
    """Bring those columns of a scan that the cache lacks into it from the store, all rows of them if these row groups are not there apart."""
    store = context.cache.store
    if store is None or not isinstance(scan, ParquetScan):
        return
    selection = row_groups(scan)
    # What has all rows serves for some, which filters leave; of those in a chunk no filter knows
    choices = (selection, None) if context.cache.is_lasting else (selection,)
    if choices == (None,):
        return
    for source in dict.fromkeys(sources):
        if (scan.table.name, source) in context.unlifted:
            continue
        for rows in dict.fromkeys(choices):
            place = place_of(scan.table, rows, source)
            if place is None or _is_cached(context.cache, place, device):
                break
            found = store.find(place, context.threads)
            if found.column is not None and _put(
                context.cache, place, found.column, device, uploaded
            ):
                size = found.column.value.nbytes
                context.lifted.append(LiftedColumn(place.table.name, source, "store", size))
                break
            reason = found.reason if found.column is None else NOT_ON_DEVICE
            if reason:
                context.unlifted[place.table.name, source] = reason


def lift_encoded(scan: ParquetScan, context: Context) -> bool:
    """Whether all columns of a scan are in the CPU's cache as kernels read them, after a look into the store."""
    if context.cache.store is None or scan.device != "cpu":
        return False
    lift(scan, scan.sources, "cpu", context)
    keys = (kernel_key(scan, source, "cpu") for source in scan.sources)
    return all(isinstance(context.cache.peek(key), EncodedColumn) for key in keys)


def read_from_files(
    table: ParquetTable, sources: Iterable[str], parts: Iterable[RowGroups], context: Context
) -> None:
    """Note what is about to be read of Parquet files, where there is a store that might have had it."""
    if context.cache.store is None:
        return
    chosen = list(parts)
    for source in sources:
        nbytes = sum(table.sizes.in_files(source, part) for part in chosen)
        reason = context.unlifted.pop((table.name, source), "")
        if nbytes:
            context.lifted.append(LiftedColumn(table.name, source, "Parquet", nbytes, reason))


def keep(
    scan: object,
    source: str,
    value: EncodedColumn | pa.Array,
    context: Context,
    refused: bool = False,
) -> None:
    """Have a column of a scan, on the host, written to the store; `refused`: it has no encoding."""
    store = context.cache.store
    if store is None or not isinstance(scan, ParquetScan):
        return
    place = place_of(scan.table, row_groups(scan), source)
    if place is not None:
        store.keep(place, StoredColumn(value, refused))


def keep_of_device(
    scan: object,
    source: str,
    column: EncodedColumn,
    context: Context,
    downloaded: Callable[[EncodedColumn], EncodedColumn],
) -> None:
    """Have a column of the device written to the store: it is copied when its turn comes, if the device still has it then."""
    store = context.cache.store
    if store is None or not isinstance(scan, ParquetScan):
        return
    place = place_of(scan.table, row_groups(scan), source)
    if place is None:
        return
    held = ref(column)

    def made() -> StoredColumn | None:
        there = held()
        return None if there is None else StoredColumn(downloaded(there))

    store.keep_made(place, column.nbytes, made)


def _is_cached(cache: ColumnCache, place: StoredPlace, device: str) -> bool:
    identity, rows, source = place.table.identity, place.rows, place.source
    encoded = cache.peek(encoded_key(identity, rows, source, device))
    if encoded is not None and encoded is not NO_ENCODING:
        return True
    return cache.holds(CacheKey(identity, rows, source, device))


def _put(
    cache: ColumnCache,
    place: StoredPlace,
    column: StoredColumn,
    device: str,
    uploaded: Uploaded | None,
) -> bool:
    """Put a column of the store into the cache, as it is mapped or as the device has it; False where that would not."""
    on_device = None if uploaded is None else uploaded(column, place)
    if on_device is None and uploaded is not None:
        return False
    identity, rows, source = place.table.identity, place.rows, place.source
    key = encoded_key(identity, rows, source, device)
    if not isinstance(column.value, EncodedColumn):
        if column.refused:
            cache.put(key, NO_ENCODING, 0)
        key = CacheKey(identity, rows, source, device)
    if on_device is None:
        cache.put_mapped(key, column.value)
    else:
        cache.put(key, *on_device)
    return True
