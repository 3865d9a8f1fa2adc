"""The iterator model: operators ask those below them for their rows a piece at a time, so that no producer runs longer than it is needed.

A plan normally runs an operator at a time over whole tables, or in kernels.  Below a LIMIT its rows are pulled instead: scans
read a few row groups, `range()` counts a little further, and a cross join makes the pairs of a few rows, until there
are enough (Graefe, Volcano, 1994; pieces instead of rows as in MonetDB/X100).  Pieces grow, so that a limit that is never reached
costs few more calls than no pieces at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..plan import physical as p
from ..plan.physical import RowGroups
from ..storage.cache import CacheKey, ColumnCache
from .bodies import Operator, probed
from .context import Context

FIRST_ROWS = 1 << 14  # of a source's first piece; each has twice the rows of the one before
MOST_ROWS = 1 << 20  # of any piece, and of the pairs that a nested loop makes at a time
FEW_ROWS = 1 << 17  # of a source or a join, which are made at once
REASON = "its rows are made a piece at a time, until the limit above is reached"

Operators = Mapping[type[p.Physical], Operator]


class TooFew(Exception):
    """The sources gave all the rows that they were to give, and the limit is not reached."""


class _Passing(ColumnCache):
    """The column cache for scans of pieces: they read what is there whole and leave nothing behind."""

    def __init__(self, others: ColumnCache) -> None:
        super().__init__(0)
        self._others = others

    def get(self, key: CacheKey) -> Any | None:
        return self._others.get(key)

    def holds(self, key: CacheKey) -> bool:
        return self._others.holds(key)

    def release(self, device: str, nbytes: int) -> int:
        return self._others.release(device, nbytes)


@dataclass
class Pull:
    """One pull through a plan; `tables` are the complete ones, by the identity of their nodes, for those that cannot come in pieces.

    `most` is the number of rows after which the sources give up with `TooFew`, None for never.  `measured` gets seconds and rows of
    each node that was pulled, by identity.
    """

    operators: Callable[[p.Device], Operators]
    tables: Mapping[int, Any]
    context: Context
    most: int | None = None
    measured: dict[int, tuple[float, int]] = field(default_factory=dict)
    taken: int = 0

    def __post_init__(self) -> None:
        cache = _Passing(self.context.cache)
        self._inner = replace(self.context, cache=cache, receipts={}, _derived={})

    def first_rows(self, node: p.Physical, count: int) -> Any:
        """Return at least the first `count` rows of a node, or all that it has."""
        parts: list[Any] = []
        rows = 0
        for part in self.pieces(node):
            parts.append(part)
            rows += part.num_rows
            if rows >= count:
                break
        self.context.bytes_read += self._inner.bytes_read
        return self._together(node, parts)

    def pieces(self, node: p.Physical) -> Iterator[Any]:
        """Yield a node's rows in order, a piece at a time: at least one, which may be empty."""
        if id(node) in self.tables:
            yield from self._slices(node, self.tables[id(node)], FIRST_ROWS)
            return
        match node:
            case p.RangeScan():
                yield from self._range(node)
            case p.ParquetScan():
                yield from self._row_groups(node)
            case p.MemoryScan() | p.ValuesScan():
                yield from self._slices(node, self._run(node, ()), FIRST_ROWS)
            case p.ConcatRows(inputs=inputs):
                for i, below in enumerate(inputs):
                    for part in self.pieces(below):
                        yield self._run(_alone(node, i), (part,), node)
            case p.LimitRows(count=int()):
                yield from self._limited(node)
            case _:
                place = probed(node)
                assert place is not None
                for part in self.pieces(node.children[place]):
                    yield from self._passed(node, place, part)

    # What makes rows

    def _range(self, node: p.RangeScan) -> Iterator[Any]:
        numbers = range(node.start, node.stop, node.step)
        for start, stop in _growing(len(numbers)):
            part = numbers[start:stop]
            self._take(len(part))
            yield self._run(
                replace(node, start=part.start, stop=part.stop, step=part.step), (), node
            )

    def _row_groups(self, node: p.ParquetScan) -> Iterator[Any]:
        table: Any = node.table
        chosen = table.all_row_groups if node.selection is None else node.selection
        groups = [(part.file, group) for part in chosen for group in part.groups]
        wanted, first = FIRST_ROWS, 0
        while first < max(len(groups), 1):
            rows, last = 0, first
            while last < len(groups) and (last == first or rows < wanted):
                file, group = groups[last]
                rows += table.group_rows[file][group]
                last += 1
            part = tuple(RowGroups(file, (group,)) for file, group in groups[first:last])
            self._take(rows)
            yield self._run(replace(node, selection=part), (), node)
            first, wanted = max(last, first + 1), min(2 * max(wanted, rows), MOST_ROWS)

    def _take(self, rows: int) -> None:
        """Count rows of a source before they are made."""
        if self.most is not None and self.taken and self.taken + rows > self.most:
            raise TooFew
        self.taken += rows

    # What passes rows on

    def _limited(self, node: p.LimitRows) -> Iterator[Any]:
        assert node.count is not None
        offset, left = node.offset, node.count
        for part in self.pieces(node.input):
            found = self._run(replace(node, offset=offset, count=left), (part,), node)
            offset, left = max(0, offset - part.num_rows), left - found.num_rows
            yield found
            if left == 0:
                return

    def _passed(self, node: p.Physical, place: int, part: Any) -> Iterator[Any]:
        """Yield what a node makes of a piece of its input: in several pieces where each row may meet many others."""
        if not isinstance(node, p.NestedLoopJoin):
            yield self._run(node, self._inputs(node, place, part))
            return
        most = max(1, MOST_ROWS // max(1, self.tables[id(node.right)].num_rows))
        for block in self._slices(node.left, part, most, most):
            yield self._run(node, self._inputs(node, place, block))

    def _inputs(self, node: p.Physical, place: int, part: Any) -> tuple[Any, ...]:
        children = enumerate(node.children)
        return tuple(part if i == place else self.tables[id(c)] for i, c in children)

    def _slices(
        self, node: p.Physical, table: Any, first: int, most: int = MOST_ROWS
    ) -> Iterator[Any]:
        if table.num_rows <= first:
            yield table
            return
        cut = self.operators(node.device)[p.LimitRows]
        for start, stop in _growing(table.num_rows, first, most):
            self.context.check()
            rows = p.LimitRows(node, stop - start, start, device=node.device)
            yield cut(rows, (table,), self._inner)

    def _run(
        self, node: p.Physical, inputs: tuple[Any, ...], named: p.Physical | None = None
    ) -> Any:
        """Run an operator over pieces; it counts as the node `named`."""
        self.context.check()
        start = time.perf_counter()
        table = self.operators(node.device)[type(node)](node, inputs, self._inner)
        seconds, rows = self.measured.get(id(named or node), (0.0, 0))
        spent = time.perf_counter() - start
        self.measured[id(named or node)] = seconds + spent, rows + table.num_rows
        return table

    def _together(self, node: p.Physical, parts: list[Any]) -> Any:
        if len(parts) == 1:
            return parts[0]
        rows = p.ConcatRows((node,) * len(parts), node.columns, device=node.device)
        return self.operators(node.device)[p.ConcatRows](rows, tuple(parts), self._inner)


def _growing(
    rows: int, first: int = FIRST_ROWS, most: int = MOST_ROWS
) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows, each of twice as many as the one before up to `most`; an empty one if there are none."""
    start, size = 0, first
    while start < rows or start == 0:
        stop = min(start + size, rows)
        yield start, stop
        start, size = max(stop, 1), min(2 * size, most)


def _alone(node: p.ConcatRows, number: int) -> p.ConcatRows:
    """A union of one of its inputs, which gives the columns their names."""
    return replace(node, inputs=(node.inputs[number],))


# What may be pulled


def pulled_below(node: p.Physical, readers: Mapping[int, int]) -> p.Pipeline | None:
    """Return the plan of a limit whose rows may come in pieces, with the nodes that are to be complete before as inputs.

    `readers` counts by identity who reads a node.  None where nothing would be saved: the rows come from what has to be complete.
    """
    if not isinstance(node, p.LimitRows) or node.keys or node.count is None:
        return None
    found = _Below(readers)
    body = node.with_children([found.visit(node.input, exclusive=True)])
    return p.Pipeline(body, tuple(found.complete), device=node.device) if found.saves else None


@dataclass
class _Below:
    """One look at what is below a limit; `saves`: among what can be pulled is a source or a join of more than a few rows."""

    readers: Mapping[int, int]
    complete: list[p.Physical] = field(default_factory=list)
    saves: bool = False

    def visit(self, node: p.Physical, exclusive: bool) -> p.Physical:
        """Return a node with what can be pulled below it; all else becomes an input."""
        if exclusive and self.readers.get(id(node), 1) > 1:
            return self._completed(node)
        self.saves = self.saves or _is_large(node)
        match node:
            case p.RangeScan() | p.ParquetScan() | p.MemoryScan() | p.ValuesScan():
                return node
            case p.ConcatRows() | p.LimitRows(count=int(), keys=()):
                return node.with_children([self.visit(c, exclusive) for c in node.children])
            case p.Pipeline(body=body) if p.aggregate_of(body) is None:
                return self.visit(opened(node), exclusive)
            case p.HashAggregate():
                return self._completed(node)
        place = probed(node)
        if place is None:
            return self._completed(node)
        children = enumerate(node.children)
        return node.with_children(
            [self.visit(c, exclusive) if i == place else self._completed(c) for i, c in children]
        )

    def _completed(self, node: p.Physical) -> p.Physical:
        if not any(node is known for known in self.complete):
            self.complete.append(node)
        return node


def _is_large(node: p.Physical) -> bool:
    match node:
        case p.RangeScan(start=start, stop=stop, step=step):
            return len(range(start, stop, step)) > FEW_ROWS
        case p.ParquetScan(table=table):
            return (table.statistics().rows or 0) > FEW_ROWS
        case p.HashJoin(estimate=rows) | p.NestedLoopJoin(estimate=rows):
            return rows is None or rows > FEW_ROWS
    return False


def opened(pipeline: p.Pipeline) -> p.Physical:
    """Return a pipeline as the operators of its body, over its inputs."""

    def visit(node: p.Physical) -> p.Physical:
        if isinstance(node, p.Stored):
            return pipeline.inputs[node.number]
        return node.with_children([visit(child) for child in node.children])

    return visit(pipeline.body)
