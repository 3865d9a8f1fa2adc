"""Columns that do not fit into memory, written whole to the column store before the run that reads them, a run of row groups at a time.

The run then maps them and needs no chunks, and neither does any later one, whichever of the columns it reads.  CPU seconds of TPC-H's 22
queries: SF1 with memory_limit = 256 MB and a cache of 64 MB, 6.4 while the store fills and 0.8 afterwards, 11.7 each time without a store;
SF10 with 2 GB and 512 MB, 48 and 14, without 138 (`benchmarks.micro.store_limits`).  `LEAST_SHARE` above 1 switches it off.
"""

from __future__ import annotations

from dataclasses import replace

from ....plan import physical as p
from ....storage.column_store.column_parts import ColumnParts
from ....storage.column_store.column_store import ColumnStore, StoredPlace, place_of
from ....storage.columns.cache import CacheKey, encoded_key, part_of
from ...context import Context
from ...streaming import row_group_runs
from .encoded import row_count
from .scan import DEVICE, read_columns

LEAST_SHARE = 0.5  # of a table's rows that a scan reads, so that all are worth being read


def store_columns(scan: p.ParquetScan, context: Context) -> None:
    """Write the columns of a scan that are not in the store; those for which there is no room stay where they are."""
    store, cache = context.cache.store, context.cache.lasting
    every = replace(scan, selection=None)
    if store is None or row_count(scan) < LEAST_SHARE * row_count(every):
        return
    for column, source in zip(scan.made, scan.sources, strict=True):
        place = place_of(scan.table, None, source)
        if place is None:
            continue
        keys = (
            make(place.table.identity, None, source, DEVICE) for make in (encoded_key, CacheKey)
        )
        if any(map(cache.holds, keys)):
            continue
        one = part_of(every, [(column, source)])
        assert isinstance(one, p.ParquetScan)
        parts = store.parts(place)
        if parts is None:
            continue
        try:
            with parts:
                is_stored = _store(one, place, parts, store, context)
        except OSError as error:
            store.refuse(error)
            return
        except MemoryError:  # the run itself has smaller chunks, or says what is wrong
            return
        if not is_stored:
            store.leave(place)


def _store(
    scan: p.ParquetScan,
    place: StoredPlace,
    parts: ColumnParts,
    store: ColumnStore,
    context: Context,
) -> bool:
    for chunk in row_group_runs(scan, context):
        context.check()
        array = read_columns(replace(scan, selection=chunk), context)[place.source]
        if not parts.add(array, context.threads):
            return False
        del array
    whole = parts.whole(context.threads)
    return whole is not None and store.write(place, whole, context.check)
