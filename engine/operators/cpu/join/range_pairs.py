"""Joins by inequalities: rows of the smaller side are sorted, and each row of the other has its candidates in a range of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ....errors import DataError
from ....plan import physical as p
from ....plan.expr import Call, Expr, columns_of, conjunction, conjuncts
from ....plan.functions import MIRRORED, SCALAR
from ....records import dataclass
from ....storage.columns.encodings import Array
from ...context import Context
from ..functions.expressions import evaluate
from ..memory.ask_memory import ask_ranges
from ..memory.chunks import each_chunk
from ..sort.keys import Ints, image_values, is_ranked, is_string, value_ranks
from ..sort.ordering import stable_order
from ..table import Indices, Mask, Table, concat_arrays, validity
from .join_pairs import PAIRS_A_BLOCK, Matches, Pairs

PAIRS_A_ROW = 8  # from which on sorting the rows of a key takes less time than testing its pairs
FEW_BOUNDS = 16  # which are compared with each value: for four of them in a fifth of the time that searching takes


@dataclass(frozen=True)
class _Bound:
    """A condition `value >= bound`, or `value > bound` without `or_equal`; with an upper bound `<=` and `<`."""

    part: Expr
    value: Expr
    bound: Expr
    is_lower: bool
    or_equal: bool


@dataclass(frozen=True)
class _BoundSides:
    """Integers in the order of the values, and of the bounds; which of them there are, None for all of the values."""

    values: Ints
    there: Mask | None
    bounds: Ints
    known: Mask


@dataclass(frozen=True)
class _Range:
    """Values and the ascending bounds that they reach, equal ones where these count."""

    bounds: Ints
    values: Ints
    or_equal: bool

    def reached(self, start: int, stop: int) -> Array:
        """Return how many of the bounds each of some values reaches."""
        here = self.values[start:stop]
        if len(self.bounds) > FEW_BOUNDS:
            return np.searchsorted(self.bounds, here, "right" if self.or_equal else "left")
        count = np.zeros(stop - start, np.int8)
        for bound in self.bounds:
            count += here >= bound if self.or_equal else here > bound
        return count


@dataclass(frozen=True)
class RangePairs:
    """Candidates of a join: each of `rows`, of the left side if `is_left`, has those of the other at `order[start : start + count]`.

    `rest` is what is to be tested of them, None for nothing.
    """

    is_left: bool
    order: Indices
    rows: Indices
    start: Ints
    count: Ints
    rest: Expr | None

    def blocks(self) -> Iterator[Pairs]:
        """Yield pairs (left rows, right rows), a bounded number at a time, but at least those of one row.

        Where each row has one, and nothing is to be tested, they come at once, as there is memory for them.
        """
        if self.rest is None and len(self.rows) == int(self.count.sum()):
            found = self._pairs(slice(None), len(self.rows))
            yield found if self.is_left else found[::-1]
            return
        ends = np.cumsum(self.count)
        begin = 0
        while begin < len(self.rows):
            done = int(ends[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(ends, done + PAIRS_A_BLOCK, "right")), begin + 1)
            found = self._pairs(slice(begin, end), int(ends[end - 1]) - done)
            yield found if self.is_left else found[::-1]
            begin = end

    def _pairs(self, part: slice, total: int) -> Pairs:
        rows, start, count = self.rows[part], self.start[part], self.count[part]
        if total == len(rows):
            return rows, self.order[start]
        places = np.repeat(start - (np.cumsum(count) - count), count)
        places += np.arange(total)
        return np.repeat(rows, count), self.order[places]


def range_pairs(
    node: p.NestedLoopJoin, left: Table, right: Table, context: Context
) -> RangePairs | None:
    """Return the candidates of a condition with inequalities between both sides; None where it has none.

    With the lower bounds sorted, the rows whose bound a value reaches come first.  Of these, no row counts before the first one up to which
    an upper bound lies above the value; what is left is a range, of bands that do not overlap exactly the matches.  1.5 million prices
    among three bands, summed by these, take two cores 35 ms of CPU time, and 15 more where few bounds are searched too (`FEW_BOUNDS` = 0).
    """
    is_left = left.num_rows >= right.num_rows
    many, few = (left, right) if is_left else (right, left)
    parts = tuple(conjuncts(node.condition))
    bounds = [b for part in parts if (b := _bound(part, many, few)) is not None]
    lower = next((b for b in bounds if b.is_lower), None)
    upper = next((b for b in bounds if not b.is_lower), None)
    leading = lower or upper
    if leading is None or not few.num_rows:
        return None
    try:
        ask_ranges(node, many.num_rows, few.num_rows, context)
        first = _sides(leading, many, few, context)
        second = _sides(upper, many, few, context) if lower and upper else None
    except (MemoryError, DataError):  # an error maybe of rows that no pair has
        return None
    if first is None:
        return None
    if not leading.is_lower:
        first = replace(first, values=~first.values, bounds=~first.bounds)  # in descending order
    kept = first.known if second is None else first.known & second.known
    rows = np.flatnonzero(kept)
    order = rows[np.argsort(first.bounds[rows], kind="stable")]
    ranges = [_Range(first.bounds[order], first.values, leading.or_equal)]
    exact = [leading.part]
    there = first.there
    if second is not None and upper is not None:
        tops = second.bounds[order]
        above = np.maximum.accumulate(tops)
        ranges.append(_Range(above, second.values, not upper.or_equal))
        there = _both(there, second.there)
        if bool((above == tops).all()):
            exact.append(upper.part)
    left_over = [part for part in parts if not any(part is e for e in exact)]
    rest = conjunction(left_over) if left_over else None
    return RangePairs(is_left, order, *_candidates(ranges, there, many.num_rows, context), rest)


def pairs_within_keys(
    node: p.HashJoin, found: Matches, build: Table, probe: Table, context: Context
) -> RangePairs | None:
    """Return the candidates among rows of equal keys whose residual has an inequality; None without one, and where pairs are few.

    The build rows of each key are sorted by their bound, so that those which a value reaches follow one another.  Suppliers that have
    less than another of their nation, 4 million pairs by keys, take two CPU cores 0.6 times DuckDB's time, and 1.6 times where
    each pair is tested (`PAIRS_A_ROW` = inf).
    """
    index, keys = found.index, found.keys
    rows = build.num_rows + probe.num_rows
    if node.residual is None or index.unique or found.count < PAIRS_A_ROW * rows:
        return None
    parts = tuple(conjuncts(node.residual))
    bound = next((b for part in parts if (b := _bound(part, probe, build)) is not None), None)
    if bound is None:
        return None
    try:
        ask_ranges(node, probe.num_rows, build.num_rows, context)
        sides = _sides(bound, probe, build, context)
    except (MemoryError, DataError):  # an error maybe of rows that no pair has
        return None
    if sides is None:
        return None
    if not bound.is_lower:
        sides = replace(sides, values=~sides.values, bounds=~sides.bounds)
    known = sides.known[index.order]
    order = index.order[known]
    distinct, ranks = np.unique(sides.bounds[order], return_inverse=True)
    width = len(distinct) + 1
    codes = np.repeat(np.arange(len(index.count)), index.count)[known] * width + ranks
    sorting = stable_order(codes, len(index.count) * width)
    codes, order = codes[sorting], order[sorting]

    def chunk(start: int, stop: int) -> tuple[Indices, Ints, Ints]:
        here = found.rows[start:stop]
        reached = np.searchsorted(
            distinct, sides.values[here], "right" if bound.or_equal else "left"
        )
        least = keys[start:stop] * width
        starts, stops = np.searchsorted(codes, least), np.searchsorted(codes, least + reached)
        some = starts < stops
        if sides.there is not None:
            some &= sides.there[here]
        return here[some], starts[some], (stops - starts)[some]

    chosen, starts, counts = _together(each_chunk(chunk, len(keys), context))
    left_over = [part for part in parts if part is not bound.part]
    rest = conjunction(left_over) if left_over else None
    return RangePairs(node.build == "right", order, chosen, starts, counts, rest)


def _candidates(
    ranges: Sequence[_Range], there: Mask | None, rows: int, context: Context
) -> tuple[Indices, Ints, Ints]:
    """Return the rows that have candidates, where these begin, and how many they are."""

    def chunk(start: int, stop: int) -> tuple[Indices, Ints, Ints]:
        stops = ranges[0].reached(start, stop)
        starts = ranges[1].reached(start, stop) if len(ranges) > 1 else np.zeros_like(stops)
        some = starts < stops
        if there is not None:
            some &= there[start:stop]
        found = np.flatnonzero(some)
        begins = starts[found].astype(np.int64)
        return found + start, begins, stops[found] - begins

    return _together(each_chunk(chunk, rows, context))


def _together(parts: Sequence[tuple[Indices, Ints, Ints]]) -> tuple[Indices, Ints, Ints]:
    if not parts:
        return (np.zeros(0, np.int64),) * 3
    found, starts, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return found, starts, counts


def _bound(part: Expr, many: Table, few: Table) -> _Bound | None:
    """Return a condition as a bound of the side with more rows by the other one, None for one that is none."""
    match part:
        case Call(function=function, args=(a, b)) if SCALAR[function].orders:
            if not _reads(a, many) or not _reads(b, few):
                function, a, b = MIRRORED[function], b, a
            row = SCALAR[function]
            if _reads(a, many) and _reads(b, few):
                return _Bound(part, a, b, row.bound == "lower", row.or_equal)
    return None


def _reads(expr: Expr, table: Table) -> bool:
    """Whether an expression reads columns, all of this table."""
    columns = columns_of(expr)
    return bool(columns) and all(c.id in table.arrays for c in columns)


def _sides(bound: _Bound, many: Table, few: Table, context: Context) -> _BoundSides | None:
    """Return both sides of a condition as integers; None for values of more than one."""
    arrays = (
        evaluate(bound.value, many, context.threads),
        evaluate(bound.bound, few, context.threads),
    )
    if any(map(is_string, arrays)):
        return None
    if is_ranked(arrays[0].type):  # ranks are of the values that are ranked together
        ranks = value_ranks(concat_arrays(arrays))
        values, bounds = [ranks[: many.num_rows]], [ranks[many.num_rows :]]
    else:
        values, bounds = map(image_values, arrays)
    if len(values) != 1 or len(bounds) != 1:
        return None
    known = validity(arrays[1])
    return _BoundSides(
        values[0],
        validity(arrays[0]),
        bounds[0],
        np.ones(few.num_rows, bool) if known is None else known,
    )


def _both(a: Mask | None, b: Mask | None) -> Mask | None:
    return b if a is None else a if b is None else a & b
