"""Joins of a placed plan as each worker of a cluster runs them: both sides meet by what moves least.

One side goes to all workers, or to where the other one's keys lie, or both go where their hash says.  What moves is less by what the other
side rules out (`reduce_moved`), and what lies on one worker is joined before it moves (`joined_sooner`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import field, replace
from functools import partial
from math import inf

from ..plan import physical as p
from ..plan.exchange import Exchange, expected_bytes
from ..plan.expr import Column, ColumnRef, columns_of
from ..plan.join_kinds import JoinKind
from ..plan.node import walk_once
from ..plan.partial import FinishAverages
from ..plan.partitioning import ARBITRARY, REPLICATED, Pairs, Partitioning, Spread, described
from ..records import dataclass
from .estimates.chain_estimate import ChainEstimates
from .estimates.relation_estimate import RelationEstimate
from .exchanges import Exchanges, Placed
from .join_ways import (
    STAY,
    JoinSide,
    Move,
    Way,
    cheapest_way,
    equal_columns,
    partners,
    side_of_heavy_keys,
)
from .reduce_moved import without_unmatched

Join = p.HashJoin | p.NestedLoopJoin

# Groups that all workers merge: few go by the host in one meeting, and a kernel takes hardly less time for a share of them
MERGED_ON_ALL = 1 << 13


@dataclass
class Joins:
    """The joins of one plan; `node_of` returns what a worker runs for a node, `few` are gathers of few rows, by identity.

    What is expected to take less than `small` bytes goes to all, whatever else it would cost.  `spread` are joins, by the identities of
    their nodes, in which rows of heavy keys may stay where they are.  `rotated` are joins in another order by those that they stand for;
    `rotates`: more are looked for.
    """

    node_of: Callable[[p.Physical], Placed]
    exchanges: Exchanges
    few: set[int]
    plan: p.Physical
    workers: int
    small: float
    spread: frozenset[int]
    rotated: dict[int, p.HashJoin]
    rotates: bool
    origins: dict[int, p.Physical] = field(default_factory=dict)  # of nodes that workers run
    _costs: dict[int, float] = field(default_factory=dict)  # of joins, and of all below them
    _spreadable: set[int] = field(default_factory=set)
    _relied_on: set[int] = field(default_factory=set)
    _estimates: ChainEstimates = field(default_factory=ChainEstimates)

    def __post_init__(self) -> None:
        self._readers = Counter(id(c) for node in walk_once(self.plan) for c in node.children)

    @property
    def free(self) -> frozenset[int]:
        """The joins of whose rows nobody relies on to be where keys say."""
        return frozenset(self._spreadable - self._relied_on)

    def rely_on(self, *places: Partitioning) -> None:
        """Note that equal keys have to be on one worker."""
        for at in places:
            self._relied_on |= at.made_by

    def placed(self, node: Join) -> Placed | None:
        """Return what a worker runs for a join, None where all rows have to be on one worker."""
        if id(node) in self.rotated:
            return self.node_of(self.rotated[id(node)])
        left, right = map(self.node_of, node.children)
        pairs = equal_columns(node)
        left = self._beside(left, right, tuple((b, a) for a, b in pairs)) or self._on_all(left)
        right = self._beside(right, left, pairs) or self._on_all(right)
        if not (left.at.is_shared or right.at.is_shared):
            return None
        needed = self._needed(node, 0, left, right), self._needed(node, 1, right, left)
        sides = self._side(needed[0]), self._side(needed[1])
        way = cheapest_way(node, *sides, self.workers)
        if way is None:
            return None
        self._costs[id(node)] = way.cost + sum(map(self._cost, node.children))
        sooner = self._joined_sooner(node, left, right) if way.cost else None
        if sooner is not None:
            return sooner
        placed = [
            whole if move == STAY else moved
            for whole, moved, move in zip((left, right), needed, (way.left, way.right), strict=True)
        ]
        return self._by_way(node, placed, way, side_of_heavy_keys(node, way, sides))

    def _by_way(self, node: Join, placed: Sequence[Placed], way: Way, heavy: int | None) -> Placed:
        """A join whose sides move as a way says; of one, rows of heavy keys may stay."""
        why = f"left is {described(placed[0].at)}, right {described(placed[1].at)}"
        moves = way.left, way.right
        if heavy is not None and id(node) in self.spread:
            made = node.with_children(self._spread(node, placed, moves, heavy, why))
            return Placed(made, ARBITRARY)
        if not any(move.everywhere for move in moves):
            self.rely_on(
                *(side.at for side, move in zip(placed, moves, strict=True) if not move.keys)
            )
        sent = [self._moved(side, move, why) for side, move in zip(placed, moves, strict=True)]
        made, at = node.with_children(sent), way.at.kept(node.columns)
        if heavy is not None:
            self._spreadable.add(id(node))
            at = replace(at, made_by=at.made_by | {id(node)})
        return Placed(made, at)

    def _on_all(self, placed: Placed) -> Placed:
        """What the first worker makes of few rows, as all make it of these."""
        if placed.at.spread is not Spread.SINGLE:
            return placed
        made = made_on_all(placed.node, self.few, self.exchanges.to_all)
        return placed if made is None else Placed(made, REPLICATED)

    def _beside(self, placed: Placed, other: Placed, pairs: Pairs) -> Placed | None:
        """Groups of which each worker merges those whose keys the other side has there, instead of that all merge all."""
        is_here = placed.at.spread is Spread.SINGLE and other.at.is_shared
        keys = other.at.beside(pairs) if is_here else None
        if keys is None or (placed.node.estimate or 0.0) < MERGED_ON_ALL:
            return None
        cuts, why = other.at.cuts, f"the other side is {described(other.at)}"

        def send(parts: p.Physical) -> Exchange:
            return self.exchanges.sent(Placed(parts, ARBITRARY), keys, cuts, because=why)

        made = merged_by_keys(placed.node, self.few, keys, send, other.at.of(keys))
        return None if made is None else Placed(made, other.at.of(keys).kept(made.columns))

    def _needed(self, node: Join, side: int, placed: Placed, other: Placed) -> Placed:
        """What may have to move of a side's rows."""
        if not (isinstance(node, p.HashJoin) and placed.at.is_shared):
            return placed
        sides = placed.node, other.node
        return placed.over(without_unmatched(node, side, *sides, self._relation, self.workers))

    def _relation(self, node: p.Physical) -> RelationEstimate | None:
        """What is expected of a node by what all workers know of whole tables; of rows in their memory each knows its own."""
        while isinstance(node, Exchange):
            node = node.input
        known = self.origins.get(id(node))
        scans = (n for n in walk_once(known or node) if isinstance(n, p.MemoryScan))
        if known is None or any(getattr(scan.table, "is_sharded", False) for scan in scans):
            return None
        return self._estimates.relation(known)

    def _cost(self, node: p.Physical) -> float:
        """What the joins of a tree move."""
        known = self._costs.get(id(node))
        return sum(map(self._cost, node.children)) if known is None else known

    def _joined_sooner(self, node: Join, left: Placed, right: Placed) -> Placed | None:
        """The same rows by joins in an order in which less moves."""
        if not self.rotates or not isinstance(node, p.HashJoin):
            return None
        pairs = tuple(zip(node.left_keys, node.right_keys, strict=True))
        back = tuple((b, a) for a, b in pairs)
        for side, other, own in ((0, right, pairs), (1, left, back)):

            def is_beside(part: p.Physical, at: Partitioning = other.at, own: Pairs = own) -> bool:
                return self.node_of(part).at.meets(at, own)

            made = joined_sooner(node, side, lambda part: self._readers[id(part)] < 2, is_beside)
            if made is None:
                continue
            self.rotates = False
            found = self.node_of(made)
            self.rotates = True
            if self._cost(made) < self._costs[id(node)]:
                self.rotated[id(node)] = made
                return found
        return None

    def _spread(
        self,
        node: Join,
        placed: Sequence[Placed],
        moves: tuple[Move, Move],
        heavy: int,
        why: str,
    ) -> list[Exchange]:
        """Of one side rows of heavy keys stay, of the other they go to all."""
        move, other = moves[heavy], moves[1 - heavy]
        stays = self.exchanges.sent(
            placed[heavy], move.keys, move.cuts, because=why, keeps_heavy=True
        )
        if other.keys:
            goes = self.exchanges.sent(placed[1 - heavy], *other[1:], because=why, beside=stays)
        else:
            keys = partners(node, heavy, move.keys)
            goes = self.exchanges.of(placed[1 - heavy].node, "spread", keys, beside=stays)
        return [goes, stays] if heavy else [stays, goes]

    def _side(self, placed: Placed) -> JoinSide:
        size = expected_bytes(placed.node)
        return JoinSide(placed.at, size, size / self.small if self.small else inf)

    def _moved(self, placed: Placed, move: Move, why: str) -> p.Physical:
        if move.everywhere:
            if placed.at.is_replicated:
                return placed.node
            first = placed.at.spread is Spread.SINGLE
            to_all = partial(self.exchanges.to_all, because=why, of_first=first)
            return below_renames(placed.node, to_all)
        if not move.keys:
            return placed.node
        return self.exchanges.sent(placed, move.keys, move.cuts, because=why)


ToAll = Callable[[p.Physical], Exchange]


def made_on_all(node: p.Physical, few: Collection[int], to_all: ToAll) -> p.Physical | None:
    """Steps(Gather(few rows), replicated ...) -> Steps(Broadcast(few rows), replicated ...).

    The first worker has not to send all what it makes of them, which would be a second meeting.  `few` are such gathers, by identity;
    None where steps are over other rows.
    """
    if id(node) in few:
        return to_all(node.children[0])
    if isinstance(node, Exchange) or not node.children:
        return None
    made: list[p.Physical] = []
    for child in node.children:
        is_there = child.partitioning is not None and child.partitioning.is_replicated
        below = child if is_there else made_on_all(child, few, to_all)
        if below is None:
            return None
        made.append(below)
    return node.with_children(made).replaced(partitioning=REPLICATED)


def merged_by_keys(
    node: p.Physical, few: Collection[int], keys: tuple[Column, ...], send: ToAll, at: Partitioning
) -> p.Physical | None:
    """Steps(Merge(Gather(parts of groups))) -> Steps(Merge(send(parts))), where keys are some of those of the groups; None of other rows."""
    match node:
        case p.HashAggregate(input=gather, keys=groups) if id(gather) in few and {*keys} <= {
            *groups
        }:
            below: p.Physical | None = send(gather.children[0])
        case p.ComputeColumns(input=rows) | p.FilterRows(input=rows) | FinishAverages(input=rows):
            below = (
                merged_by_keys(rows, few, keys, send, at) if {*keys} <= {*rows.columns} else None
            )
        case _:
            return None
    if below is None:
        return None
    made = node.with_children((below,))
    return made.replaced(partitioning=at.kept(made.columns))


def below_renames(node: p.Physical, to_all: ToAll) -> p.Physical:
    """Broadcast(Rename(x)) -> Rename(Broadcast(x)): x may go to all for another reader, too, and goes once then."""
    if isinstance(node, p.ComputeColumns):
        renamed = [e.column for _, e in node.items if isinstance(e, ColumnRef)]
        if len(renamed) == len(node.items) and {*renamed} == {*node.input.columns}:
            below = below_renames(node.input, to_all)
            return node.with_children((below,)).replaced(partitioning=REPLICATED)
    return to_all(node)


def joined_sooner(
    join: p.HashJoin,
    side: int,
    goes_on: Callable[[p.Physical], bool],
    is_beside: Callable[[p.Physical], bool],
) -> p.HashJoin | None:
    """Return the joins below one side of a join with its other side in the deepest of them that this lies beside; None where it does nowhere.

    HashJoin(a, HashJoin(b, c)) -> HashJoin(HashJoin(a, b), c): inner joins, where rows of a lie beside those of b.
    `goes_on` says of a join below whether it is read here alone.
    """
    path: list[tuple[p.HashJoin, int]] = []
    depth, node = 0, join.children[side]
    keys = frozenset((join.left_keys, join.right_keys)[side])
    while _is_inner(node) and node.device == join.device and goes_on(node):
        assert isinstance(node, p.HashJoin)
        place = next((i for i in (0, 1) if keys <= {*node.children[i].columns}), None)
        if place is None:
            break
        path.append((node, place))
        node = node.children[place]
        depth = len(path) if is_beside(node) else depth
    if not depth or not _is_inner(join):
        return None
    return _rebuilt(join, side, path[:depth])


def _is_inner(node: p.Physical) -> bool:
    return isinstance(node, p.HashJoin) and node.kind is JoinKind.INNER


def _rebuilt(join: p.HashJoin, side: int, path: list[tuple[p.HashJoin, int]]) -> p.HashJoin | None:
    other, (last, place) = join.children[1 - side], path[-1]
    near = last.children[place]
    there = {*other.columns, *near.columns}
    if join.residual is not None and not columns_of(join.residual) <= there:
        return None
    wanted = {*join.columns}
    for above, _ in path:
        wanted |= {*above.left_keys, *above.right_keys}
        if above.residual is not None:
            wanted |= columns_of(above.residual)
    before, after = join.children[side].estimate, join.estimate
    share = None if not before or after is None else after / before

    def over(node: p.HashJoin, place: int, child: p.Physical, rows: float | None) -> p.HashJoin:
        sides = [*node.children]
        sides[place] = child
        left, right = sides
        sizes = [side.estimate for side in sides]
        build = node.build
        if None not in sizes:
            build = "left" if sizes[0] < sizes[1] else "right"
        expected = None if rows is None or share is None else rows * share
        keep = tuple(c for c in (*left.columns, *right.columns) if c in wanted)
        return node.replaced(left=left, right=right, build=build, keep=keep, estimate=expected)

    made = over(join, side, near, near.estimate)
    for above, place in reversed(path):
        made = over(above, place, made, above.estimate)
    return made.replaced(keep=join.columns)
