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
from ....storage.columns.cache import TableScan, kernel_key, part_of, plain_key, row_groups
from ....storage.columns.encode import encode, with_order
from ....storage.columns.encodings import EncodedColumn
from ...context import Context
from ...streaming import column_shares
from ..memory.ask_memory import askable_shares
from .scan import DEVICE, read_columns

# Columns of a scan by their sources: what was encoded, and the names of those that have no encoding
Encoded = tuple[dict[str, EncodedColumn], list[str]]


class EncodedScan:
    """A scan's columns encoded, from the cache where they are there; `loading` are the seconds in which others were loaded.

    `wanted` are loaded together at first, others when they are asked for.  Where the cache has all rows of those columns, they
    serve for a selection of row groups too, which filters narrow down again: `scan` is of all rows then.
    """

    def __init__(self, scan: TableScan, wanted: Collection[Column], context: Context) -> None:
        self._context = context
        self._refused: set[str] = set()
        self.scan = scan
        first = part_of(scan, [(c, s) for c, s in _pairs(scan) if c in wanted])
        self._found = _cached(first, context)
        count = len(set(first.sources))
        if isinstance(scan, p.ParquetScan) and row_groups(scan) and len(self._found) < count:
            every = dataclasses.replace(scan, selection=None)
            whole = _cached(part_of(every, _pairs(first)), context)
            if len(whole) == count:
                self.scan, self._found = every, whole
        self.loading = 0.0
        self._load([pair for pair in _pairs(first) if pair[1] not in self._found])

    @property
    def rows(self) -> int:
        return row_count(self.scan)

    def __getitem__(self, column: Column) -> EncodedColumn:
        """Return a column; raises `NotFusable` for one that has no encoding."""
        source = self.source(column)
        if source not in self._found and source not in self._refused:
            self._found |= _cached(part_of(self.scan, [(column, source)]), self._context)
            if source not in self._found:
                self._load([(column, source)])
        if source in self._refused:
            raise NotFusable(f'"{column.name}" ({column.type}) has no narrow encoding')
        return self._found[source]

    def held(self, column: Column) -> EncodedColumn | None:
        """Return a column if it is encoded already."""
        source = self.source(column)
        if source not in self._found:
            self._found |= _cached(part_of(self.scan, [(column, source)]), self._context)
        return self._found.get(source)

    def plain(self, columns: Collection[Column]) -> TableScan:
        """Return the scan of some columns as they are, of the same rows as the encoded ones."""
        return part_of(self.scan, [pair for pair in _pairs(self.scan) if pair[0] in columns])

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


def encode_columns(scan: TableScan, context: Context) -> None:
    """Bring all columns of a scan into the cache: encoded, and as they are where they have no encoding."""
    found = _cached(scan, context)
    for _ in _encode(scan, [pair for pair in _pairs(scan) if pair[1] not in found], context):
        context.check()


def _encode(
    scan: TableScan, missing: Sequence[tuple[Column, str]], context: Context
) -> Iterator[Encoded]:
    """Load columns into the cache, as many at a time as there is room for; what has no encoding is kept as it is."""
    pairs = [(column, source) for source, column in {s: c for c, s in missing}.items()]
    shares = column_shares(scan, pairs, context) if pairs else []
    for share in chain.from_iterable(askable_shares(scan, each, context) for each in shares):
        arrays = read_columns(part_of(scan, share), context)
        made: dict[str, EncodedColumn] = {}
        refused = []
        for column, source in share:
            array = arrays.pop(source)
            encoded = encode(array, column.type, context.threads)
            if encoded is None:
                refused.append(source)
                key = plain_key(scan, source, DEVICE)
                if not context.cache.holds(key):
                    context.cache.put(key, array, array.nbytes)
            else:
                made[source] = encoded = with_order(encoded, context.threads)
                key = kernel_key(scan, source, DEVICE)
                context.cache.put(key, encoded, encoded.nbytes)
            context.check()
        yield made, refused


def _pairs(scan: TableScan) -> list[tuple[Column, str]]:
    return list(zip(scan.made, scan.sources, strict=True))


def row_count(scan: TableScan) -> int:
    """Return how many rows a scan has."""
    table: Any = scan.table
    if isinstance(scan, p.MemoryScan):
        return int(table.num_rows)
    parts = table.all_row_groups if scan.selection is None else scan.selection
    return sum(table.group_rows[part.file][group] for part in parts for group in part.groups)


def _cached(scan: TableScan, context: Context) -> dict[str, EncodedColumn]:
    found = {}
    for source in dict.fromkeys(scan.sources):
        held = context.cache.get(kernel_key(scan, source, DEVICE))
        if held is not None:
            found[source] = held
    return found
