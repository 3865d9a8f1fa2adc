"""A placed plan as each worker of a cluster runs it: scans of shares, and exchanges where an operator needs more than its worker's rows.

All workers run the same plan, so that its exchanges pair up.  Of every node it is known where its rows are:

    everywhere  each worker has all of them, since the tables below are small or came from the client
    shares      each worker has some, which in the order of the workers are all; maybe those of some keys' hashes
    first       the first worker has all, the others none

An aggregate folds each share; its parts are merged on the first worker where these are few, else on the worker that their keys' hash
says.  Of a join one side goes to all workers where that moves less than sending both where their keys' hash says.  What needs all
rows at once gathers them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import count

from ..plan.expr import Column, ColumnRef
from ..plan.partial import Exchange, ExchangeKind, PartialAggregate, in_parts
from ..plan.physical import (
    ComputeColumns,
    ConcatRows,
    DistinctOn,
    FilterRows,
    HashAggregate,
    HashJoin,
    HashSetOperation,
    LimitRows,
    MemoryScan,
    NestedLoopJoin,
    ParquetScan,
    Physical,
    TopK,
    Transfer,
)
from ..plan.window.window_operator import WindowRows

BYTES_A_VALUE = 8.0
ShareOf = Callable[[ParquetScan], ParquetScan | None]


class Where(Enum):
    """Where the rows of a node are."""

    EVERYWHERE = "everywhere"
    SHARES = "shares"
    FIRST = "first"


@dataclass(frozen=True)
class Placed:
    """A node of a worker's plan, and where its rows are; those with equal `keys`, if there are any, on one worker."""

    node: Physical
    where: Where
    keys: tuple[Column, ...] = ()

    def over(self, node: Physical) -> Placed:
        """A node whose rows are where this one's are."""
        kept = self.keys if set(self.keys) <= set(node.columns) else ()
        return Placed(node, self.where, kept)


@dataclass
class Distribution:
    """The plans of workers; `share_of` gives a worker's share of a scan, None for one that each reads whole.

    What is expected to take less than `small` bytes goes to the first worker, or to all, whatever else it would cost.
    """

    share_of: ShareOf
    workers: int
    small: int
    _numbers: count[int] = field(default_factory=count)
    _placed: dict[int, tuple[Physical, Placed]] = field(default_factory=dict)
    _exchanged: dict[tuple[int, str, tuple[Column, ...]], Exchange] = field(default_factory=dict)

    def on_first(self, node: Physical) -> Physical:
        """Return what a worker runs so that the first has all rows of a node."""
        placed = self.placed(node)
        shares = placed.where is Where.SHARES
        return self._exchange(placed.node, "gather") if shares else placed.node

    def placed(self, node: Physical) -> Placed:
        """Return what a worker runs for a node; what several others read stays one object."""
        known = self._placed.get(id(node))
        if known is None:
            known = self._placed[id(node)] = node, self._place(node)
        return known[1]

    def _exchange(
        self,
        node: Physical,
        kind: ExchangeKind,
        keys: tuple[Column, ...] = (),
        *,
        of_first: bool = False,
    ) -> Exchange:
        key = id(node), kind, keys
        if key not in self._exchanged:
            made = Exchange(node, kind, next(self._numbers), keys, of_first)
            self._exchanged[key] = made.placed_as(node)
        return self._exchanged[key]

    def _hashed(self, placed: Placed, keys: tuple[Column, ...]) -> Physical:
        """Return a node's rows where their keys' hash says."""
        if placed.where is Where.SHARES and placed.keys == keys:
            return placed.node
        there = placed.where is Where.EVERYWHERE
        first = placed.where is Where.FIRST
        return self._exchange(placed.node, "pick" if there else "hash", keys, of_first=first)

    def _place(self, node: Physical) -> Placed:
        match node:
            case ParquetScan():
                share = self.share_of(node)
                if share is None:
                    return Placed(node, Where.EVERYWHERE)
                return Placed(share, Where.SHARES)
            case MemoryScan(table=table) if getattr(table, "is_sharded", False):
                return Placed(node, Where.SHARES)
            case FilterRows() | ComputeColumns() | Transfer():
                placed = self.placed(node.input)
                return placed.over(node.with_children((placed.node,)))
            case HashAggregate():
                return self._aggregate(node)
            case TopK(offset=offset, count=wanted):
                return self._first_rows(node, node.replaced(count=wanted + offset, offset=0))
            case LimitRows(offset=offset, count=int(wanted), keys=()):
                return self._first_rows(node, node.replaced(count=wanted + offset, offset=0))
            case HashJoin() | NestedLoopJoin():
                return self._join(node)
            case DistinctOn(keys=keys) if keys:
                return self._by_keys(node, [keys])
            case WindowRows(partition=keys) if keys:
                return self._by_keys(node, [keys])
            case HashSetOperation():
                return self._by_keys(node, [child.columns for child in node.children])
            case ConcatRows():
                return self._concat(node)
        return self._whole(node)

    def _whole(self, node: Physical) -> Placed:
        """A node over all rows: everywhere if its inputs are, else on the first worker."""
        inputs = [self.placed(child) for child in node.children]
        if all(placed.where is Where.EVERYWHERE for placed in inputs):
            made = node.with_children([placed.node for placed in inputs])
            return Placed(made, Where.EVERYWHERE)
        made = node.with_children([self.on_first(child) for child in node.children])
        return Placed(made, Where.FIRST)

    def _by_keys(self, node: Physical, keys: Sequence[tuple[Column, ...]]) -> Placed:
        """A node that needs all rows of equal keys of its inputs together."""
        inputs = [self.placed(child) for child in node.children]
        if all(placed.where is not Where.SHARES for placed in inputs):
            return self._whole(node)
        made = node.with_children([self._hashed(p, k) for p, k in zip(inputs, keys, strict=True)])
        return Placed(made, Where.SHARES)

    def _aggregate(self, node: HashAggregate) -> Placed:
        placed = self.placed(node.input)
        if placed.where is not Where.SHARES:
            return self._whole(node)
        if placed.keys and set(placed.keys) <= set(node.keys):
            return placed.over(node.with_children((placed.node,)))
        split = in_parts(node)
        if not isinstance(split, PartialAggregate):
            if not node.keys:
                return self._whole(node)
            made = node.with_children((self._hashed(placed, node.keys),))
            return Placed(made, Where.SHARES, node.keys)
        partial = split.partial.with_children((placed.node,)).placed_as(node)
        few = not node.keys or self._is_small(node)
        where = Where.FIRST if few else Where.SHARES
        keys = () if few else node.keys
        below: Physical = self._exchange(partial, "gather" if few else "hash", keys)
        for step in (*split.merge, *split.finish):
            below = step.with_children((below,)).placed_as(node)
        items = tuple((c, ColumnRef(c)) for c in node.columns)
        return Placed(ComputeColumns(below, items).placed_as(node), where, keys)

    def _first_rows(self, node: TopK | LimitRows, local: Physical) -> Placed:
        """Of the first rows of each share come the first of all."""
        placed = self.placed(node.input)
        if placed.where is not Where.SHARES:
            return placed.over(node.with_children((placed.node,)))
        # Rows of hashed keys are in no order that one worker would give them
        parts = self._exchange(local.with_children((placed.node,)), "gather")
        return Placed(node.with_children((parts,)), Where.FIRST)

    def _join(self, node: HashJoin | NestedLoopJoin) -> Placed:
        left, right = self.placed(node.left), self.placed(node.right)
        kind = node.kind
        one_side = kind.outputs_right and not (kind.keeps_left or kind.keeps_right)
        if Where.SHARES not in (left.where, right.where):
            return self._whole(node)
        if left.where is Where.SHARES and not kind.keeps_right and self._is_sent(node, node.right):
            return left.over(node.with_children((left.node, self._everywhere(right))))
        if right.where is Where.SHARES and one_side and self._is_sent(node, node.left):
            return right.over(node.with_children((self._everywhere(left), right.node)))
        if isinstance(node, HashJoin) and not node.null_aware:
            sides = self._hashed(left, node.left_keys), self._hashed(right, node.right_keys)
            kept = () if kind.keeps_right else node.left_keys
            return Placed(node, Where.SHARES, kept).over(node.with_children(sides))
        if left.where is Where.SHARES and not kind.keeps_right:
            return left.over(node.with_children((left.node, self._everywhere(right))))
        return self._whole(node)

    def _is_sent(self, join: HashJoin | NestedLoopJoin, side: Physical) -> bool:
        """Whether a side of a join goes to all workers: it is there, small, or moves less than both would."""
        if self.placed(side).where is Where.EVERYWHERE or isinstance(join, NestedLoopJoin):
            return True
        sizes = [_size(child) for child in join.children]
        return self._is_small(side) or _size(side) * self.workers <= sum(sizes)

    def _everywhere(self, placed: Placed) -> Physical:
        there = placed.where is Where.EVERYWHERE
        first = placed.where is Where.FIRST
        return placed.node if there else self._exchange(placed.node, "broadcast", of_first=first)

    def _is_small(self, node: Physical) -> bool:
        return _size(node) < self.small

    def _concat(self, node: ConcatRows) -> Placed:
        inputs = [self.placed(child) for child in node.children]
        if all(placed.where is Where.SHARES for placed in inputs):
            return Placed(node.with_children([p.node for p in inputs]), Where.SHARES)
        return self._whole(node)


def _size(node: Physical) -> float:
    """The bytes that a node's rows are expected to take; no end of them where nothing is known."""
    rows = float("inf") if node.estimate is None else node.estimate
    return rows * BYTES_A_VALUE * max(1, len(node.columns))
