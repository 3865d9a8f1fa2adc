"""Rows in parts by their keys, for operators that need all rows with equal keys at once, and parts put together again.

They stay in memory while they are few.  Then they are cut into `PARTS` parts, leave memory, and come back as many parts at a time as
fit.  Rows with equal keys are in the part of one number, whichever input they are of, and rows with NULL among their keys in the
first one: what an operator makes of the parts, put together, is what it makes of all rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from typing import Generic, Protocol

import pyarrow as pa

from ..errors import MemoryLimitError
from ..plan import physical as p
from ..plan.exchange import Exchange
from ..plan.expr import Column
from ..plan.partial import PartialAggregate
from ..records import dataclass
from .context import Context
from .host_memory import available_memory, give_back, readable
from .run_unfused import Operator, T
from .spill_area import SpillArea, SpilledFile, SpilledPiece

MERGED_PARTS = 64
# Of parts, at least, before they are merged: merging costs what grouping so many rows costs
MERGED_ROWS = 1 << 20

Run = Callable[[p.Physical, tuple[T, ...]], T]  # of an operator over tables


def together(parts: Sequence[T], columns: Sequence[Column], device: p.Device, run: Run[T]) -> T:
    """Return pieces of a node's rows, some columns of them, as one table."""
    if len(parts) == 1:
        return parts[0]
    part = p.Stored(0, tuple(columns), device=device)
    return run(p.ConcatRows((part,) * len(parts), tuple(columns), device=device), tuple(parts))


class Merging(Generic[T]):
    """What an aggregation makes of parts of its rows, merged as it grows."""

    def __init__(
        self, split: PartialAggregate, run: Run[T], join: Callable[[Sequence[T]], T]
    ) -> None:
        """`join` puts parts of the rows of `split.partial` together."""
        self._split, self._run, self._join = split, run, join
        self._parts = self._rows = self._merged = 0

    def is_due(self, part: T) -> bool:
        """Count a part; say whether those since the last merge are to be merged."""
        self._parts, self._rows = self._parts + 1, self._rows + part.num_rows
        return self._parts >= MERGED_PARTS or self._rows > max(MERGED_ROWS, self._merged)

    def merged(self, parts: Sequence[T], *more: p.Physical) -> T:
        """Return the groups of several parts, on which further steps run."""
        table = self._join(parts)
        for step in (*self._split.merge, *more):
            table = self._run(step, (table,))
        self._parts, self._rows, self._merged = 0, 0, table.num_rows
        return table


PARTS = 64
PIECE_BYTES = 256 << 20  # of an input, cut at a time
# Of the room that is left, what one operator's rows may take before they leave memory
SHARE_IN_MEMORY = 8
# Of the room, what the rows of parts may take that are worked on at a time; keys, orders and results take several times as much
SHARE_OF_PARTS = 16
SHARE_OF_PART = 8  # what one part may take, if there is a way to make smaller ones of it


class Parting(Protocol[T]):
    """What a backend does for it: `operators.cpu` and `operators.gpu` are modules with these names."""

    OPERATORS: Mapping[type[p.Physical], Operator[T]]

    # Yields the rows of a table, or of a scan of one row group, as they are decoded; None where these are read whole
    batches: Callable[[p.ParquetScan | p.MemoryScan, Iterable[int], Context], Iterator[T]] | None

    # Exchanges rows with other workers on the device; None where that is not possible, and always on the CPU
    exchanged: (
        Callable[[Exchange, T, Callable[[pa.RecordBatch], list[int]], Context], T | None] | None
    )

    def num_bytes(self, table: T) -> int: ...

    # Keeps columns that do not fit whole in tiers below
    def store_columns(self, scan: p.ParquetScan, context: Context) -> None: ...

    def parted(
        self, table: T, keys: Sequence[Column], columns: Sequence[Column]
    ) -> Iterator[SpilledPiece]: ...

    def unparted(self, rows: Sequence[pa.RecordBatch], columns: Sequence[Column]) -> T: ...

    def piece_of(
        self, table: T, bounds: Sequence[int], columns: Sequence[Column]
    ) -> SpilledPiece: ...

    def settled(self, table: T) -> T: ...

    def numbered(self, table: T, column: Column, start: int) -> T: ...

    def arrow_bytes(self, table: T, columns: tuple[Column, ...]) -> int: ...

    def to_arrow(self, table: T, columns: tuple[Column, ...]) -> pa.Table: ...

    def from_arrow(self, table: pa.Table, columns: tuple[Column, ...]) -> T: ...


@dataclass
class Workspace(Generic[T]):
    """What operators over rows in parts work with: where rows spill to, and how many bytes a device has left, None where nobody knows."""

    backends: Mapping[p.Device, Parting[T]]
    context: Context
    area: SpillArea
    bytes_left: Callable[[p.Device], int | None]

    def run(self, node: p.Physical, inputs: tuple[T, ...]) -> T:
        """Run an operator over tables."""
        return self.backends[node.device].OPERATORS[type(node)](node, inputs, self.context)

    def hold(self, node: p.Physical, nbytes: int) -> None:
        """Count bytes towards the limit, or let go of them."""
        self.context.hold(node, nbytes)

    @contextmanager
    def holding(self, node: p.Physical, table: T) -> Iterator[None]:
        """Count a table towards the limit meanwhile."""
        size = self.backends[node.device].num_bytes(table)
        self.hold(node, size)
        try:
            yield
        finally:
            self.hold(node, -size)

    def together(self, node: p.Physical, parts: Sequence[T], columns: Sequence[Column]) -> T:
        """Return pieces of a node's rows, some columns of them, as one table."""
        return together(parts, columns, node.device, partial(Workspace.run, self))

    def room(self, device: p.Device) -> int:
        """Return how many bytes more a query may hold on a device."""
        left = self.bytes_left(device)
        return available_memory() // 2 if left is None else left


class Spool(Generic[T]):
    """Rows of one input, in the order in which they came; `keys` say in which part each is once they leave memory.

    They count towards the memory limit as rows of `node` while they are in memory.  `sizes` are the bytes of each part.
    """

    def __init__(
        self,
        workspace: Workspace[T],
        node: p.Physical,
        keys: Sequence[Column],
        columns: Sequence[Column],
    ) -> None:
        self.node, self.keys, self.columns = node, tuple(keys), tuple(columns)
        self.bytes = self.rows = 0
        self.spilled = False
        self.sizes = [0] * PARTS
        self._workspace, self._backend = workspace, workspace.backends[node.device]
        self._tables: list[T] = []
        self._pieces: list[SpilledPiece | SpilledFile] = []

    def add(self, table: T) -> None:
        """Take rows in; beyond its share of the room all leave memory."""
        if not table.num_rows and self._tables:
            return
        table = self._backend.settled(table)
        size = self._backend.num_bytes(table)
        self._tables.append(table)
        self.bytes += size
        self.rows += table.num_rows
        self._workspace.hold(self.node, size)
        if self.bytes > self._workspace.room(self.node.device) // SHARE_IN_MEMORY:
            self.spill()

    def spill(self) -> None:
        """Write what is in memory; rows without keys stay, since they have no parts."""
        if not self.keys:
            return
        self.spilled = True
        if self._tables:
            table = self._workspace.together(self.node, self._tables, self.columns)
            self._tables.clear()
            self.write(table)
            del table
            self.taken()
            give_back()

    def write(self, table: T) -> None:
        """Spill rows that do not count as this spool's."""
        self.spilled = True
        for piece in self._backend.parted(table, self.keys, self.columns):
            self._workspace.context.check()
            self._keep(piece)
            del piece

    def write_ordered(self, table: T, bounds: Sequence[int]) -> None:
        """Spill rows that lie in the order of their parts."""
        self.spilled = True
        self._keep(self._backend.piece_of(table, bounds, self.columns))

    def _keep(self, piece: SpilledPiece) -> None:
        for i in range(PARTS):
            self.sizes[i] += sum(rows.nbytes for rows in piece.parts(i, i + 1))
        self._pieces.append(self._workspace.area.keep(piece, self.node.device))

    def taken(self) -> list[T]:
        """Return the tables in memory, which no longer count."""
        tables, self._tables = self._tables, []
        self._workspace.hold(self.node, -self.bytes)
        self.bytes = 0
        return tables

    def whole(self) -> T:
        """Return all rows, which were not spilled, as one table; they count until `drop`."""
        table = self._workspace.together(self.node, self._tables, self.columns)
        self._tables = [table]
        return table

    def batches(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some parts as they were spilled, each piece read when it is asked for."""
        for piece in self._pieces:
            yield from piece.parts(first, last)

    def pieces(self, part: int) -> Iterator[T]:
        """Yield the rows of one part, as many at a time as were spilled together."""
        for rows in self.batches(part, part + 1):
            yield self._backend.unparted([rows], self.columns)

    def part(self, first: int, last: int, more: Sequence[pa.RecordBatch] = ()) -> T:
        """Return the rows of some parts, and `more`, as a table."""
        return self._backend.unparted([*self.batches(first, last), *more], self.columns)

    def drop(self) -> None:
        """Let go of all rows."""
        self.taken()
        while self._pieces:
            self._workspace.area.drop(self._pieces.pop())

    @property
    def places(self) -> Counter[str]:
        """Where the spilled rows lie, and how many bytes they take there."""
        found: Counter[str] = Counter()
        for piece in self._pieces:
            found[piece.place] += piece.size
        return +found


def in_parts(
    workspace: Workspace[T],
    node: p.Physical,
    spools: Sequence[Spool[T]],
    work: Callable[[Sequence[T]], Iterator[T]],
    more: Sequence[Sequence[pa.RecordBatch]] = (),
    anew: Callable[[int], Iterator[T]] | None = None,
    shares: tuple[int, int] = (SHARE_OF_PARTS, 1),
) -> Iterator[T]:
    """Yield what a node's `work` makes of the rows of all spools: at once, or of as many parts at a time as there is room for.

    `more` are rows that each part of a spool gets.  `anew` yields the same of a part that is too large.  `shares` are what the rows
    of parts may take at a time: of the room, and of all rows.  Raises `MemoryError` when there is no room for a single part.
    """
    groups = 0
    try:
        if not any(spool.spilled for spool in spools):
            yield from work([spool.whole() for spool in spools])
            return
        for spool in spools:
            spool.spill()
        sizes = list(map(sum, zip(*(spool.sizes for spool in spools), strict=True)))
        first, most = 0, sum(sizes) // shares[1]
        while first < PARTS:
            workspace.context.check()
            room = workspace.room(node.device)
            if anew is not None and sizes[first] > room // SHARE_OF_PART:
                yield from anew(first)
                first, groups = first + 1, groups + 1
                continue
            last = _end_of(sizes, first, min(most, room // shares[0]))
            results = _worked(workspace, spools, (first, last), work, more)
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
            _remark(workspace, node, spools, groups)
        for spool in spools:
            spool.drop()


def _end_of(sizes: Sequence[int], first: int, most: int) -> int:
    """Return the number after the last part that is joined together with the first one: at least that one."""
    sums = accumulate(sizes[first:])
    return first + max(1, sum(1 for total in sums if total <= most))


def _remark(
    workspace: Workspace[T], node: p.Physical, spools: Sequence[Spool[T]], groups: int
) -> None:
    places: Counter[str] = Counter()
    for spool in spools:
        places += spool.places
    spilled = workspace.context.spilled
    for place, nbytes in places.items():
        spilled[place] = spilled.get(place, 0) + nbytes
    text = f"in {groups} part{'s' * (groups > 1)}, {_spilled_text(places)}"
    workspace.context.remarks[id(node)] = text


def _spilled_text(places: Mapping[str, int]) -> str:
    """How many bytes lay where, memory first."""
    if not places:
        return "nothing spilled"
    parts = [f"{readable(places[place])} to {place}" for place in sorted(places, reverse=True)]
    return f"spilled {' and '.join(parts)}"


def _worked(
    workspace: Workspace[T],
    spools: Sequence[Spool[T]],
    parts: tuple[int, int],
    work: Callable[[Sequence[T]], Iterator[T]],
    more: Sequence[Sequence[pa.RecordBatch]],
) -> Iterator[T]:
    given = more or ((),) * len(spools)
    tables = [s.part(*parts, rows) for s, rows in zip(spools, given, strict=True)]
    node = spools[0].node
    size = sum(workspace.backends[node.device].num_bytes(table) for table in tables)
    try:
        workspace.hold(node, size)
        yield from work(tables)
    finally:
        workspace.hold(node, -size)
