"""Where the workers of a cluster give each other rows."""

from __future__ import annotations

from dataclasses import field
from math import isinf
from typing import ClassVar, Literal as OneOf

from ..records import dataclass
from .expr import Column
from .physical import Order, Physical

ExchangeKind = OneOf["gather", "broadcast", "hash", "range", "sort", "spread", "pick"]
BYTES_A_VALUE = 8.0


@dataclass(frozen=True)
class Exchange(Physical):
    """The rows of all workers, in their order: on the first of them (gather), on each (broadcast), or where `keys` say.

    A hash of the keys says it, or of one key the range between `cuts` in which it lies.  Where each worker has all rows already, it
    picks its own of them in the same ways; without keys the first one picks all.  Rows that each worker has in an order come so that
    all those of one worker stand before the next one's (sort), where samples say that about as many go to each.  `number` tells the exchanges of one plan apart,
    `because` says why rows that are to meet are not on one worker.  `of_first`: the rows are those of the first worker, and what others
    have is none: of no rows there is an aggregate too.

    `keeps_heavy`: rows of keys that very many have may stay where they are, and those that they are joined with go to all workers, by an
    exchange that names this one as `beside`; if its kind is spread, its other rows stay.
    """

    CHILDREN: ClassVar = ("input", "beside")
    input: Physical
    kind: ExchangeKind
    number: int
    keys: tuple[Column, ...] = ()
    cuts: tuple[int, ...] = ()
    of_first: bool = False
    orders: tuple[Order, ...] = ()
    keeps_heavy: bool = False
    beside: Exchange | None = None
    because: str = field(default="", compare=False)

    @property
    def is_spread(self) -> bool:
        """Whether some of the rows do not go where keys say."""
        return self.keeps_heavy or self.beside is not None

    def details(self) -> list[str]:
        """Say what moves and why, for who reads a plan."""
        size = expected_bytes(self)
        moved = "" if self.kind in ("pick", "spread") or isinf(size) else f"~{size / 1e6:,.1f} MB"
        heavy = "but for heavy keys" if self.is_spread and self.kind != "spread" else ""
        return [moved, heavy, f"since {self.because}" if self.because else ""]


def expected_bytes(node: Physical) -> float:
    """The bytes that a node's rows are expected to take; no end of them where nothing is known."""
    rows = float("inf") if node.estimate is None else node.estimate
    return rows * BYTES_A_VALUE * max(1, len(node.columns))
