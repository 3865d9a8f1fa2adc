"""The ways in which the two sides of a join can meet on a cluster, and what each moves."""

from __future__ import annotations

from typing import NamedTuple

from ..plan.expr import Column
from ..plan.join_kinds import JoinKind
from ..plan.partitioning import ARBITRARY, REPLICATED, Pairs, Partitioning, hashed
from ..plan.physical import HashJoin, NestedLoopJoin

SMALL = 1.0  # the cost of sending rows at all, so that what is there already is cheaper

# Bytes of a side, all of which each worker joins itself: to pick its own of them would take it as long
JOINED_ON_ALL = 1 << 24


class Move(NamedTuple):
    """Where the rows of one side go: nowhere, to all workers, or where keys say."""

    everywhere: bool = False
    keys: tuple[Column, ...] = ()
    cuts: tuple[int, ...] = ()


class JoinSide(NamedTuple):
    """Where the rows of one side are, how many bytes they are expected to take, and what share that is of what is few for any worker."""

    at: Partitioning
    bytes: float
    share: float

    @property
    def small(self) -> bool:
        return self.share < 1.0

    @property
    def is_few(self) -> bool:
        """Whether all workers may have all rows of what comes of them, too."""
        return self.small and self.bytes <= JOINED_ON_ALL

    def to_all(self, workers: int) -> float:
        """The cost of sending the rows to all."""
        if self.at.is_replicated:
            return 0.0
        return SMALL + (self.share if self.small else self.bytes * workers)

    @property
    def to_keys(self) -> float:
        """The cost of sending each row to one worker."""
        return 0.0 if self.at.is_replicated else SMALL + self.bytes


class Way(NamedTuple):
    """How both sides move, what that costs, and where the join's rows are then."""

    cost: float
    left: Move
    right: Move
    at: Partitioning


STAY, EVERYWHERE = Move(), Move(everywhere=True)


def cheapest_way(
    join: HashJoin | NestedLoopJoin, left: JoinSide, right: JoinSide, workers: int
) -> Way | None:
    """Return the way that moves least, None where all rows have to be on one worker."""
    ways: list[Way] = []
    kind, pairs = join.kind, equal_columns(join)
    if left.at.meets(right.at, pairs):
        ways.append(Way(0.0, STAY, STAY, _after(kind, left.at, right.at, pairs)))
    if left.at.is_shared and not kind.keeps_right:
        at = _after(kind, left.at, left.at, pairs)
        ways.append(Way(right.to_all(workers), STAY, EVERYWHERE, at))
    if right.at.is_shared and kind.outputs_right and not kind.keeps_left:
        at = _after(kind, right.at, right.at, pairs)
        ways.append(Way(left.to_all(workers), EVERYWHERE, STAY, at))
    if left.is_few and right.is_few and not (left.at.is_shared and right.at.is_shared):
        ways += _on_all(left, right, workers)
    if pairs:
        ways += _by_keys(kind, left, right, pairs)
    return min(ways, key=lambda way: way.cost, default=None)


def side_of_heavy_keys(
    join: HashJoin | NestedLoopJoin, way: Way, sides: tuple[JoinSide, JoinSide]
) -> int | None:
    """Return the side whose rows are sent where keys say and may as well stay, if the other side's rows of heavy keys go to all.

    That is the larger one, if either may be.
    """
    kind, moves = join.kind, (way.left, way.right)
    allowed = (not kind.keeps_right, kind.outputs_right and not kind.keeps_left)
    found = [
        i
        for i in (0, 1)
        if allowed[i]
        and moves[i].keys
        and sides[i].at.is_shared
        and not sides[1 - i].at.is_replicated
        # What else were not touched has to be made a table, which should be less than what moves
        and (moves[1 - i].keys or sides[1 - i].bytes <= sides[i].bytes)
    ]
    return max(found, key=lambda i: sides[i].bytes, default=None)


def partners(
    join: HashJoin | NestedLoopJoin, side: int, keys: tuple[Column, ...]
) -> tuple[Column, ...]:
    """Return the columns of the other side that keys of one are equal to."""
    partner = {pair[side]: pair[1 - side] for pair in reversed(equal_columns(join))}
    return tuple(partner[key] for key in keys)


def equal_columns(join: HashJoin | NestedLoopJoin) -> Pairs:
    """The columns that are equal in a match, where a worker may look for matches among equal keys alone."""
    if (
        isinstance(join, NestedLoopJoin) or join.null_aware
    ):  # which asks whether there is any row, or NULL
        return ()  # fmt: skip
    return tuple(zip(join.left_keys, join.right_keys, strict=True))


def _on_all(left: JoinSide, right: JoinSide, workers: int) -> list[Way]:
    """Few rows of one side join those that all have of the other one, on all: nothing is left to be gathered."""
    if left.at.is_replicated:
        return [Way(right.to_all(workers), STAY, EVERYWHERE, REPLICATED)]
    if right.at.is_replicated:
        return [Way(left.to_all(workers), EVERYWHERE, STAY, REPLICATED)]
    return []


def _by_keys(kind: JoinKind, left: JoinSide, right: JoinSide, pairs: Pairs) -> list[Way]:
    """One side goes to where the other's equal keys are, or both do where their hash says."""
    found: list[Way] = []
    back = tuple((b, a) for a, b in pairs)
    keys = left.at.beside(pairs)
    if keys is not None:
        move = Move(keys=keys, cuts=left.at.cuts)
        at = _after(kind, left.at, left.at.of(keys), pairs)
        found.append(Way(right.to_keys, STAY, move, at))
    keys = right.at.beside(back)
    if keys is not None:
        move = Move(keys=keys, cuts=right.at.cuts)
        at = _after(kind, right.at.of(keys), right.at, pairs)
        found.append(Way(left.to_keys, move, STAY, at))
    one, other = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    at = _after(kind, hashed(one), hashed(other), pairs)
    found.append(Way(left.to_keys + right.to_keys, Move(keys=one), Move(keys=other), at))
    return found


def _after(kind: JoinKind, left: Partitioning, right: Partitioning, pairs: Pairs) -> Partitioning:
    """Where a join's rows are, given where the sides' are when it runs: NULLs of rows without a match are with no key's rows."""
    if kind is JoinKind.INNER:
        return left.equated(pairs)
    if not kind.keeps_right:
        return left
    return ARBITRARY if kind.keeps_left else right
