"""The columns of a scan of a table, for both backends: some of them, and the keys by which the cache has them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..plan import physical as p
from ..plan.expr import Column
from ..storage.columns.cache import CacheKey, encoded_key

TableScan = p.ParquetScan | p.MemoryScan


def row_groups(scan: TableScan) -> Any:
    """Return which row groups a scan reads, None for all."""
    if isinstance(scan, p.MemoryScan):
        return None
    everything = getattr(scan.table, "all_row_groups", None)
    return None if scan.selection == everything else scan.selection


def part_of(scan: TableScan, columns: Sequence[tuple[Column, str]]) -> TableScan:
    """Return the scan of some of the columns: of all in their order itself, as nearly always in hot runs."""
    made = tuple([column for column, _ in columns])
    if made == scan.made:
        return scan
    return dataclasses.replace(scan, made=made, sources=tuple([source for _, source in columns]))


def plain_key(scan: TableScan, source: str, device: str) -> CacheKey:
    """Return the key of a column as operators read it, for the rows of a scan."""
    return CacheKey(scan.table.identity, row_groups(scan), source, device)


def kernel_key(scan: TableScan, source: str, device: str) -> CacheKey:
    """Return the key of a column as kernels read it."""
    return encoded_key(scan.table.identity, row_groups(scan), source, device)
