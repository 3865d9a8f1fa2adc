"""A placed plan as each worker of a cluster runs it: scans of shares, and exchanges where an operator needs more than its worker's rows.

All workers run the same plan, so that its exchanges pair up.  Of every node it is known where its rows are (`plan.partitioning`).
An aggregate over groups whose rows are on one worker runs there; another folds each share, and its parts are merged on the first
worker where these are few, else on the worker that their keys' hash says.  A join finds equal keys on one worker, or gets them
there by what moves least (`distribute_joins`).  Of
sorted rows each worker gets a stretch.  What needs all rows at once gathers them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import InitVar, dataclass, field

from ..plan import physical as p
from ..plan.exchange import expected_bytes
from ..plan.expr import Column, ColumnRef, columns_of
from ..plan.logical import Item
from ..plan.partial import PartialAggregate, in_parts
from ..plan.partitioning import (
    ARBITRARY,
    ORDERED,
    REPLICATED,
    SINGLE,
    KeyCut,
    Partitioning,
    Spread,
    described,
    hashed,
    ranged,
)
from ..plan.window.window_operator import WindowRows
from .distribute_joins import Joins
from .exchanges import FEW_ROWS, Claim, Exchanges, Placed
from .key_cuts import Sharing, keys_of_scans, same_column, same_integer
from .looked_up_keys import LookedUpKeys, looked_up_keys


@dataclass
class Distribution:
    """The plans of workers for one placed plan, whose scans `sharing` gives shares of.

    What is expected to take less than `small` bytes goes to the first worker, or to all, whatever else it would cost; groups by keys without
    `few_groups` do not.  `spread` are the
    joins, by the identities of their nodes, in which rows of heavy keys may stay where they are.
    """

    sharing: Sharing
    plan: p.Physical
    small: float
    few_groups: bool = True
    spread: frozenset[int] = frozenset()
    rotated: InitVar[dict[int, p.HashJoin] | None] = None
    claims: list[Claim] = field(default_factory=list)
    _exchanges: Exchanges = field(default_factory=Exchanges)
    _placed: dict[int, tuple[p.Physical, Placed]] = field(default_factory=dict)
    # Gathers of few parts of aggregates, and of first rows
    _of_few: set[int] = field(default_factory=set)
    _cut: set[int] = field(default_factory=set)  # of which first rows are wanted
    # By the tables in which keys of groups are looked up
    _looked_up: dict[int, LookedUpKeys] = field(default_factory=dict)

    def __post_init__(self, rotated: dict[int, p.HashJoin] | None) -> None:
        self._cuts = keys_of_scans(self.plan, self.sharing)
        self._joins = Joins(
            node_of=self.placed,
            exchanges=self._exchanges,
            few=self._of_few,
            plan=self.plan,
            workers=self.sharing.workers,
            small=self.small,
            spread=self.spread,
            rotated=rotated or {},
            rotates=rotated is None,
        )

    def on_first(self) -> p.Physical:
        """Return what a worker runs so that the first has all rows."""
        return self._exchanges.gathered(self.placed(self.plan))

    @property
    def with_heavy_keys(self) -> Distribution:
        """The same, where joins whose rows nobody relies on to be where keys say leave those of heavy keys; asked once the plan is known."""
        free = self._joins.free
        if not free:
            return self
        given = self.sharing, self.plan, self.small, self.few_groups
        return Distribution(*given, free, self._joins.rotated)

    def placed(self, node: p.Physical) -> Placed:
        """Return what a worker runs for a node; what several others read stays one object."""
        known = self._placed.get(id(node))
        if known is None:
            found = self._place(node)
            shown = found.node.replaced(partitioning=found.at)
            self._joins.origins[id(shown)] = node
            known = self._placed[id(node)] = node, Placed(shown, found.at)
        return known[1]

    def _place(self, node: p.Physical) -> Placed:
        match node:
            case p.ParquetScan():
                return self._scan(node)
            case p.MemoryScan(table=table) if getattr(table, "is_sharded", False):
                return Placed(node, ARBITRARY)
            case p.Transfer():
                placed = self.placed(node.input)
                # Each device has a hash of its own
                at = ARBITRARY if placed.at.spread is Spread.HASHED else placed.at
                return placed.over(node.with_children((placed.node,)), at)
            case p.FilterRows(predicate=predicate):
                placed = self.placed(node.input)
                return placed.over(self._before_lookup(node, placed, columns_of(predicate)))
            case p.UnnestRows():
                placed = self.placed(node.input)
                return placed.over(node.with_children((placed.node,)))
            case p.ComputeColumns(items=items):
                placed = self.placed(node.input)
                return Placed(node.with_children((placed.node,)), _computed(placed.at, items))
            case p.HashAggregate():
                return self._aggregate(node)
            case p.TopK(offset=offset, count=wanted):
                return self._first_rows(node, node.replaced(count=wanted + offset, offset=0))
            case p.LimitRows(offset=offset, count=int(wanted), keys=()):
                return self._first_rows(node, node.replaced(count=wanted + offset, offset=0))
            case p.SortRows():
                return self._sort(node)
            case p.HashJoin() | p.NestedLoopJoin():
                return self._joins.placed(node) or self._whole(node)
            case p.DistinctOn(keys=keys) | p.LimitRows(keys=keys) | WindowRows(partition=keys) if (
                keys
            ):
                return self._by_key(node, keys)
            case p.HashSetOperation():
                return self._set_operation(node)
            case p.ConcatRows():
                return self._concat(node)
        return self._whole(node)

    def _scan(self, node: p.ParquetScan) -> Placed:
        if self.sharing.is_whole(node):
            return Placed(node, REPLICATED)
        cut: KeyCut | None = self._cuts.get(id(node))
        share = self.sharing.share(node, cut)
        by = [c for c, s in zip(node.made, node.sources, strict=True) if cut and s == cut.source]
        if cut is None or not (cut.asked and by):
            return Placed(share, ARBITRARY)
        key = share.replaced(made=(by[0],), sources=(cut.source,))
        limits = self.sharing.limits(cut.cuts)
        self.claims.append(Claim.of(key, node.table.identity, limits))
        return Placed(share, ranged(by, cut.cuts))

    def _whole(self, node: p.Physical) -> Placed:
        """A node over all rows: everywhere if its inputs are, else on the first worker."""
        inputs = [self.placed(child) for child in node.children]
        if all(placed.at.is_replicated for placed in inputs):
            made = node.with_children([placed.node for placed in inputs])
            return Placed(made, REPLICATED)
        made = node.with_children(
            [self._exchanges.gathered(self.placed(child)) for child in node.children]
        )
        return Placed(made, SINGLE)

    def _by_key(
        self, node: p.DistinctOn | p.LimitRows | WindowRows, keys: tuple[Column, ...]
    ) -> Placed:
        """A node that needs all rows of equal keys together."""
        if isinstance(node.input, p.SortRows) and not isinstance(node, WindowRows):
            return self._first_of_sorted(node, node.input, keys)
        placed = self.placed(node.input)
        # Of each key's rows the first ones come out, in the order of those: it would be lost where a hash says
        ordered = placed.at.spread is Spread.ORDERED and not isinstance(node, WindowRows)
        if not placed.at.is_shared or ordered:
            return self._whole(node)
        below = self._together(placed, keys)
        return below.over(node.with_children((below.node,)))

    def _together(self, placed: Placed, keys: tuple[Column, ...]) -> Placed:
        """Rows of which equal keys are on one worker."""
        if placed.at.separates(keys):
            self._joins.rely_on(placed.at)
            return placed
        because = f"its input is {described(placed.at)}"
        return Placed(self._exchanges.sent(placed, keys, because=because), hashed(keys))

    def _first_of_sorted(
        self, node: p.DistinctOn | p.LimitRows, sort: p.SortRows, keys: tuple[Column, ...]
    ) -> Placed:
        """The first rows of each key in the order of a sort, for which only rows of equal keys are sorted together."""
        placed = self.placed(sort.input)
        if not placed.at.is_shared:
            return self._whole(node)
        below = self._together(placed, keys)
        ordered = sort.with_children((below.node,)).replaced(partitioning=below.at)
        return below.over(node.with_children((ordered,)))

    def _aggregate(self, node: p.HashAggregate) -> Placed:
        placed = self.placed(node.input)
        if not placed.at.is_shared:
            return self._whole(node)
        if placed.at.separates(node.keys):
            self._joins.rely_on(placed.at)
            return placed.over(node.with_children((placed.node,)))
        few = not node.keys or (self.few_groups and self._is_small(node))
        many = (node.estimate or 0.0) > FEW_ROWS and (id(node) in self._cut or not few)
        found = looked_up_keys(node, placed.node, self.sharing) if many else None
        if found is None:
            return self._in_parts(node, placed, few)
        self.claims += found.claims
        self._looked_up[id(found.table)] = found
        groups = self._in_parts(found.groups, placed.over(found.groups.input), few=False)
        return groups.over(found.beside(groups.node, node.columns))

    def _before_lookup(
        self, node: p.Physical, placed: Placed, read: Collection[Column]
    ) -> p.Physical:
        """Return a node over a worker's rows, over groups before their other keys are looked up if it reads none of these."""
        below = placed.node
        found = self._looked_up.get(id(below.right)) if isinstance(below, p.HashJoin) else None
        if found is None or not {*read} <= {*below.children[0].columns}:
            return node.with_children((below,)).replaced(partitioning=placed.at)
        few = node.with_children((below.children[0],))
        if isinstance(few, p.FilterRows):
            few = few.replaced(keep=None)
        few = few.replaced(partitioning=placed.at.kept(few.columns))
        return found.beside(few, node.columns)

    def _in_parts(self, node: p.HashAggregate, placed: Placed, few: bool) -> Placed:
        """Groups of each worker's rows, merged by the first worker where they are `few`, and else where their keys' hash says."""
        split = in_parts(node)
        if not isinstance(split, PartialAggregate):
            if not node.keys:
                return self._whole(node)
            below = self._exchanges.sent(placed, node.keys, because=split)
            return Placed(node.with_children((below,)), hashed(node.keys))
        partial = split.partial.with_children((placed.node,)).placed_as(node)
        at = SINGLE if few else hashed(node.keys)
        parts = Placed(partial.replaced(partitioning=ARBITRARY), ARBITRARY)
        merged: p.Physical = (
            self._exchanges.of(parts.node, "gather")
            if few
            else self._exchanges.sent(
                parts, node.keys, because=f"its input is {described(placed.at)}"
            )
        )
        if few:
            self._of_few.add(id(merged))
        for step in (*split.merge, *split.finish):
            made = step.with_children((merged,)).placed_as(node)
            merged = made.replaced(partitioning=at.kept(made.columns))
        if merged.columns == node.columns:
            return Placed(merged, at)
        items = tuple((c, ColumnRef(c)) for c in node.columns)
        return Placed(p.ComputeColumns(merged, items).placed_as(node), at)

    def _first_rows(self, node: p.TopK | p.LimitRows, local: p.Physical) -> Placed:
        """Of the first rows of each share come the first of all."""
        self._cut.add(id(node.input))
        placed = self.placed(node.input)
        if not placed.at.is_shared:
            return placed.over(node.with_children((placed.node,)))
        # Rows of hashed keys are in no order that one worker would give them
        orders = [order.column for order in node.keys if isinstance(order, p.Order)]
        first = self._before_lookup(local, placed, orders)
        gathered = self._exchanges.of(first, "gather")
        if self._is_small(node):
            self._of_few.add(id(gathered))
        return Placed(node.with_children((gathered,)), SINGLE)

    def _sort(self, node: p.SortRows) -> Placed:
        """Each worker sorts its rows, and those of its stretch of the order that come from all; few rows are sorted by the first."""
        placed = self.placed(node.input)
        if not placed.at.is_shared or (self.few_groups and self._is_small(node)):
            return self._whole(node)
        own = node.with_children((placed.node,)).replaced(partitioning=placed.at)
        sent = self._exchanges.of(own, "sort", orders=node.keys)
        return Placed(node.with_children((sent,)), ORDERED)

    def _is_small(self, node: p.Physical) -> bool:
        return expected_bytes(node) < self.small

    def _set_operation(self, node: p.HashSetOperation) -> Placed:
        left, right = self.placed(node.left), self.placed(node.right)
        if not (left.at.is_shared or right.at.is_shared):
            return self._whole(node)
        pairs = tuple(zip(left.node.columns, right.node.columns, strict=True))
        if left.at.meets(right.at, pairs):
            self._joins.rely_on(left.at, right.at)
            made, at = node.with_children((left.node, right.node)), left.at
        else:
            why = f"left is {described(left.at)}, right {described(right.at)}"
            sent = [
                self._exchanges.sent(side, side.node.columns, because=why) for side in (left, right)
            ]
            made, at = node.with_children(sent), hashed(left.node.columns)
        return Placed(made, at.renamed(tuple(zip(left.node.columns, node.made, strict=True))))

    def _concat(self, node: p.ConcatRows) -> Placed:
        """Rows stay where they are; of those that each worker has, or that the first alone has, the first one's are taken."""
        inputs = [self.placed(child) for child in node.children]
        if not any(placed.at.is_shared for placed in inputs):
            return self._whole(node)
        shares = [i.node if i.at.is_shared else self._exchanges.of(i.node, "pick") for i in inputs]
        return Placed(node.with_children(shares), ARBITRARY)


def _computed(at: Partitioning, items: Sequence[Item]) -> Partitioning:
    """Where the rows of computed columns are; ranges hold for integers of any width, hashes for the column itself."""
    of_value = same_integer if at.spread is Spread.RANGED else same_column
    return at.renamed([(old, new) for new, e in items if (old := of_value(e)) is not None])
