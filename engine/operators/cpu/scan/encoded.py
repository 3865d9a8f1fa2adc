"""A scan's columns as kernels read them: encoded, from the cache or made now."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any

from ....codegen.typed_values import NotFusable
from ....plan import physical as p
from ....plan.expr import Column
from ....storage.columns.cache import CacheKey, encoded_key
from ....storage.columns.encode import encode, with_order
from ....storage.columns.encodings import EncodedColumn
from ...context import Context
from ...streaming import column_shares
from ..memory.ask_memory import askable_shares
from .scan import read_columns

DEVICE = "cpu"

# Columns of a scan by their sources: what was encoded, and the names of those that have no encoding
Encoded = tuple[dict[str, EncodedColumn], list[str]]


class EncodedScan:
    """A scan's columns encoded, from the cache where they are there; `loading` are the seconds in which others were loaded.

    `wanted` are loaded together at first, others when they are asked for.  Where the cache has all rows of those columns, they
    serve for a selection of row groups too, which filters narrow down again: `scan` is of all rows then.
    """

    def __init__(
        self, scan: p.ParquetScan | p.MemoryScan, wanted: Collection[Column], context: Context
    ) -> None:
        self._context = context
        self._refused: set[str] = set()
        self.scan = scan
        first = _part(scan, [(c, s) for c, s in _pairs(scan) if c in wanted])
        self._found = _cached(first, row_groups(scan), context)
        count = len(set(first.sources))
        if isinstance(scan, p.ParquetScan) and row_groups(scan) and len(self._found) < count:
            whole = _cached(first, None, context)
            if len(whole) == count:
                self.scan, self._found = dataclasses.replace(scan, selection=None), whole
        self.loading = 0.0
        self._load([pair for pair in _pairs(first) if pair[1] not in self._found])

    @property
    def rows(self) -> int:
        return row_count(self.scan)

    def __getitem__(self, column: Column) -> EncodedColumn:
        """Return a column; raises `NotFusable` for one that has no encoding."""
        source = self.source(column)
        if source not in self._found and source not in self._refused:
            self._found |= _cached(
                _part(self.scan, [(column, source)]), row_groups(self.scan), self._context
            )
            if source not in self._found:
                self._load([(column, source)])
        if source in self._refused:
            raise NotFusable(f'"{column.name}" ({column.type}) has no narrow encoding')
        return self._found[source]

    def held(self, column: Column) -> EncodedColumn | None:
        """Return a column if it is encoded already."""
        source = self.source(column)
        if source not in self._found:
            part = _part(self.scan, [(column, source)])
            self._found |= _cached(part, row_groups(self.scan), self._context)
        return self._found.get(source)

    def plain(self, columns: Collection[Column]) -> p.ParquetScan | p.MemoryScan:
        """Return the scan of some columns as they are, of the same rows as the encoded ones."""
        return _part(self.scan, [pair for pair in _pairs(self.scan) if pair[0] in columns])

    def source(self, column: Column) -> str:
        return self.scan.sources[self.scan.made.index(column)]

    def _load(self, missing: Sequence[tuple[Column, str]]) -> None:
        if not missing:
            return
        start = time.perf_counter()
        for made, refused in _encode(self.scan, missing, self._context):
            self._found |= made
            self._refused.update(refused)
        self.loading += time.perf_counter() - start


def encode_columns(scan: p.ParquetScan | p.MemoryScan, context: Context) -> None:
    """Bring all columns of a scan into the cache: encoded, and as they are where they have no encoding."""
    found = _cached(scan, row_groups(scan), context)
    for _ in _encode(scan, [pair for pair in _pairs(scan) if pair[1] not in found], context):
        context.check()


def _encode(
    scan: p.ParquetScan | p.MemoryScan, missing: Sequence[tuple[Column, str]], context: Context
) -> Iterator[Encoded]:
    """Load columns into the cache, as many at a time as there is room for; what has no encoding is kept as it is."""
    identity: Any = getattr(scan.table, "identity")  # noqa: B009 - the catalog's tables have one
    pairs = [(column, source) for source, column in {s: c for c, s in missing}.items()]
    shares = column_shares(scan, pairs, context) if pairs else []
    for share in chain.from_iterable(askable_shares(scan, each, context) for each in shares):
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
                made[source] = encoded = with_order(encoded, context.threads)
                key = encoded_key(identity, row_groups(scan), source, DEVICE)
                context.cache.put(key, encoded, encoded.nbytes)
            context.check()
        yield made, refused


def _pairs(scan: p.ParquetScan | p.MemoryScan) -> list[tuple[Column, str]]:
    return list(zip(scan.made, scan.sources, strict=True))


def _part(
    scan: p.ParquetScan | p.MemoryScan, columns: Sequence[tuple[Column, str]]
) -> p.ParquetScan | p.MemoryScan:
    """The scan of some of the columns."""
    return dataclasses.replace(
        scan, made=tuple(c for c, _ in columns), sources=tuple(s for _, s in columns)
    )


def row_groups(scan: p.ParquetScan | p.MemoryScan) -> Any:
    """Return which row groups a scan reads, None for all."""
    if isinstance(scan, p.MemoryScan):
        return None
    everything = getattr(scan.table, "all_row_groups", None)
    return None if scan.selection == everything else scan.selection


def row_count(scan: p.ParquetScan | p.MemoryScan) -> int:
    """Return how many rows a scan has."""
    table: Any = scan.table
    if isinstance(scan, p.MemoryScan):
        return int(table.num_rows)
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
