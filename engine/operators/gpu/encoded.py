"""A scan's columns as kernels read them: encoded, from the cache or made now."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ...codegen.values import NotFusable
from ...plan import physical as p
from ...plan.expr import Column
from ...plan.types import Kind
from ...storage.cache import CacheKey, encoded_key
from ...storage.device import DeviceTable
from ...storage.device_encode import encode_codes, encode_on_device
from ...storage.encodings import EncodedColumn
from ...storage.parquet import ParquetTable
from ..context import Context
from ..streaming import column_shares
from .dictionaries import Coded, Held
from .dictionaries import encoded as with_codes
from .scan import memory_scan, parquet_scan, read_columns

DEVICE = "gpu"
# More turns hide more of the encoding behind reading, and read the footers again each time
MOST_TURNS = 3
BYTES_A_TURN = 1 << 30
ENCODERS = 4

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
        for columns in _read_ahead(scan, share, context):
            made: dict[str, EncodedColumn] = {}
            refused = []
            for source, encoded in _encode_together(columns, types, context):
                key = encoded_key(identity, row_groups(scan), source, DEVICE)
                if isinstance(encoded, EncodedColumn):
                    made[source] = encoded
                    context.cache.put(key, encoded, encoded.nbytes)
                    continue
                refused.append(source)
                key = CacheKey(identity, row_groups(scan), source, DEVICE)
                if not isinstance(scan.table, DeviceTable) and not context.cache.holds(key):
                    context.cache.put(key, encoded, encoded.device_buffer_size())
            yield made, refused


def _read_ahead(
    scan: p.ParquetScan | p.MemoryScan, share: Sequence[tuple[Column, str]], context: Context
) -> Iterator[dict[str, Held]]:
    """Yield columns, a few at a time, while a thread reads the next ones: files keep the host busy, encoding the device."""
    turns = _turns(scan, share)
    with ThreadPoolExecutor(1, thread_name_prefix="fuseline-columns") as pool:
        ahead = pool.submit(read_columns, _part(scan, turns[0]), context)
        for following in [*turns[1:], None]:
            columns = ahead.result()
            if following is not None:
                ahead = pool.submit(read_columns, _part(scan, following), context)
            yield columns
            del columns


def _turns(
    scan: p.ParquetScan | p.MemoryScan, share: Sequence[tuple[Column, str]]
) -> list[list[tuple[Column, str]]]:
    """Split columns into turns of about equal size; long strings come last, since they are looked at and not encoded."""
    table = scan.table
    if not isinstance(table, ParquetTable):
        return [list(share)]
    chosen = table.all_row_groups if row_groups(scan) is None else scan.selection or ()  # type: ignore[union-attr]
    sizes = {s: sum(table.sizes.plain([s], part) for part in chosen) for _, s in share}
    total = sum(sizes.values())
    target = max(BYTES_A_TURN, total / MOST_TURNS)
    turns: list[list[tuple[Column, str]]] = [[]]
    room = target
    for pair in sorted(share, key=lambda pair: _is_long(table, *pair)):
        if turns[-1] and sizes[pair[1]] / 2 > room:
            turns.append([])
            room += target
        turns[-1].append(pair)
        room -= sizes[pair[1]]
    return turns


def _is_long(table: ParquetTable, column: Column, source: str) -> bool:
    return column.type.kind is Kind.VARCHAR and not (
        source in table.constants or table.has_small_dictionary(source)
    )


def _encode_together(
    columns: dict[str, Held], types: Mapping[str, Column], context: Context
) -> Iterator[tuple[str, EncodedColumn | Held]]:
    """Yield columns encoded, or as they are; threads take them in turn, so that one's wait for a number hides behind others.

    `columns` is emptied on the way: what has been encoded takes no memory any more.
    """
    sources = list(columns)

    def encode(source: str) -> EncodedColumn | Held:
        return _encoded(columns.pop(source), types[source])

    with ThreadPoolExecutor(min(ENCODERS, len(sources) or 1)) as pool:
        pending = [pool.submit(encode, source) for source in sources]
        for source, future in zip(sources, pending, strict=True):
            yield source, future.result()
            context.check()


def _encoded(held: Held, column: Column) -> EncodedColumn | Held:
    if not isinstance(held, Coded):
        held = with_codes(held)
    if isinstance(held, Coded):
        return encode_codes(held.codes, held.keys, column.type)
    return encode_on_device(held, column.type) or held


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
