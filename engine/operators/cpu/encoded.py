"""A scan's columns as kernels read them: encoded, from the cache or made now."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from ...codegen.values import NotFusable
from ...plan import physical as p
from ...plan.expr import Column
from ...storage.cache import CacheKey, encoded_key
from ...storage.encode import encode
from ...storage.encodings import EncodedColumn
from ..context import Context
from ..streaming import column_shares
from .scan import memory_scan, parquet_scan, read_columns

DEVICE = "cpu"

# Columns of a scan by their sources: what was encoded, and the names of those that have no encoding
Encoded = tuple[dict[str, EncodedColumn], list[str]]


def encoded_columns(
    scan: p.ParquetScan | p.MemoryScan, context: Context
) -> tuple[dict[Column, EncodedColumn], int, bool]:
    """Return the scan's columns encoded, from the cache where they are there; their rows; whether any had to be loaded.

    Where all rows of a column are in the cache, they serve for a selection of row groups too, which filters narrow down
    again.  Raises `NotFusable` for a column that has no encoding.
    """
    if not scan.made:
        return {}, _row_count(scan, context), False
    found = _cached(scan, row_groups(scan), context)
    if row_groups(scan) is not None and len(found) < len(set(scan.sources)):
        whole = _cached(scan, None, context)
        found = whole if len(whole) == len(set(scan.sources)) else found
    missing = [s for s in scan.sources if s not in found]
    for made, refused in _encode(scan, missing, context):
        found |= made
        for column, source in zip(scan.made, scan.sources, strict=True):
            if source in refused:
                raise NotFusable(f'"{column.name}" ({column.type}) has no narrow encoding')
    ordered = {c: found[s] for c, s in zip(scan.made, scan.sources, strict=True)}
    return ordered, ordered[scan.made[0]].rows, bool(missing)


def encode_columns(scan: p.ParquetScan | p.MemoryScan, context: Context) -> None:
    """Bring all columns of a scan into the cache: encoded, and as they are where they have no encoding."""
    found = _cached(scan, row_groups(scan), context)
    for _ in _encode(scan, [s for s in scan.sources if s not in found], context):
        context.check()


def _encode(
    scan: p.ParquetScan | p.MemoryScan, missing: Sequence[str], context: Context
) -> Iterator[Encoded]:
    """Load columns into the cache, as many at a time as there is room for; what has no encoding is kept as it is."""
    identity: Any = getattr(scan.table, "identity")  # noqa: B009 - the catalog's tables have one
    types = {s: c for c, s in zip(scan.made, scan.sources, strict=True)}
    pairs = [(types[source], source) for source in dict.fromkeys(missing)]
    for share in column_shares(scan, pairs, context) if pairs else []:
        arrays = read_columns(_part(scan, share), context)
        made: dict[str, EncodedColumn] = {}
        refused = []
        for column, source in share:
            array = arrays.pop(source)
            encoded = encode(array, column.type, context.threads)
            if encoded is None:
                refused.append(source)
                key = CacheKey(identity, row_groups(scan), source, DEVICE)
                if not context.cache.holds(key):
                    context.cache.put(key, array, array.nbytes)
            else:
                made[source] = encoded
                key = encoded_key(identity, row_groups(scan), source, DEVICE)
                context.cache.put(key, encoded, encoded.nbytes)
            context.check()
        yield made, refused


def _part(
    scan: p.ParquetScan | p.MemoryScan, columns: Sequence[tuple[Column, str]]
) -> p.ParquetScan | p.MemoryScan:
    """The scan of some of the columns."""
    return dataclasses.replace(
        scan, made=tuple(c for c, _ in columns), sources=tuple(s for _, s in columns)
    )


def _row_count(scan: p.ParquetScan | p.MemoryScan, context: Context) -> int:
    """The rows of a scan that reads no column."""
    if isinstance(scan, p.MemoryScan):
        return memory_scan(scan, (), context).num_rows
    return parquet_scan(scan, (), context).num_rows


def row_groups(scan: p.ParquetScan | p.MemoryScan) -> Any:
    """Return which row groups a scan reads, None for all."""
    if isinstance(scan, p.MemoryScan):
        return None
    everything = getattr(scan.table, "all_row_groups", None)
    return None if scan.selection == everything else scan.selection


def row_count(scan: p.ParquetScan) -> int:
    """Return how many rows the row groups of a scan have."""
    table: Any = scan.table
    parts = table.all_row_groups if scan.selection is None else scan.selection
    return sum(table.group_rows[part.file][group] for part in parts for group in part.groups)


def _cached(
    scan: p.ParquetScan | p.MemoryScan, selection: Any, context: Context
) -> dict[str, EncodedColumn]:
    identity: Any = getattr(scan.table, "identity")  # noqa: B009 - the catalog's tables have one
    found = {}
    for source in dict.fromkeys(scan.sources):
        held = context.cache.get(encoded_key(identity, selection, source, DEVICE))
        if held is not None:
            found[source] = held
    return found
