"""Shares of tables, one for each worker of a cluster: runs of rows in the order of the files.

A table whose row groups ascend by an integer key may be cut at values of it: the rows before the first one that reaches a value, and
those from it on.  Where a value lies inside of a row group, that is looked up in the row group; the two workers beside the cut both
read it and keep their rows.  So each row has one worker, whatever footers say; that equal keys have one, each worker confirms by the
extremes of the keys that it has loaded (`planner.exchanges.Claim`).  Other tables are cut by rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from math import inf
from typing import TYPE_CHECKING, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..plan.node import walk_once
from ..plan.partitioning import Fact, KeyCut
from ..plan.physical import ParquetScan, Physical, RowGroups
from ..records import dataclass
from ..settings import Settings
from .tables.access import opened
from .tables.column_chunks import SIGNED
from .tables.footers import decoding, unreadable

if TYPE_CHECKING:
    from .tables.parquet import ParquetTable

GRID = 1024  # steps of a key's range that cuts are rounded to, so that tables of one key have the same ones, each by itself
ROUNDING = 1.1  # how much larger the largest share may be for it
GROUPS_A_WORKER = 4  # from so many on, row groups stay whole where rows are cut

WHOLE_PART = 128  # of the column cache of the worker that has least, which is half of its memory, for a column that all read whole
# Where tables are to be cut, those are not that have so few of the rows of the query's largest one: a GPU reads 1 GB of columns in 0.4 ms,
# and what came from another worker would cost a pipeline and a meeting: workers' own part of 21 TPC-H queries fell from 141 to 98 ms (SF100, four H200s)
SMALL_SHARE = 1 / 6
# What is gathered, or sent to all, whatever else it costs: one GPU merges so many bytes sooner than workers meet once more
MOST_GATHERED = 1 << 26
# How many times `replicate_below` a query may read that one worker runs instead of that all meet: TPC-H's Q11, Q16 and Q22 read 0.8 to 1.2 GB at
# SF100, took 12, 17 and 14 ms where four H200s met, and take 9, 9 and 4 on one worker of two
UNMET_TIMES = 4

_key_rows: WeakKeyDictionary[ParquetTable, dict[str, KeyRows | None]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Placement:
    """What the workers of a cluster have of a query's tables, the same for all.

    A scan is read whole by each worker if the columns that the query reads of its table take less than `whole_below` bytes each, on average
    and as kernels read them, and its table has at most `whole_share` of the rows of the query's largest one; rows of a query that take less than `few_below` may be
    sent to all, or to the first, whatever is read whole.  A query whose scans together take less than `alone_below` runs on one, and so does one
    in which workers would meet if it reads less than `unmet_below` as kernels read it (`placement_for`).
    `refuted` are facts that turned out to be wrong.  `few_groups`: there may be few groups, not so in a plan that had many where few
    were expected.
    """

    whole_below: float
    alone_below: float = 0
    refuted: frozenset[Fact] = frozenset()
    few_below: float = 0
    whole_share: float = 1.0
    few_groups: bool = True
    unmet_below: float = 0

    @classmethod
    def of(cls, settings: Settings, room: int, refuted: frozenset[Fact] = frozenset()) -> Placement:
        """Return what settings say, for workers of which the smallest has room for so many bytes of columns."""
        few, alone = settings.replicate_below, settings.one_worker_below
        few = room // WHOLE_PART if few is None else few
        unmet = UNMET_TIMES * few if alone is None else alone
        if settings.placement == "sharded":
            least = min(few, MOST_GATHERED)
            return cls(few, 0, refuted, least, whole_share=SMALL_SHARE, unmet_below=unmet)
        if settings.placement == "replicated":
            return cls(inf, 0, refuted, few)
        return cls(few, few if alone is None else alone, refuted, few, unmet_below=unmet)

    def whole_for(self, scans: Sequence[ParquetScan]) -> Placement | None:
        """Return where one worker has all that a plan reads, for one in which all would meet; None where that is too much."""
        sources, rows = _sources_of(scans), dict.fromkeys(map(_table, scans), 0)
        for scan in scans:
            rows[_table(scan)] = max(rows[_table(scan)], _rows(scan))
        read = sum(t.sizes.narrow(tuple(sources[t.identity]), n) for t, n in rows.items())
        return replace(self, alone_below=inf) if read < self.unmet_below else None


class KeyRows(NamedTuple):
    """The row groups of a table that ascend by a key: the rows before each of them, and bounds of the keys in it."""

    begins: Sequence[int]
    lows: Sequence[int]
    highs: Sequence[int]

    @property
    def total(self) -> int:
        return self.begins[-1]

    def expected_row(self, value: int) -> float:
        """How many rows are expected before a key, which values are thought to be spread evenly in each row group."""
        group = bisect_right(self.highs, value - 1)
        if group == len(self.highs):
            return self.total
        low, high = self.lows[group], self.highs[group]
        rows = self.begins[group + 1] - self.begins[group]
        return self.begins[group] + rows * min(1.0, max(0.0, (value - low) / (high - low + 1)))

    def expected_key(self, row: float) -> int:
        """The key that is expected at a row."""
        group = min(bisect_right(self.begins, row) - 1, len(self.lows) - 1)
        rows = max(1, self.begins[group + 1] - self.begins[group])
        low, high = self.lows[group], self.highs[group]
        return low + round((high - low + 1) * (row - self.begins[group]) / rows)

    def skew(self, cuts: Sequence[int]) -> float:
        """How many times as many rows as an even share the largest one is expected to have."""
        ends = [0.0, *map(self.expected_row, cuts), float(self.total)]
        largest = max(end - begin for begin, end in pairwise(ends))
        return largest * (len(cuts) + 1) / max(1, self.total)


class Shards:
    """The shares that one worker has of the scans of one plan.

    `found` keeps at which row a cut is; without it no file is looked at, for a plan that is only shown.
    """

    def __init__(
        self,
        placement: Placement,
        rank: int,
        workers: int,
        scans: Sequence[ParquetScan],
        found: dict[Hashable, int] | None = None,
    ) -> None:
        self.workers = workers
        self._placement, self._rank, self._found = placement, rank, found
        self._alone = sum(map(_size, scans)) < placement.alone_below
        rows = max((_table(scan).num_rows for scan in scans), default=0)
        self._most_rows = rows * placement.whole_share  # of a table that is read whole
        self._sources = _sources_of(scans)
        self._parts: dict[tuple[int, int, int], ParquetTable] = {}
        self._tables: list[ParquetTable] = []  # which ids are of

    def is_whole(self, scan: ParquetScan) -> bool:
        if self._alone:
            return True
        table = _table(scan)
        if table.num_rows > self._most_rows:
            return False
        # What one scan of a table has whole, another one of it need not get from others
        sources = tuple(self._sources.get(table.identity, scan.sources))
        size = table.sizes.narrow(sources, _rows(scan))
        return size < self._placement.whole_below * max(1, len(sources))

    def is_clustered(self, scan: ParquetScan, source: str) -> bool:
        table = _table(scan)
        may_be = Fact(table.identity, source, "ascends") not in self._placement.refuted
        return may_be and key_rows(table, source) is not None

    def may_be_key(self, scan: ParquetScan, source: str) -> bool:
        return Fact(_table(scan).identity, source, "key") not in self._placement.refuted

    def usual_key(self, scan: ParquetScan) -> str | None:
        """The first one that there is, of a table of which not only some row groups are read: those few are shared evenly."""
        if scan.selection is not None:
            return None
        names = (name for name, kind in _table(scan).fields if kind.kind in SIGNED)
        return next((name for name in names if self.is_clustered(scan, name)), None)

    def cuts(self, scan: ParquetScan, source: str) -> tuple[int, ...]:
        rows = key_rows(_table(scan), source)
        assert rows is not None
        return even_cuts(rows, self.workers)

    def skew(self, scan: ParquetScan, source: str, cuts: tuple[int, ...]) -> float:
        rows = key_rows(_table(scan), source)
        assert rows is not None
        return rows.skew(cuts)

    def limits(self, cuts: tuple[int, ...]) -> tuple[int | None, int | None]:
        low = cuts[self._rank - 1] if self._rank else None
        return low, cuts[self._rank] if self._rank < len(cuts) else None

    def share(self, scan: ParquetScan, cut: KeyCut | None) -> ParquetScan:
        table = _table(scan)
        ends = self._rows(table, _chosen(scan)) if cut is None else self._between(table, cut)
        key = (id(table), *ends)
        if key not in self._parts:
            self._tables.append(table)
            self._parts[key] = table.part(*ends)
        part = self._parts[key]
        if scan.selection is None:
            return scan.replaced(table=part)
        return scan.replaced(table=part, selection=_within(scan.selection, part))

    def _between(self, table: ParquetTable, cut: KeyCut) -> tuple[int, int]:
        low, high = self.limits(cut.cuts)
        first = 0 if low is None else self._row_of(table, cut.source, low)
        return first, table.num_rows if high is None else self._row_of(table, cut.source, high)

    def _row_of(self, table: ParquetTable, source: str, value: int) -> int:
        """The first row whose key reaches a value, where keys ascend."""
        rows = key_rows(table, source)
        assert rows is not None
        group = bisect_right(rows.highs, value - 1)
        if group == len(rows.highs) or rows.lows[group] >= value or self._found is None:
            return rows.begins[group]
        key = table.identity, source, value
        if key not in self._found:
            self._found[key] = rows.begins[group] + _first_from(table, source, group, value)
        return self._found[key]

    def _rows(self, table: ParquetTable, chosen: Sequence[RowGroups]) -> tuple[int, int]:
        """Where a worker's stretch of the rows begins and ends: between row groups where there are many, so that each is read once."""
        begins = list(accumulate(chain.from_iterable(table.group_rows), initial=0))
        first_of = list(accumulate(map(len, table.group_rows), initial=0))
        groups = [first_of[part.file] + g for part in chosen for g in part.groups]
        ends = list(accumulate((begins[g + 1] - begins[g] for g in groups), initial=0))
        whole = len(groups) >= GROUPS_A_WORKER * self.workers

        def row(rank: int) -> int:
            target = ends[-1] * rank // self.workers
            place = min(bisect_right(ends, target) - 1, len(groups) - 1)
            if place < 0:
                return 0
            inside = target - ends[place]
            rows = ends[place + 1] - ends[place]
            if whole:
                inside = rows if 2 * inside > rows else 0
            return begins[groups[place]] + inside

        return row(self._rank), row(self._rank + 1)


def even_cuts(rows: KeyRows, workers: int) -> tuple[int, ...]:
    """Return the keys at which about as many rows lie between two cuts, on a grid that depends on the least and largest key alone."""
    exact = [rows.expected_key(rows.total * rank / workers) for rank in range(1, workers)]
    low, step = rows.lows[0], (rows.highs[-1] - rows.lows[0] + 1) / GRID
    rounded = [low + round(round((key - low) / step) * step) for key in exact]
    fits = rows.skew(rounded) <= ROUNDING * rows.skew(exact)
    return tuple(rounded if fits else exact)


def key_rows(table: ParquetTable, source: str) -> KeyRows | None:
    """Return a table's row groups by a key, None where footers do not say that they ascend by it and that it is never NULL."""
    known = _key_rows.setdefault(table, {})
    if source not in known:
        known[source] = _read_key_rows(table, source)
    return known[source]


def _read_key_rows(table: ParquetTable, source: str) -> KeyRows | None:
    if table.types[source].kind not in SIGNED or source in table.constants:
        return None
    chunks = table.chunks(source)
    if any(chunks.nulls) or None in chunks.nulls or not chunks.likely_sorted:
        return None
    return KeyRows(list(accumulate(chunks.rows, initial=0)), chunks.lows, chunks.highs)


def _first_from(table: ParquetTable, source: str, number: int, value: int) -> int:
    """The first row of a row group whose key reaches a value; raises `FileError`."""
    file = 0
    while number >= len(table.stored_rows[file]):
        number -= len(table.stored_rows[file])
        file += 1
    path = table.files[file].path
    try:
        with (
            opened(table.files[file]) as handle,
            pq.ParquetFile(handle, metadata=table.footers[file]) as reader,
        ):
            name = table.parquet_names[source]
            with decoding(path):
                keys = reader.read_row_group(number, columns=[name]).column(name)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error
    table.check_unchanged([RowGroups(file, (number,))])
    reached = keys.to_numpy() >= value
    return int(np.argmax(reached)) if reached.any() else len(keys)


def _within(selection: Sequence[RowGroups], part: ParquetTable) -> tuple[RowGroups, ...]:
    """Return the row groups of a selection that have rows in a part."""
    found = (
        RowGroups(s.file, tuple(g for g in s.groups if part.group_rows[s.file][g]))
        for s in selection
    )
    return tuple(groups for groups in found if groups.groups)


def _table(scan: ParquetScan) -> ParquetTable:
    return cast("ParquetTable", scan.table)


def _sources_of(scans: Sequence[ParquetScan]) -> dict[Hashable, set[str]]:
    """The columns that a query reads, by the identity of their table."""
    found: dict[Hashable, set[str]] = {}
    for scan in scans:
        found.setdefault(_table(scan).identity, set()).update(scan.sources)
    return found


def _chosen(scan: ParquetScan) -> tuple[RowGroups, ...]:
    return _table(scan).all_row_groups if scan.selection is None else scan.selection


def _rows(scan: ParquetScan) -> int:
    rows = _table(scan).group_rows
    return sum(rows[part.file][g] for part in _chosen(scan) for g in part.groups)


def _size(scan: ParquetScan) -> int:
    """Bytes of a scan's columns, as operators read them."""
    return sum(_table(scan).sizes.plain(scan.sources, part) for part in _chosen(scan))


def scans_of(plan: Physical) -> list[ParquetScan]:
    return [node for node in walk_once(plan) if isinstance(node, ParquetScan)]
