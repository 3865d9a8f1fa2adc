"""What has to hold of a worker's share for a plan to be right: that keys lie where the footers of files say."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from ..plan.expr import AggregateCall, ColumnRef, new_column
from ..plan.physical import HashAggregate, ParquetScan, Physical
from ..plan.types import BIGINT

Limits = tuple[int | None, int | None]


@dataclass(frozen=True)
class Claim:
    """That the values of a column of a worker's share are all there, at least `low` and below `high`; None: no limit.

    `extremes` gives the least and the largest of them, how many there are, and how many rows.  `column` has the identity of the whole
    table.
    """

    extremes: Physical
    column: tuple[Hashable, str]
    share: Hashable
    low: int | None
    high: int | None

    @classmethod
    def of(cls, share: ParquetScan, column: tuple[Hashable, str], limits: Limits) -> Claim:
        """The claim for the only column of a share."""
        (key,) = share.made
        ref, kinds = (ColumnRef(key),), {"min": key.type, "max": key.type, "count": BIGINT}
        calls = [AggregateCall(name, ref, kind) for name, kind in kinds.items()]
        calls.append(AggregateCall("count_star", (), BIGINT))
        made = tuple((new_column(call.function, call.type), call) for call in calls)
        extremes = HashAggregate(share, (), made).placed_as(share)
        return cls(extremes, column, (share.table.identity, share.selection), *limits)

    def holds(self, least: int | None, largest: int | None, values: int, rows: int) -> bool:
        if values < rows:
            return False
        above = self.low is None or least is None or least >= self.low
        return above and (self.high is None or largest is None or largest < self.high)

    def __hash__(self) -> int:
        return hash((self.column, self.share))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Claim):
            return NotImplemented
        return self._facts == other._facts

    @property
    def _facts(self) -> tuple[object, ...]:
        return self.column, self.share, self.low, self.high
