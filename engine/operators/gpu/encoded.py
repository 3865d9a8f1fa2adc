"""A scan's columns as kernels read them: encoded, from the cache or made now."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...codegen.values import NotFusable
from ...plan import physical as p
from ...plan.expr import Column
from ...storage.cache import CacheKey
from ...storage.device_encode import encode_codes, encode_on_device
from ...storage.encodings import EncodedColumn
from ..context import Context
from ..streaming import column_shares
from .dictionaries import Coded, Held
from .table import Table

DEVICE = "gpu"
ENCODED = "encoded"  # beside the row groups in cache keys


def encoded_columns(
    scan: p.ParquetScan | p.MemoryScan, context: Context
) -> tuple[dict[Column, EncodedColumn], int, bool]:
    """Return the scan's columns encoded, from the cache where they are there; their rows; whether any had to be loaded.

    Where all rows of a column are in the cache, they serve for a selection of row groups too, which filters narrow down
    again.  Raises `NotFusable` for a column that has no encoding.
    """
    identity: Any = getattr(scan.table, "identity")  # noqa: B009 - the catalog's tables have one
    selection = row_groups(scan)
    found = _cached(scan, identity, selection, context)
    if selection is not None and len(found) < len(scan.made):
        whole = _cached(scan, identity, None, context)
        found = whole if len(whole) == len(scan.made) else found
    missing = [pair for pair in zip(scan.made, scan.sources, strict=True) if pair[0] not in found]
    for share in column_shares(scan, missing, context) if missing else []:
        table = _read(scan, share, context)
        for column, source in share:
            encoded = _encoded(table.columns[column.id], column)
            key = CacheKey(identity, (ENCODED, selection), source, DEVICE)
            context.cache.put(key, encoded, encoded.nbytes)
            found[column] = encoded
            context.check()
    if not scan.made:
        return {}, _read(scan, [], context).num_rows, False
    ordered = {column: found[column] for column in scan.made}
    return ordered, ordered[scan.made[0]].rows, bool(missing)


def _read(
    scan: p.ParquetScan | p.MemoryScan, columns: list[tuple[Column, str]], context: Context
) -> Table:
    """Scan some of the columns as they are."""
    from . import OPERATORS

    part = dataclasses.replace(
        scan, made=tuple(c for c, _ in columns), sources=tuple(s for _, s in columns)
    )
    return OPERATORS[type(part)](part, (), context)


def row_groups(scan: p.ParquetScan | p.MemoryScan) -> Any:
    """Return which row groups a scan reads, None for all."""
    if isinstance(scan, p.MemoryScan):
        return None
    everything = getattr(scan.table, "all_row_groups", None)
    return None if scan.selection == everything else scan.selection


def _cached(
    scan: p.ParquetScan | p.MemoryScan, identity: Any, selection: Any, context: Context
) -> dict[Column, EncodedColumn]:
    found = {}
    for column, source in zip(scan.made, scan.sources, strict=True):
        held = context.cache.get(CacheKey(identity, (ENCODED, selection), source, DEVICE))
        if held is not None:
            found[column] = held
    return found


def _encoded(held: Held, column: Column) -> EncodedColumn:
    if isinstance(held, Coded):
        return encode_codes(held.codes, held.keys, column.type)
    encoded = encode_on_device(held, column.type)
    if encoded is None:
        raise NotFusable(f'"{column.name}" ({column.type}) has no narrow encoding')
    return encoded
