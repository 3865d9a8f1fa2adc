"""Rows on the way into an operator that needs all of them: in memory while they are few, then in parts by their keys, spilled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic

import pyarrow as pa

from ..errors import MemoryLimitError
from ..plan import physical as p
from ..plan.expr import Column
from .host_memory import give_back
from .run_unfused import T
from .spilling import PARTS, SpilledRows, end_of, spilled_text

if TYPE_CHECKING:
    from .pulling import Pull

# Of the room that is left, what one operator's rows may take before they leave memory
SHARE_IN_MEMORY = 8
# Of the room, what the rows of parts may take that are worked on at a time; keys, orders and results take several times as much
SHARE_OF_PARTS = 16
SHARE_OF_PART = 8  # what one part may take, if there is a way to make smaller ones of it


class Spool(Generic[T]):
    """Rows of one input, in the order in which they came; `keys` say in which part each is once they leave memory.

    They count towards the memory limit as rows of `node` while they are in memory.
    """

    def __init__(
        self, pull: Pull[T], node: p.Physical, keys: Sequence[Column], columns: Sequence[Column]
    ) -> None:
        self.node, self.keys, self.columns = node, tuple(keys), tuple(columns)
        self.bytes = self.rows = 0
        self._pull, self._backend = pull, pull.backends[node.device]
        self._tables: list[T] = []
        self._spilled: SpilledRows | None = None

    @property
    def spilled(self) -> bool:
        return self._spilled is not None

    @property
    def sizes(self) -> Sequence[int]:
        """The bytes of each part."""
        assert self._spilled is not None
        return self._spilled.sizes

    def add(self, table: T) -> None:
        """Take rows in; beyond its share of the room all leave memory."""
        if not table.num_rows and self._tables:
            return
        table = self._backend.settled(table)
        size = self._backend.num_bytes(table)
        self._tables.append(table)
        self.bytes += size
        self.rows += table.num_rows
        self._pull.hold(self.node, size)
        if self.bytes > self._pull.room(self.node.device) // SHARE_IN_MEMORY:
            self.spill()

    def spill(self) -> None:
        """Write what is in memory; rows without keys stay, since they have no parts."""
        if not self.keys:
            return
        if self._spilled is None:
            area = self._pull.area
            self._spilled = SpilledRows(self.keys, self.columns, area, self.node.device)
        if self._tables:
            table = self._pull.together(self.node, self._tables, self.columns)
            self._tables.clear()
            for piece in self._backend.parted(table, self.keys, self.columns):
                self._pull.context.check()
                self._spilled.add(piece)
                del piece
            del table
            self._pull.hold(self.node, -self.bytes)
            self.bytes = 0
            give_back()

    def add_parted(self, table: T, bounds: Sequence[int]) -> None:
        """Spill rows that lie in the order of their parts."""
        if self._spilled is None:
            area = self._pull.area
            self._spilled = SpilledRows(self.keys, self.columns, area, self.node.device)
        self._spilled.add(self._backend.piece_of(table, bounds, self.columns))

    def taken(self) -> list[T]:
        """Return the tables in memory, which no longer count."""
        tables, self._tables = self._tables, []
        self._pull.hold(self.node, -self.bytes)
        self.bytes = 0
        return tables

    def whole(self) -> T:
        """Return all rows, which were not spilled, as one table; they count until `drop`."""
        table = self._pull.together(self.node, self._tables, self.columns)
        self._tables = [table]
        return table

    def parts(self, first: int, last: int) -> list[pa.RecordBatch]:
        assert self._spilled is not None
        return self._spilled.parts(first, last)

    def pieces(self, part: int) -> Iterator[T]:
        """Yield the rows of one part, as many at a time as were spilled together."""
        assert self._spilled is not None
        for rows in self._spilled.pieces(part, part + 1):
            yield self._backend.unparted([rows], self.columns)

    def part(self, first: int, last: int, more: Sequence[pa.RecordBatch] = ()) -> T:
        """Return the rows of some parts, and `more`, as a table."""
        return self._backend.unparted([*self.parts(first, last), *more], self.columns)

    def drop(self) -> None:
        """Let go of all rows."""
        self.taken()
        if self._spilled is not None:
            self._spilled.drop()

    @property
    def places(self) -> Counter[str]:
        """Where the rows lie, and how many bytes they take there."""
        return Counter() if self._spilled is None else self._spilled.places


def in_parts(
    pull: Pull[T],
    node: p.Physical,
    spools: Sequence[Spool[T]],
    work: Callable[[Sequence[T]], Iterator[T]],
    more: Sequence[Sequence[pa.RecordBatch]] = (),
    anew: Callable[[int], Iterator[T]] | None = None,
) -> Iterator[T]:
    """Yield what a node's `work` makes of the rows of all spools: at once, or of as many parts at a time as there is room for.

    `more` are rows that each part of a spool gets.  `anew` yields the same of a part that is too large.  Raises `MemoryError` when there is no room for a single part.
    """
    groups = 0
    try:
        if not any(spool.spilled for spool in spools):
            yield from work([spool.whole() for spool in spools])
            return
        for spool in spools:
            spool.spill()
        sizes = list(map(sum, zip(*(spool.sizes for spool in spools), strict=True)))
        first, most = 0, sum(sizes)
        while first < PARTS:
            pull.context.check()
            room = pull.room(node.device)
            if anew is not None and sizes[first] > room // SHARE_OF_PART:
                yield from anew(first)
                first, groups = first + 1, groups + 1
                continue
            last = end_of(sizes, first, min(most, room // SHARE_OF_PARTS))
            results = _worked(pull, spools, (first, last), work, more)
            try:
                made = next(results)
            except (MemoryError, MemoryLimitError):
                if last == first + 1:
                    raise
                most = sum(sizes[first:last]) // 2
                continue
            first, groups = last, groups + 1
            yield made
            del made
            yield from results
    finally:  # a limit above may have enough
        if groups:
            _remark(pull, node, spools, groups)
        for spool in spools:
            spool.drop()


def _remark(pull: Pull[T], node: p.Physical, spools: Sequence[Spool[T]], groups: int) -> None:
    places: Counter[str] = Counter()
    for spool in spools:
        places += spool.places
    pull.context.spilled.update(places)
    text = f"in {groups} part{'s' * (groups > 1)}, {spilled_text(places)}"
    pull.context.remarks[id(node)] = text


def _worked(
    pull: Pull[T],
    spools: Sequence[Spool[T]],
    parts: tuple[int, int],
    work: Callable[[Sequence[T]], Iterator[T]],
    more: Sequence[Sequence[pa.RecordBatch]],
) -> Iterator[T]:
    given = more or ((),) * len(spools)
    tables = [s.part(*parts, rows) for s, rows in zip(spools, given, strict=True)]
    node = spools[0].node
    size = sum(pull.backends[node.device].num_bytes(table) for table in tables)
    try:
        pull.hold(node, size)
        yield from work(tables)
    finally:
        pull.hold(node, -size)
