"""Rows that an order keeps few of: a kernel lists those up to a bound, which the rows of a sample tell, or stops where rows come in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from ....codegen.program import LateColumn, Program
from ....plan.expr import ColumnRef
from ....plan.physical import FirstRows
from ....records import dataclass
from ....storage.columns.encode import registers_of
from ....storage.columns.encodings import Array, EncodedColumn
from ...context import Context
from .finish import Gathered
from .pipeline_inputs import Leaves

FIRST_SAMPLE = 1 << 12  # rows
SAMPLED_RUNS = 16  # of rows that lie side by side: of 32 a first page of 200,000 rows took 0.4 ms longer, which is a call for each
GOLDEN = (1 + 5**0.5) / 2  # whose multiples lie evenly between whole numbers
TIMES_MORE = 16  # rows of the next sample
FIRST_STRETCH = 1 << 14  # rows in order; the next one has as many as all before
FEW_LISTED = 1 << 14  # rows, as many as a sample lets expect, for which no larger one pays
MOST_KEPT = 1 / 16  # of all rows: a bound that leaves out less does not pay

Ranges: TypeAlias = Sequence[tuple[int, int]]
Bound: TypeAlias = int | float | None
Listed = list[Array]  # row numbers of each relation


@dataclass(frozen=True)
class FirstRowsListing:
    """One run of a kernel that has a bound; `listed` runs it over ranges of rows, and is None when the answer is in doubt."""

    made: Program
    first: FirstRows
    listed: Callable[[Ranges, Bound], Listed | None]
    leaves: Leaves
    context: Context

    def rows(self, count: int, ranges: Ranges) -> Listed | None:
        """Return rows among which are those that are kept, in ascending order."""
        if self.first.count > MOST_KEPT * count:
            return self.listed(ranges, None)
        key = self._in_order()
        if key is not None:
            return self._to_last(key, count)
        bound: Bound = None
        size = FIRST_SAMPLE
        while size <= count // TIMES_MORE:
            found = self.listed(_spread(size, count), bound)
            if found is None:
                return None
            bound = self._last(found, bound)
            if bound is not None and self.first.count * count <= FEW_LISTED * size:
                break
            size *= TIMES_MORE
        return self.listed(ranges, bound)

    # Rows in any order

    def _last(self, found: Listed, before: Bound) -> Bound:
        """Return the key of the last row that is kept of a sample's; `before`, of a smaller one, where they are too few."""
        wanted = self.first.count
        if len(found[0]) < wanted:
            return before
        by, column = self.first.order, self._key.column
        rows = dict(zip(self.made.rows_out, found, strict=True))
        gathered = Gathered(self.made, rows, len(found[0]), self.leaves, self.context)
        array = gathered.values([self._key])[column.id].drop_null()
        if len(array) < wanted:
            return before  # NULLs may be kept, and are always in
        keys = registers_of(array, column.type, None)
        if keys is None:
            return before
        if keys.dtype.kind == "f":
            keys = np.where(np.isnan(keys), np.inf, keys)
        place = len(keys) - wanted if by.descending else wanted - 1
        return np.partition(keys, place)[place].item()

    @property
    def _key(self) -> LateColumn:
        return next(late for late in self.made.late if late.column == self.first.order.column)

    # Rows in order

    def _in_order(self) -> EncodedColumn | None:
        """Return the column by which the rows are ordered, where they lie so."""
        expr, source = self._key.expr, self.made.relations[0]
        if not isinstance(expr, ColumnRef) or expr.column not in source.stored:
            return None
        key = self.leaves.columns[id(source.leaf), source.stored[expr.column].id]
        return key if key.ascending or key.clustered else None

    def _to_last(self, key: EncodedColumn, count: int) -> Listed | None:
        """List rows from the first of the order on until there are enough, and then all that have the key of the last one."""
        descending, wanted = self.first.order.descending, self.first.count
        parts: list[Listed] = []
        done = listed = 0  # rows from that end on, and those of them that are listed
        end = count
        while done < end:
            stop = min(max(2 * done, FIRST_STRETCH), end)
            span = (count - stop, count - done) if descending else (done, stop)
            found = self.listed(_shares(*span, self.context.threads), None)
            if found is None:
                return None
            parts.append(found)
            done, before = stop, listed
            listed += len(found[0])
            if before < wanted <= listed:
                own = found[self.made.rows_out.index(0)]
                last = key.codes[own[before - wanted if descending else wanted - before - 1]]
                side = np.searchsorted(key.codes, last, "left" if descending else "right")
                end = max(done, count - int(side) if descending else int(side))
        ordered = reversed(parts) if descending else parts
        return [np.concatenate(arrays) for arrays in zip(*ordered, strict=True)]


def _spread(size: int, count: int) -> Ranges:
    """Return runs of rows all over a table, so many rows in all, at places that have no period."""
    run, stretch = size // SAMPLED_RUNS, count // SAMPLED_RUNS
    places = (i * stretch + int(i * GOLDEN % 1 * (stretch - run)) for i in range(SAMPLED_RUNS))
    return [(start, start + run) for start in places]


def _shares(start: int, stop: int, threads: int) -> Ranges:
    bounds = np.linspace(start, stop, (threads if stop - start > FIRST_STRETCH else 1) + 1)
    return list(pairwise(bounds.astype(int).tolist()))
