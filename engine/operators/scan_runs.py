"""Runs of row groups that scans read at a time, and where a table is cut into them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from ..plan import physical as p
from ..plan.physical import RowGroups
from ..storage.columns.cache import CacheKey, ColumnCache, TableScan
from ..storage.columns.encodings import Array
from ..storage.tables.column_chunks import SIGNED, places_of, starts_of

if TYPE_CHECKING:
    from ..storage.tables.parquet import ParquetTable

Selection = tuple[RowGroups, ...]
T = TypeVar("T")

# The chunk that is worked on lies in memory as it was read and encoded, beside the one that is being read, and results
CHUNKS_IN_ROOM = 4


class KeyBounds(NamedTuple):
    """The least and the largest key in each row group of a table, all files' one after the other."""

    lows: Array
    highs: Array

    def at(self, places: Array) -> KeyBounds:
        return KeyBounds(self.lows[places], self.highs[places])

    @property
    def ascend(self) -> bool:
        """Whether row groups that follow one another have at most one key in common."""
        return bool((self.highs[:-1] <= self.lows[1:]).all())


_bounds: WeakKeyDictionary[ParquetTable, dict[str, KeyBounds | None]] = WeakKeyDictionary()


def files_of(scan: p.ParquetScan) -> ParquetTable:
    return scan.table  # type: ignore[return-value]  # whose scans have no other


def selected(scan: p.ParquetScan) -> Selection:
    """Return the row groups that a scan reads."""
    return files_of(scan).all_row_groups if scan.selection is None else scan.selection


def chosen_of(scan: p.ParquetScan) -> tuple[ParquetTable, Selection | None, Selection]:
    """Return a scan's table, which part of it cache keys name, and the row groups that this is."""
    table, chosen = files_of(scan), scan.selection
    if chosen is None or chosen == table.all_row_groups:
        return table, None, table.all_row_groups
    return table, chosen, chosen


def by_id(scan: TableScan, columns: Mapping[str, T]) -> dict[int, T]:
    """Return columns of a scan by the ids that they have in plans."""
    return {c.id: columns[s] for c, s in zip(scan.made, scan.sources, strict=True)}


def held_columns(
    scan: p.ParquetScan,
    cache: ColumnCache,
    device: str,
    cut: Callable[[T, ParquetTable, Selection], T],
) -> dict[str, T]:
    """Return those columns of a scan that a cache holds as they are: as they are asked for, or `cut` out of whole columns."""
    table, selection, _ = chosen_of(scan)
    found: dict[str, T] = {}
    for source in dict.fromkeys(scan.sources):
        column = cache.get(CacheKey(table.identity, selection, source, device))
        if column is None and selection is not None:
            whole = cache.get(CacheKey(table.identity, None, source, device))
            column = None if whole is None else cut(whole, table, selection)
        if column is not None:
            found[source] = column
    return found


def run_at(table: ParquetTable, places: Array) -> Selection:
    """Return the row groups of some numbers, which ascend, as scans select them."""
    first = starts_of(table)[0]
    ends = np.searchsorted(places, first).tolist()
    of_files = enumerate(pairwise(ends))
    parts = ((file, places[start:end] - first[file]) for file, (start, end) in of_files)
    return tuple(RowGroups(file, tuple(groups.tolist())) for file, groups in parts if len(groups))


def rows_in(table: ParquetTable, selection: Sequence[RowGroups]) -> int:
    rows = table.group_rows
    return sum([rows[part.file][group] for part in selection for group in part.groups])


def plain_bytes(scan: p.ParquetScan, selection: Selection) -> int:
    """Return what row groups of a scan take as they are read."""
    table = files_of(scan)
    return int(table.sizes.of_each(scan.sources)[places_of(table, selection)].sum())


def cut(scan: p.ParquetScan, target: int) -> list[Selection]:
    """Cut what a scan reads into runs of at most `target` bytes, or of one row group.

    No key by which the rows ascend is in two runs, if one ends somewhere in the second half of what there is room for.
    """
    table, places = files_of(scan), places_of(files_of(scan), selected(scan))
    sums = np.cumsum([0, *table.sizes.of_each(scan.sources)[places]])
    is_end = _ends_of_keys(scan, places)
    runs, start = [], 0
    while start < len(places):
        end = max(start + 1, int(np.searchsorted(sums, sums[start] + target, "right")) - 1)
        if end < len(places):
            end = next((i for i in range(end, (start + end) // 2, -1) if is_end(i)), end)
        runs.append(run_at(table, places[start:end]))
        start = end
    return runs


def smaller(scan: p.Physical, runs: Sequence[Selection] | None) -> list[Selection] | None:
    """Return more runs of the same rows, None standing for a single one of all; None where they cannot be smaller."""
    if not isinstance(scan, p.ParquetScan):
        return None
    given = runs or [selected(scan)]
    target = max((plain_bytes(scan, run) for run in given), default=0) // CHUNKS_IN_ROOM
    parts = (replace(scan, selection=run) for run in given)
    found = [run for part in parts for run in cut(part, target)]
    return found if len(found) > len(given) else None


def _ends_of_keys(scan: p.ParquetScan, places: Array) -> Callable[[int], bool]:
    """Return whether a row group, the i-th of some, shares no key with the one before it."""
    for source in scan.sources:
        bounds = key_bounds(files_of(scan), source)
        if bounds is not None:
            chosen = bounds.at(places)
            if chosen.ascend:
                return lambda i: bool(chosen.highs[i - 1] < chosen.lows[i])
    return lambda i: True


def key_bounds(table: ParquetTable, source: str) -> KeyBounds | None:
    """Return the bounds of a column of integers, None where footers do not say them for all row groups."""
    known = _bounds.setdefault(table, {})
    if source not in known:
        chunks = table.chunks(source) if table.types[source].kind in SIGNED else None
        is_known = chunks is not None and not (None in chunks.lows or None in chunks.highs)
        known[source] = (
            KeyBounds(np.array(chunks.lows, np.int64), np.array(chunks.highs, np.int64))
            if chunks is not None and is_known
            else None
        )
    return known[source]
