"""The iterator model: operators ask those below them for their rows a piece at a time, so that no producer runs longer than it is needed.

A plan normally runs an operator at a time over whole tables, or in kernels.  Below a LIMIT its rows are pulled instead: scans
read a few row groups, `range()` counts a little further, and a cross join makes the pairs of a few rows, until there
are enough (Graefe, Volcano, 1994; pieces instead of rows as in MonetDB/X100).  Pieces grow, so that a limit that is never reached
costs few more calls than no pieces at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import Any

from ..errors import MemoryLimitError
from ..plan import physical as p
from ..plan.physical import RowGroups
from ..plan.pipeline_steps import probed
from ..plan.window.window_operator import WindowRows
from ..progress.run_progress import Progress
from ..records import dataclass
from ..storage.columns.piece_caches import PassingCache
from . import breakers, sorted_ranges
from .run_unfused import T, opened
from .spilling import Workspace
from .transfer import moved

FIRST_ROWS = 1 << 14  # of a source's first piece; each has twice the rows of the one before
MOST_ROWS = 1 << 20  # of any piece, and of the pairs that a nested loop makes at a time
LEAST_ROWS = 1 << 10  # of a piece, however little room there is
PIECES_IN_ROOM = 32
MOST_ROWS_GPU, PIECES_IN_ROOM_GPU = 1 << 24, 12
BYTES_A_VALUE = 16  # about
REASON = "its rows are made a piece at a time, until the limit above is reached"


class TooFew(Exception):
    """The sources gave all the rows that they were to give, and the limit is not reached."""


@dataclass
class Pull(Workspace[T]):
    """One pull through a plan; `tables` are those that are complete, by the identity of their nodes.

    `readers` counts by identity who reads a node.  `most` is the number of rows after which the sources give up with `TooFew`,
    None for never.  `first_rows` are those of a source's first piece.  `reads_all`: nobody stops before the last row.  `measured` gets seconds and rows of
    each node that was pulled, by identity.  `running` is the node that runs or ran last, and `collecting` are those, by
    identity, of which some pieces are kept until all are there.  `given` are pieces, by identity too, that are made otherwise.
    """

    tables: dict[int, T] = field(default_factory=dict)
    readers: Mapping[int, int] = field(default_factory=dict)
    most: int | None = None
    first_rows: int = FIRST_ROWS
    reads_all: bool = False
    measured: dict[int, tuple[float, int]] = field(default_factory=dict)
    taken: int = 0
    anew: set[int] = field(default_factory=set)
    running: p.Physical | None = None
    collecting: set[int] = field(default_factory=set)
    given: dict[int, Iterator[T]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cache = PassingCache(self.context.cache, self.reads_all)
        # What counts is the rows that sources give
        self._inner = replace(
            self.context, cache=cache, receipts={}, progress=Progress(), _derived={}
        )

    def all_rows(self, node: p.Physical) -> T:
        """Return all rows of a node as one table."""
        try:
            return self.collected(node)
        finally:
            self.finish()

    def finish(self) -> None:
        """Let complete tables go, and count what was read as read by the query."""
        self.tables = {}
        self.context.bytes_read += self._inner.bytes_read

    def pieces(self, node: p.Physical) -> Iterator[T]:
        """Yield a node's rows in order, a piece at a time: at least one, which may be empty."""
        if id(node) in self.tables:
            yield from self.slices(node, self.tables[id(node)])
            return
        if not self.is_alone(node) and self._keep(node):
            yield from self.slices(node, self.tables[id(node)])
            return
        if id(node) in self.given:
            yield from self.given.pop(id(node))
            return
        make = PIECES.get(type(node))
        if make is not None:
            yield from make(self, node)
            return
        inputs = tuple(map(self.collected, node.children))
        yield from self.slices(node, self.run(node, inputs))

    def is_alone(self, node: p.Physical) -> bool:
        """Whether a node's rows go to one other node, and are not there yet."""
        return id(node) not in self.tables and self.readers.get(id(node), 1) < 2

    def _keep(self, node: p.Physical) -> bool:
        """Complete a node that several others read; where there is no room for its rows, each of them makes them anew."""
        if id(node) in self.anew:
            return False
        self.anew.add(id(node))  # what is below asks for it as for any other
        with suppress(MemoryLimitError, MemoryError):
            table = self.collected(node)
            self.hold(node, self.backends[node.device].num_bytes(table))
            self.tables[id(node)] = table
        return id(node) in self.tables

    # What makes rows

    def _range(self, node: p.RangeScan) -> Iterator[T]:
        numbers = range(node.start, node.stop, node.step)
        for start, stop in self._growing(_length(numbers), self.piece_rows(node)):
            part = numbers[start:stop]
            self._take(len(part))
            made = replace(node, start=part.start, stop=part.stop, step=part.step)
            piece = self.run(made, (), node)
            self.context.progress.advance(len(part))
            yield piece
            del piece  # before the next one is made

    def _row_groups(self, node: p.ParquetScan) -> Iterator[T]:
        table: Any = node.table
        backend = self.backends[node.device]
        if (
            self.reads_all and node.device != "cpu"
        ):  # whose pieces are cut out of columns that lie whole below it
            backend.store_columns(node, self.context)
        chosen = table.all_row_groups if node.selection is None else node.selection
        groups = [(part.file, group) for part in chosen for group in part.groups]
        wanted, first = min(self.first_rows, self.piece_rows(node)), 0
        while first < max(len(groups), 1):
            rows, last = 0, first
            while last < len(groups) and (last == first or rows < wanted):
                file, group = groups[last]
                rows += table.group_rows[file][group]
                last += 1
            part = tuple(RowGroups(file, (group,)) for file, group in groups[first:last])
            self._take(rows)
            scan = replace(node, selection=part)
            if rows > 2 * wanted and backend.batches is not None:
                yield from self._batches(node, scan, rows, wanted)
            else:
                piece = self.run(scan, (), node)
                self.context.progress.advance(rows)
                yield piece
                del piece  # before the next one is made
            first = max(last, first + 1)
            wanted = min(2 * max(wanted, rows), self.piece_rows(node))

    def _memory(self, node: p.MemoryScan) -> Iterator[T]:
        table: Any = node.table
        if self.backends[node.device].batches is None:
            yield from self.slices(node, self.run(node, ()))
        else:
            yield from self._batches(node, node, table.num_rows, self.first_rows)

    def _batches(
        self, node: p.Physical, scan: p.ParquetScan | p.MemoryScan, rows: int, wanted: int
    ) -> Iterator[T]:
        """Yield a row group or a table, which has more rows than are wanted, as it is decoded."""
        ranges = self._growing(rows, self.piece_rows(node), wanted)
        counts = (stop - start for start, stop in ranges)
        batches = self.backends[node.device].batches
        assert batches is not None
        made = batches(scan, counts, self._inner)
        while (part := self._measured(node, partial(next, made, None))) is not None:
            self.context.progress.advance(part.num_rows)
            yield part

    def _take(self, rows: int) -> None:
        """Count rows of a source before they are made."""
        if self.most is not None and self.taken and self.taken + rows > self.most:
            raise TooFew
        self.taken += rows

    # What passes rows on

    def _passed(self, node: p.FilterRows | p.ComputeColumns) -> Iterator[T]:
        for part in self.pieces(node.input):
            yield self.run(node, (part,))

    def _unnested(self, node: p.UnnestRows) -> Iterator[T]:
        for part in self.pieces(node.input):
            yield from self._in_halves(node, part)

    def _in_halves(self, node: p.UnnestRows, part: T) -> Iterator[T]:
        """Unnest some rows, half as many at a time where there is no room for what they become."""
        try:
            made = self.run(node, (part,))
        except MemoryError:
            if part.num_rows < 2:
                raise
        else:
            yield made
            return
        half = -(-part.num_rows // 2)
        for start in (0, half):
            yield from self._in_halves(node, self.cut(node.input, part, start, half))

    def _union(self, node: p.ConcatRows) -> Iterator[T]:
        for below in node.inputs:
            for part in self.pieces(below):
                yield self.run(replace(node, inputs=(below,)), (part,), node)

    def _pipeline(self, node: p.Pipeline) -> Iterator[T]:
        made: T | None = None
        if _is_chain(node):
            with suppress(MemoryError):  # where its groups do not fit
                made = self.run(node, ())
        if made is None:
            yield from self.pieces(opened(node))
        else:
            yield from self.slices(node, made)

    def _limited(self, node: p.LimitRows) -> Iterator[T]:
        if node.keys:
            yield from breakers.first_rows(self, node)
        else:
            yield from self.limited(node, self.pieces(node.input))

    def limited(self, node: p.LimitRows, pieces: Iterator[T]) -> Iterator[T]:
        """Yield pieces up to a limit."""
        offset, left = node.offset, node.count
        for part in pieces:
            found = self.run(replace(node, offset=offset, count=left), (part,), node)
            offset = max(0, offset - part.num_rows)
            yield found
            if left is not None:
                left -= found.num_rows
                if left == 0:
                    return

    def _joined(self, node: p.HashJoin | p.NestedLoopJoin) -> Iterator[T]:
        place = probed(node)
        build = None if place is None else self.tables.get(id(node.children[1 - place]))
        if place is None or build is None:
            breaker = breakers.join if isinstance(node, p.HashJoin) else breakers.nested_loop
            yield from breaker(self, node)  # type: ignore[arg-type]
            return
        for part in self.pieces(node.children[place]):
            rows = build.num_rows if isinstance(node, p.NestedLoopJoin) else 1
            for block in self.blocks(node.children[place], part, rows):
                yield from self.probed(node, place, block, build)

    def _moved(self, node: p.Transfer) -> Iterator[T]:
        for part in self.pieces(node.input):
            yield moved(node, part, self.backends, self._inner)

    def probed(
        self, node: p.HashJoin | p.NestedLoopJoin, place: int, probe: T, build: T
    ) -> Iterator[T]:
        """Join rows with a complete side: in halves where there is no room for all of their pairs."""
        try:
            made = self.run(node, (probe, build) if place == 0 else (build, probe))
        except MemoryError:
            if probe.num_rows < 2:
                raise
        else:
            yield made
            return
        half = probe.num_rows // 2
        for start, count in ((0, half), (half, probe.num_rows - half)):
            part = self.cut(node.children[place], probe, start, count)
            yield from self.probed(node, place, part, build)

    # Tables

    def run(self, node: p.Physical, inputs: tuple[T, ...], named: p.Physical | None = None) -> T:
        """Run an operator over pieces; it counts as the node `named`."""
        operator = self.backends[node.device].OPERATORS[type(node)]
        return self._measured(named or node, partial(operator, node, inputs, self._inner))

    def _measured(self, node: p.Physical, make: Callable[[], T]) -> T:
        """Return a table that a node makes, or None where there is no more."""
        self.context.check()
        self.running = node
        start = time.perf_counter()
        table = make()
        seconds, rows = self.measured.get(id(node), (0.0, 0))
        spent = time.perf_counter() - start
        self.measured[id(node)] = seconds + spent, rows + (0 if table is None else table.num_rows)
        return table

    def collected(self, node: p.Physical) -> T:
        """Return all rows of a node as one table; they count towards the limit while they come together."""
        held = 0
        parts: list[T] = []
        try:
            for part in self.pieces(node):
                if part.num_rows or not parts:
                    parts.append(self.backends[node.device].settled(part))
                    size = self.backends[node.device].num_bytes(parts[-1])
                    held += size
                    self.collecting.add(id(node))
                    self.hold(node, size)
                    if len(parts) > 1:  # which are put together
                        self.context.ask(node, held)
            table = self.together(node, parts, node.columns)
            self.collecting.discard(id(node))
            return table
        finally:
            self.hold(node, -held)

    def slices(self, node: p.Physical, table: T) -> Iterator[T]:
        """Yield a table's rows a piece at a time."""
        size = self.backends[node.device].num_bytes(table) // max(1, table.num_rows)
        most = self.piece_rows(node, size)
        if table.num_rows <= min(self.first_rows, most):
            yield table
            return
        for start, stop in self._growing(table.num_rows, most):
            yield self.cut(node, table, start, stop - start)

    def blocks(self, node: p.Physical, table: T, others: int) -> Iterator[T]:
        """Yield the rows of a piece so few at a time that each may meet `others` rows."""
        step = max(1, MOST_ROWS // max(1, others))
        if table.num_rows <= step:
            yield table
            return
        for start in range(0, table.num_rows, step):
            yield self.cut(node, table, start, step)

    def cut(self, node: p.Physical, table: T, start: int, count: int) -> T:
        """Return some rows of a table."""
        self.context.check()
        rows = p.LimitRows(node, count, start, device=node.device)
        return self.backends[node.device].OPERATORS[p.LimitRows](rows, (table,), self._inner)

    def _growing(self, rows: int, most: int, first: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows, each of twice as many as the one before up to `most`; an empty one if there are none."""
        start, size = 0, min(first or self.first_rows, most)
        while start < rows or start == 0:
            stop = min(start + size, rows)
            yield start, stop
            start, size = max(stop, 1), min(2 * size, most)

    def piece_rows(self, node: p.Physical, size: int = 0) -> int:
        """Return how many rows of a node, of `size` bytes each or about, a piece may have."""
        row = max(size, BYTES_A_VALUE * max(1, len(node.columns)))
        if node.device == "gpu":  # which takes 40 ms to read a row group, and as long for several
            most, pieces = MOST_ROWS_GPU, PIECES_IN_ROOM_GPU
        else:
            most, pieces = MOST_ROWS, PIECES_IN_ROOM
        return max(LEAST_ROWS, min(most, self.room(node.device) // pieces // row))


# All others run over tables, and their rows are cut afterwards
PIECES: dict[type[p.Physical], Callable[[Pull[Any], Any], Iterator[Any]]] = {
    p.RangeScan: Pull._range,
    p.ParquetScan: Pull._row_groups,
    p.MemoryScan: Pull._memory,
    p.ConcatRows: Pull._union,
    p.LimitRows: Pull._limited,
    p.FilterRows: Pull._passed,
    p.ComputeColumns: Pull._passed,
    p.UnnestRows: Pull._unnested,
    p.Transfer: Pull._moved,
    p.Pipeline: Pull._pipeline,
    p.HashJoin: Pull._joined,
    p.NestedLoopJoin: Pull._joined,
    p.HashAggregate: breakers.aggregate,
    p.DistinctOn: breakers.first_rows,
    p.SortRows: sorted_ranges.sort,
    WindowRows: breakers.window,
    p.TopK: breakers.top,
    p.HashSetOperation: breakers.set_operation,
}


def _is_chain(pipeline: p.Pipeline) -> bool:
    """Whether a pipeline aggregates the rows of one scan: then it comes in chunks by itself."""
    steps = pipeline.steps
    return steps.groups is not None and not steps.joins and not pipeline.inputs


def _length(numbers: range) -> int:
    return (numbers[-1] - numbers[0]) // numbers.step + 1 if numbers else 0
