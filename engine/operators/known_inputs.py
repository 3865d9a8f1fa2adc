"""What the kernels of a pipeline were made for, and which of them serve other rows: those that a query's operators leave differ with its constants, and their kernels should not.

Kernels for stored rows are made for more of them, and for values further apart, than there are: what the generator is told then holds
for most of what other constants leave.  With TPC-H SF10 on an H200, 5 of 28 pipelines were generated anew for each text of new constants,
in 7 to 18 ms each.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from operator import attrgetter

from ..codegen.row_sources import input_of
from ..codegen.typed_values import Input
from ..plan import physical as p
from ..plan.expr import Column, Expr
from ..plan.shapes.plan_model import PlanModel
from ..records import dataclass
from ..storage.columns.cache import CacheKey, ColumnCache, TableScan, kernel_key
from ..storage.columns.encodings import EncodedColumn

# Kernels know whether there are no rows, or one; those for more serve fewer, too, as long as their memory is not much too large
FEWEST_ALIKE = 2
MOST_TIMES_WIDER = 64
MOST_CODES = 1 << 31  # whose registers have 32 bits
Key = tuple[int, int]  # identity of a leaf, and the number of its column
_TOLD = attrgetter("nullable", "ascending", "clustered")


def widened_count(rows: int) -> int:
    """Return a number of rows that kernels can be made for so that they serve others: the next power of four."""
    return rows if rows < FEWEST_ALIKE else 4 ** ((rows - 1).bit_length() + 1 >> 1)


def serve_rows(count: int, rows: int) -> bool:
    """Whether kernels for at most `count` stored rows serve so many."""
    return rows == count if rows < FEWEST_ALIKE else rows <= count <= MOST_TIMES_WIDER * rows


def widened(found: Input) -> Input:
    """Return what kernels are told of a column of stored rows so that they serve others.

    Sums are measured up to a power of two.  Where that is one of four, too, a greater sum had no room: TPC-H's Q15 was generated anew
    for some constants, whose best supplier sold for more than 2^34 hundredths of a cent.
    """
    if found.raw is not None:
        raw = found.raw.widened()
        if raw == found.raw and found.column.type.is_decimal:  # no key, whose tables would grow
            raw = (raw + raw).widened()
        return replace(found, raw=raw)
    if found.codes is None or found.values is not None:
        return found
    most = min(1 << 8 * found.width, MOST_CODES) if found.codes <= MOST_CODES else found.codes
    return replace(found, codes=min(widened_count(found.codes), most))


def serve_column(told: Input, now: Input) -> bool:
    """Whether what the generator was told of a column holds for what it is now."""
    if told.encoding != now.encoding or _TOLD(told) != _TOLD(now):
        return False
    if told.raw is not None and now.raw is not None:
        return now.raw.is_within(told.raw)
    if told.codes is not None and now.codes is not None:
        return now.codes <= told.codes
    return told.raw is now.raw and told.codes is now.codes


class LateRead:
    """Columns that runs fetch in the end, for which a cache keeps how (`ColumnCache.together`)."""


@dataclass(frozen=True)
class Names:
    """What the columns of a scan are called in its table, and by what keys the cache has them; `late` by ids: those that runs fetch in the end."""

    scan: TableScan
    device: str
    _keys: dict[str, CacheKey] = field(default_factory=dict, repr=False)
    late: dict[tuple[int, ...], LateRead] = field(default_factory=dict, repr=False)

    @cached_property
    def sources(self) -> Mapping[Column, str]:
        return dict(zip(self.scan.made, self.scan.sources, strict=True))

    def key(self, source: str) -> CacheKey:
        """Return the key of a column, encoded."""
        found = self._keys.get(source)
        if found is None:
            found = self._keys[source] = kernel_key(self.scan, source, self.device)
        return found


@dataclass(frozen=True)
class KnownScan:
    """A leaf that is a scan, how many rows that one has, and what is read of it: names there, and keys."""

    node: p.Physical
    names: Names
    rows: int
    reads: tuple[tuple[str, Key], ...]


@dataclass(frozen=True)
class Read:
    """A column that kernels read: `column` of a leaf, or `expr` over one, and what the generator was told of it.

    `encoded` is that of a scan, which the cache may let go of.
    """

    leaf: p.Physical
    column: Column
    source: Input
    expr: Expr | None = None
    encoded: weakref.ref[EncodedColumn] | None = None

    @cached_property
    def key(self) -> Key:
        return id(self.leaf), self.column.id

    @cached_property
    def model(self) -> PlanModel[Expr]:
        """What makes the expression of a text's values."""
        assert self.expr is not None
        return PlanModel(self.expr)


@dataclass(frozen=True)
class KnownInputs:
    """What kernels were made for, for the next run, which mostly finds the same columns in the cache.

    These are the columns that they read, and the rows that each leaf has at most, with the scan as it was read, None of what is no scan.
    """

    reads: tuple[Read, ...]
    leaves: tuple[tuple[p.Physical, TableScan | None, int], ...]
    device: str
    # What was last said of columns of stored rows, which kernels served
    _served: dict[Key, tuple[object, ...]] = field(default_factory=dict, compare=False)

    def serve(self, read: Read, encoded: EncodedColumn) -> bool:
        """Whether kernels serve a column of stored rows; what is said of those mostly was said before."""
        ends, order = (encoded.low, encoded.high), (encoded.ascending, encoded.clustered)
        said = encoded.encoding, encoded.validity is None, *ends, *order
        if read.key in self._served and self._served[read.key] == said:
            return True
        found = serve_column(read.source, input_of(read.column, encoded))
        if found and encoded.encoding.values is None:
            self._served[read.key] = said
        return found

    @cached_property
    def scans(self) -> Mapping[int, KnownScan]:
        """The leaves that are scans, by their identity."""
        found = {}
        for node, scan, rows in self.leaves:
            if scan is not None:
                names = Names(scan, self.device)
                reads = self.read_of(node)
                pairs = tuple((names.sources[read.column], read.key) for read in reads)
                found[id(node)] = KnownScan(node, names, rows, pairs)
        return found

    @cached_property
    def scanned(self) -> dict[Key, Read]:
        """What is read of scans as it is."""
        scans = [node for node, scan, _ in self.leaves if scan is not None]
        return {read.key: read for node in scans for read in self.read_of(node)}

    @cached_property
    def keys(self) -> tuple[CacheKey, ...]:
        """For each of `scanned` its key in the cache."""
        scans = self.scans.values()
        return tuple(scan.names.key(name) for scan in scans for name, _ in scan.reads)

    def scanned_in(self, cache: ColumnCache) -> dict[Key, EncodedColumn] | None:
        """Return the columns of scans, if a cache still has these very ones; all runs are given the same, to read."""
        refs = [read.encoded for read in self.scanned.values()]
        values = [ref() for ref in refs if ref is not None]
        found: dict[Key, EncodedColumn] = dict(zip(self.scanned, values, strict=True))  # type: ignore[arg-type]
        return found if cache.keep_together(self, self.keys, values, found) else None

    @cached_property
    def others(self) -> tuple[tuple[p.Physical, int, tuple[Read, ...]], ...]:
        """The leaves that are stored rows, how many these are, and what is read of each."""
        stored = [(node, rows) for node, scan, rows in self.leaves if scan is None]
        return tuple((node, rows, tuple(self.read_of(node))) for node, rows in stored)

    @cached_property
    def wanted(self) -> frozenset[Column]:
        return frozenset(read.column for read in self.reads)

    @cached_property
    def derived(self) -> tuple[Read, ...]:
        return tuple(read for read in self.reads if read.expr is not None)

    def read_of(self, leaf: p.Physical) -> list[Read]:
        """Return what is read of a leaf as it is."""
        return [read for read in self.reads if read.leaf is leaf and read.expr is None]
