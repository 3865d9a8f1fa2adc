"""A placed plan as each worker of a cluster runs it: scans of shares, and meetings where an operator needs more than its worker's rows.

All workers run the same plan, so that its meetings pair up.  Of every node it is known where its rows are:

    everywhere  each worker has all of them, since the tables below are small or came from the client
    shares      each worker has some, which in the order of the workers are all
    first       the first worker has all, the others none

An aggregate folds each share and merges the parts on the first worker; a join has the side that it may not cut on every worker; what
needs all rows at once gathers them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import count
from typing import Literal as OneOf

from ..plan.expr import ColumnRef
from ..plan.partial import Exchange, in_parts
from ..plan.physical import (
    ComputeColumns,
    ConcatRows,
    FilterRows,
    HashAggregate,
    HashJoin,
    LimitRows,
    NestedLoopJoin,
    ParquetScan,
    Physical,
    TopK,
    Transfer,
)

ShareOf = Callable[[ParquetScan], ParquetScan | None]


class Where(Enum):
    """Where the rows of a node are."""

    EVERYWHERE = "everywhere"
    SHARES = "shares"
    FIRST = "first"


Placed = tuple[Physical, Where]


def distribute(plan: Physical, share_of: ShareOf) -> Physical:
    """Return what one worker runs; `share_of` gives its share of a scan, None for a table that each worker reads whole."""
    return _Distribution(share_of).on_first(plan)


class _Distribution:
    """One worker's plan while it is made; a node that several others read stays one object."""

    def __init__(self, share_of: ShareOf) -> None:
        self._share_of = share_of
        self._numbers = count()
        self._placed: dict[int, tuple[Physical, Placed]] = {}
        self._exchanged: dict[tuple[int, str], Exchange] = {}

    def on_first(self, node: Physical) -> Physical:
        """Return a node whose rows the first worker has, if not everybody."""
        made, where = self.placed(node)
        return self._exchange(made, "gather") if where is Where.SHARES else made

    def placed(self, node: Physical) -> Placed:
        known = self._placed.get(id(node))
        if known is None:
            known = self._placed[id(node)] = node, self._place(node)
        return known[1]

    def _exchange(self, node: Physical, kind: OneOf["gather", "broadcast"]) -> Exchange:
        known = self._exchanged.get((id(node), kind))
        if known is None:
            known = Exchange(node, kind, next(self._numbers)).placed_as(node)
            self._exchanged[id(node), kind] = known
        return known

    def _place(self, node: Physical) -> Placed:
        match node:
            case ParquetScan():
                share = self._share_of(node)
                return (node, Where.EVERYWHERE) if share is None else (share, Where.SHARES)
            case FilterRows() | ComputeColumns() | Transfer():
                made, where = self.placed(node.input)
                return node.with_children((made,)), where
            case HashAggregate():
                return self._aggregate(node)
            case TopK(offset=offset, count=wanted):
                return self._first_rows(node, node.replaced(count=wanted + offset, offset=0))
            case LimitRows(offset=offset, count=int(wanted), keys=()):
                return self._first_rows(node, node.replaced(count=wanted + offset, offset=0))
            case HashJoin() | NestedLoopJoin():
                return self._join(node)
            case ConcatRows():
                return self._concat(node)
        return self._whole(node)

    def _whole(self, node: Physical) -> Placed:
        """A node over all rows: everywhere if its inputs are, else on the first worker."""
        if not node.children or all(w is Where.EVERYWHERE for w in self._places(node.children)):
            made = [self.placed(child)[0] for child in node.children]
            return node.with_children(made), Where.EVERYWHERE
        return node.with_children([self.on_first(child) for child in node.children]), Where.FIRST

    def _places(self, nodes: Sequence[Physical]) -> list[Where]:
        return [self.placed(node)[1] for node in nodes]

    def _aggregate(self, node: HashAggregate) -> Placed:
        made, where = self.placed(node.input)
        split = in_parts(node)
        if where is not Where.SHARES or isinstance(split, str):
            return self._whole(node)
        partial = split.partial.with_children((made,)).placed_as(node)
        below: Physical = self._exchange(partial, "gather")
        for step in (*split.merge, *split.finish):
            below = step.with_children((below,)).placed_as(node)
        items = tuple((column, ColumnRef(column)) for column in node.columns)
        return ComputeColumns(below, items).placed_as(node), Where.FIRST

    def _first_rows(self, node: TopK | LimitRows, local: Physical) -> Placed:
        """Of the first rows of each share come the first of all."""
        made, where = self.placed(node.input)
        if where is not Where.SHARES:
            return node.with_children((made,)), where
        return node.with_children(
            (self._exchange(local.with_children((made,)), "gather"),)
        ), Where.FIRST

    def _join(self, node: HashJoin | NestedLoopJoin) -> Placed:
        (left, of_left), (right, of_right) = map(self.placed, node.children)
        if of_left is Where.SHARES and not node.kind.keeps_right:
            if of_right is not Where.EVERYWHERE:
                right = self._exchange(right, "broadcast")
            return node.with_children((left, right)), Where.SHARES
        inner = not (node.kind.keeps_left or node.kind.keeps_right) and node.kind.outputs_right
        if of_right is Where.SHARES and inner:
            if of_left is not Where.EVERYWHERE:
                left = self._exchange(left, "broadcast")
            return node.with_children((left, right)), Where.SHARES
        return self._whole(node)

    def _concat(self, node: ConcatRows) -> Placed:
        if all(where is Where.SHARES for where in self._places(node.children)):
            return node.with_children([self.placed(c)[0] for c in node.children]), Where.SHARES
        return self._whole(node)
