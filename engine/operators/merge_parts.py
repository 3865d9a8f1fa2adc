"""Rows in parts put together again, however they came: from chunks of a scan in kernels, or pulled a piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from ..plan import physical as p
from ..plan.expr import Column
from ..plan.partial import PartialAggregate
from .run_unfused import T

MERGED_PARTS = 64
# Of parts, at least, before they are merged: merging costs what grouping so many rows costs
MERGED_ROWS = 1 << 20

Run = Callable[[p.Physical, tuple[T, ...]], T]  # of an operator over tables


def together(parts: Sequence[T], columns: Sequence[Column], device: p.Device, run: Run[T]) -> T:
    """Return pieces of a node's rows, some columns of them, as one table."""
    if len(parts) == 1:
        return parts[0]
    part = p.Stored(0, tuple(columns), device=device)
    return run(p.ConcatRows((part,) * len(parts), tuple(columns), device=device), tuple(parts))


class Merging(Generic[T]):
    """What an aggregation makes of parts of its rows, merged as it grows."""

    def __init__(
        self, split: PartialAggregate, run: Run[T], join: Callable[[Sequence[T]], T]
    ) -> None:
        """`join` puts parts of the rows of `split.partial` together."""
        self._split, self._run, self._join = split, run, join
        self._parts = self._rows = self._merged = 0

    def is_due(self, part: T) -> bool:
        """Count a part; say whether those since the last merge are to be merged."""
        self._parts, self._rows = self._parts + 1, self._rows + part.num_rows
        return self._parts >= MERGED_PARTS or self._rows > max(MERGED_ROWS, self._merged)

    def merged(self, parts: Sequence[T], *more: p.Physical) -> T:
        """Return the groups of several parts, on which further steps run."""
        table = self._join(parts)
        for step in (*self._split.merge, *more):
            table = self._run(step, (table,))
        self._parts, self._rows, self._merged = 0, 0, table.num_rows
        return table
