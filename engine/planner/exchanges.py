"""Nodes of a worker's plan with where their rows are, and the exchanges between them, each made once;
what has to hold of a share for that to be right; and the last steps, which the client runs where few rows come to them.

An aggregate of few groups, and the first rows of an order, end with a gather: the first worker would wait for the others, to send on what
the client can as well make of what each of them answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from itertools import count
from typing import TypedDict, Unpack

from ..plan import physical as p
from ..plan.exchange import Exchange, ExchangeKind
from ..plan.expr import AggregateCall, Column, ColumnRef, new_column
from ..plan.partial import FinishAverages
from ..plan.partitioning import (
    ARBITRARY,
    ORDERED,
    REPLICATED,
    SINGLE,
    Fact,
    Partitioning,
    Spread,
    hashed,
    ranged,
)
from ..plan.types import BIGINT
from ..records import dataclass


class _More(TypedDict, total=False):
    """What is not always said of an exchange."""

    because: str
    of_first: bool
    orders: tuple[p.Order, ...]
    keeps_heavy: bool
    beside: Exchange


@dataclass(frozen=True)
class Placed:
    """A node of a worker's plan, and where its rows are."""

    node: p.Physical
    at: Partitioning

    def over(self, node: p.Physical, at: Partitioning | None = None) -> Placed:
        """A node whose rows are where this one's are, or where `at` says that they would be."""
        return Placed(node, (self.at if at is None else at).kept(node.columns))


@dataclass
class Exchanges:
    """The exchanges of one plan, which numbers tell apart: who asks for the same rows in the same places gets the same one."""

    _numbers: count[int] = field(default_factory=count)
    _made: dict[tuple[object, ...], Exchange] = field(default_factory=dict)

    def of(
        self,
        node: p.Physical,
        kind: ExchangeKind,
        keys: tuple[Column, ...] = (),
        cuts: tuple[int, ...] = (),
        **more: Unpack[_More],
    ) -> Exchange:
        key = id(node), kind, keys, cuts, more.get("keeps_heavy"), id(more.get("beside"))
        if key not in self._made:
            at = {
                "gather": SINGLE,
                "broadcast": REPLICATED,
                "range": ranged(keys, cuts),
                "sort": ORDERED,
                "spread": ARBITRARY,
            }
            made = Exchange(node, kind, next(self._numbers), keys, cuts, **more)
            where = ARBITRARY if made.is_spread else at.get(kind, hashed(keys))
            made = made.placed_as(node).replaced(partitioning=where)
            self._made[key] = made
        return self._made[key]

    def to_all(self, node: p.Physical, **more: Unpack[_More]) -> Exchange:
        return self.of(node, "broadcast", **more)

    def gathered(self, placed: Placed) -> p.Physical:
        """Return rows as the first worker has them all."""
        return self.of(placed.node, "gather") if placed.at.is_shared else placed.node

    def sent(
        self,
        placed: Placed,
        keys: tuple[Column, ...],
        cuts: tuple[int, ...] = (),
        **more: Unpack[_More],
    ) -> Exchange:
        """Return a node's rows where a hash of keys says, or the range of one."""
        if placed.at.is_replicated:
            return self.of(placed.node, "pick", keys, cuts)
        more["of_first"] = placed.at.spread is Spread.SINGLE
        return self.of(placed.node, "range" if cuts else "hash", keys, cuts, **more)


Limits = tuple[int | None, int | None]


@dataclass(frozen=True)
class Claim:
    """What a plan relies on of a column of a worker's share: that the values are all there, at least `low` and below `high` (None: no limit).

    `found` gives the least and the largest of them, how many there are, and how many rows; or, where none is to come twice, how many
    there are, and how many different ones.
    """

    found: p.Physical
    fact: Fact
    share: Hashable
    low: int | None = None
    high: int | None = None

    @classmethod
    def of(cls, share: p.ParquetScan, identity: Hashable, limits: Limits) -> Claim:
        """The claim for the only column of a share of a table."""
        (key,) = share.made
        ref, kinds = (ColumnRef(key),), {"min": key.type, "max": key.type, "count": BIGINT}
        calls = [AggregateCall(name, ref, kind) for name, kind in kinds.items()]
        calls.append(AggregateCall("count_star", (), BIGINT))
        return cls._that(share, calls, Fact(identity, share.sources[0], "ascends"), *limits)

    @classmethod
    def of_key(cls, scan: p.ParquetScan, key: Column) -> Claim:
        """The claim that no value of a column comes twice."""
        source = scan.sources[scan.made.index(key)]
        share = scan.replaced(made=(key,), sources=(source,))
        calls = [
            AggregateCall("count", (ColumnRef(key),), BIGINT, distinct=d) for d in (False, True)
        ]
        return cls._that(share, calls, Fact(scan.table.identity, source, "key"))

    @classmethod
    def _that(
        cls, share: p.ParquetScan, calls: Sequence[AggregateCall], fact: Fact, *limits: int | None
    ) -> Claim:
        made = tuple((new_column(call.function, call.type), call) for call in calls)
        found = p.HashAggregate(share, (), made).placed_as(share)
        return cls(found, fact, (share.table.identity, share.selection), *limits)

    def holds(self, *found: int | None) -> bool:
        if self.fact.kind == "key":
            return found[0] == found[1]
        least, largest, values, rows = found
        if values != rows:
            return False
        above = self.low is None or least is None or least >= self.low
        return above and (self.high is None or largest is None or largest < self.high)

    def __hash__(self) -> int:
        return hash((self.fact, self.share))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Claim):
            return NotImplemented
        return self._facts == other._facts

    @property
    def _facts(self) -> tuple[object, ...]:
        return self.fact, self.share, self.low, self.high


FEW_ROWS = (
    1 << 13
)  # that a worker answers, so that the client takes all of them in as fast as the first worker would
STEPS = (
    p.ComputeColumns,
    p.FilterRows,
    FinishAverages,
    p.HashAggregate,
    p.LimitRows,
    p.SortRows,
    p.TopK,
)


def last_gather(plan: p.Physical) -> Exchange | None:
    """Return the gather above which all steps are the client's, which has none where that is the plan itself; None where there is none."""
    node = plan
    while isinstance(node, STEPS):
        (node,) = node.children
    if not isinstance(node, Exchange) or node.kind != "gather" or not node.columns:
        return None
    return node if node is plan or _most_rows(node.input) <= FEW_ROWS else None


def above(
    plan: p.Physical, gather: Exchange, change: Callable[[Exchange], p.Physical]
) -> p.Physical:
    """Return the steps of a plan above its last gather, over what that changes to."""
    if plan is gather:
        return change(gather)
    (below,) = plan.children
    return plan.with_children((above(below, gather, change),)).replaced(device="cpu", reason=None)


def steps_of_client(plan: p.Physical, gather: Exchange) -> p.Physical | None:
    """Return these steps over rows that are there, None where there are none."""
    if plan is gather:
        return None
    return above(plan, gather, lambda node: p.Stored(0, node.columns, device="cpu"))


def _most_rows(node: p.Physical) -> float:
    """How many groups, or first rows of an order, a worker is expected to have at most; no end of other rows."""
    match node:
        case p.HashAggregate(keys=()):
            return 1
        case p.HashAggregate(estimate=float(groups)):
            return groups
        case p.TopK(count=int(count), offset=offset) | p.LimitRows(count=int(count), offset=offset):
            return count + offset
        case p.ComputeColumns(input=below) | p.HashJoin(left=p.TopK() as below):
            return _most_rows(below)
    return float("inf")
