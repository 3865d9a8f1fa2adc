"""A scan's columns as kernels read them: encoded, from the cache or made now."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ....plan import physical as p
from ....plan.expr import Column
from ....records import dataclass
from ....storage.columns.cache import (
    NO_ENCODING,
    TableScan,
    kernel_key,
    part_of,
    plain_key,
    row_groups,
)
from ....storage.columns.encodings import EncodedColumn
from ....storage.tables.device_table import DeviceTable
from ...context import Context
from ..dictionaries import Held
from .load_columns import load
from .scan import DEVICE, memory_scan, parquet_scan
from .stored_columns import lift_columns


@dataclass(frozen=True)
class ScanColumns:
    """The columns of a scan by their sources, as far as they have an encoding; `loaded`: some had to be read, or copied from a tier below.

    `scan` reads all row groups where all rows of every column are in the cache: those serve for a selection of row groups
    too, which filters narrow down again.
    """

    scan: TableScan
    encoded: dict[str, EncodedColumn]
    rows: int
    loaded: bool


def scan_columns(scan: TableScan, context: Context) -> ScanColumns:
    """Return a scan's columns encoded, from the cache where they are there; what has no encoding is cached as it is."""
    lifted = len(context.lifted)
    scan = _widened(scan, context)
    held = _cached(scan, context)
    missing = [s for s in dict.fromkeys(scan.sources) if s not in held]
    found = _for_kernels(held)
    for made, _ in load(scan, missing, context):
        found |= made
        context.check()
    rows = next(iter(found.values())).rows if found else _row_count(part_of(scan, []), context)
    return ScanColumns(scan, found, rows, len(context.lifted) > lifted or bool(missing))


def plain_column(scan: TableScan, column: Column, context: Context) -> Held:
    """Return a column of a scan as operators read it, through the cache."""
    source = scan.sources[scan.made.index(column)]
    held: Held | None = context.cache.get(plain_key(scan, source, DEVICE))
    if held is not None:
        context.bytes_read += held.device_buffer_size()
        return held
    part = part_of(scan, [(column, source)])
    table = (
        memory_scan(part, (), context)
        if isinstance(part, p.MemoryScan)
        else parquet_scan(part, (), context)
    )
    return table.columns[column.id]


def _widened(scan: TableScan, context: Context) -> TableScan:
    """Return a scan of all row groups where the cache holds all columns of these, but not of the selected ones."""
    if isinstance(scan, p.MemoryScan) or row_groups(scan) is None:
        return scan
    whole, sources = dataclasses.replace(scan, selection=None), set(scan.sources)
    if len(_for_kernels(_cached(scan, context))) == len(sources):
        return scan
    for source in sources:
        keys = kernel_key(whole, source, DEVICE), plain_key(whole, source, DEVICE)
        if not any(map(context.cache.holds, keys)):
            return scan
    return whole


def encode_columns(scan: TableScan, context: Context) -> None:
    """Bring all columns of a scan into the cache: encoded, and compact or as they are where they have no encoding."""
    found = _cached(scan, context)
    missing = [s for s in scan.sources if s not in found]
    for _ in load(scan, missing, context, compact=True):
        context.check()


def _row_count(scan: TableScan, context: Context) -> int:
    """The rows of a scan that reads no column."""
    if isinstance(scan, p.MemoryScan):
        return memory_scan(scan, (), context).num_rows
    return parquet_scan(scan, (), context).num_rows


def _cached(scan: TableScan, context: Context) -> dict[str, object]:
    """What the cache holds of columns: for kernels, or compact, or as they are where they are known to have no encoding."""
    lift_columns(scan, context)
    found = {}
    for source in dict.fromkeys(scan.sources):
        held = context.cache.get(kernel_key(scan, source, DEVICE))
        if held is NO_ENCODING and isinstance(scan.table, DeviceTable):
            held = scan.table.device_columns[source]
        elif held is NO_ENCODING:
            held = context.cache.get(plain_key(scan, source, DEVICE))
        if held is not None:
            found[source] = held
    return found


def _for_kernels(held: Mapping[str, object]) -> dict[str, EncodedColumn]:
    return {s: column for s, column in held.items() if isinstance(column, EncodedColumn)}
