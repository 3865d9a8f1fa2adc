"""Nodes of a worker's plan with where their rows are, and the exchanges between them, each made once."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TypedDict, Unpack

from ..plan.exchange import Exchange, ExchangeKind
from ..plan.expr import Column
from ..plan.partitioning import (
    ARBITRARY,
    ORDERED,
    REPLICATED,
    SINGLE,
    Partitioning,
    Spread,
    hashed,
    ranged,
)
from ..plan.physical import Order, Physical


class _More(TypedDict, total=False):
    """What is not always said of an exchange."""

    because: str
    of_first: bool
    orders: tuple[Order, ...]
    keeps_heavy: bool
    beside: Exchange


@dataclass(frozen=True)
class Placed:
    """A node of a worker's plan, and where its rows are."""

    node: Physical
    at: Partitioning

    def over(self, node: Physical, at: Partitioning | None = None) -> Placed:
        """A node whose rows are where this one's are, or where `at` says that they would be."""
        return Placed(node, (self.at if at is None else at).kept(node.columns))


@dataclass
class Exchanges:
    """The exchanges of one plan, which numbers tell apart: who asks for the same rows in the same places gets the same one."""

    _numbers: count[int] = field(default_factory=count)
    _made: dict[tuple[object, ...], Exchange] = field(default_factory=dict)

    def of(
        self,
        node: Physical,
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

    def to_all(self, node: Physical, **more: Unpack[_More]) -> Exchange:
        return self.of(node, "broadcast", **more)

    def gathered(self, placed: Placed) -> Physical:
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
