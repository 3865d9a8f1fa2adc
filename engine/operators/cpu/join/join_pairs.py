"""Pairs of matching rows: from key codes to row numbers of both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ....storage.columns.encodings import Array
from ...context import Context
from ..memory.chunks import each_chunk
from ..sort.keys import Ints
from ..sort.ordering import stable_order
from ..table import Indices, Mask
from .join_keys import Codes

PAIRS_A_BLOCK = 1 << 20  # candidate pairs that are expanded at a time

Pairs = tuple[Indices, Indices]


@dataclass(frozen=True)
class BuildRows:
    """Build rows by key code.

    `slot[code]` is 0 for a code without rows.  With unique keys it is the row number plus 1, otherwise the number, plus 1, of
    a distinct key, whose rows are `order[start[key] : start[key] + count[key]]`.
    """

    slot: Array
    unique: bool
    order: Indices
    start: Ints
    count: Ints


def build_index(build: Codes) -> BuildRows:
    codes = build.all()
    rows = np.flatnonzero(codes < build.size)
    codes = codes[rows]
    # Zeros come from the system as they are touched: a wide range with few keys costs little.
    slot = np.zeros(build.size + 1, np.int32 if build.rows < (1 << 31) - 1 else np.int64)
    slot[codes] = rows + 1
    leader = slot[codes] == rows + 1  # of rows with equal keys, the last one written
    empty = np.zeros(0, np.int64)
    if leader.all():
        return BuildRows(slot, True, empty, empty, empty)
    distinct = codes[leader]
    slot[distinct] = np.arange(1, len(distinct) + 1)
    keys = slot[codes].astype(np.int64) - 1
    count = np.bincount(keys, minlength=len(distinct))
    order = rows[stable_order(keys, len(distinct))]
    return BuildRows(slot, False, order, np.cumsum(count) - count, count)


def unique_matches(index: BuildRows, probe: Codes, context: Context) -> Indices:
    """Return the build row of each probe row, -1 for none, of an index with unique keys."""
    matches = np.empty(probe.rows, np.int64)

    def chunk(start: int, stop: int) -> None:
        np.subtract(index.slot[probe.read(start, stop)], 1, out=matches[start:stop], dtype=np.int64)

    each_chunk(chunk, probe.rows, context)
    return matches


@dataclass(frozen=True)
class Matches:
    """Probe rows that have a match, each with its key in the index."""

    index: BuildRows
    keys: Ints
    rows: Indices

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return len(self.keys) if self.index.unique else int(self.index.count[self.keys].sum())

    def pairs(self) -> Pairs:
        """Return (build rows, probe rows) of all pairs with equal codes, in order of the probe rows."""
        return concat_pairs(list(self.blocks(limit=1 << 62)))

    def blocks(self, limit: int = PAIRS_A_BLOCK) -> Iterator[Pairs]:
        """Yield the pairs, at most `limit` at a time but at least those of one probe row."""
        if self.index.unique:
            for begin in range(0, len(self.rows), limit):
                part = slice(begin, begin + limit)
                yield self.keys[part], self.rows[part]
            return
        counts = self.index.count[self.keys]
        ends = np.cumsum(counts)
        begin = 0
        while begin < len(self.rows):
            done = int(ends[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(ends, done + limit, "right")), begin + 1)
            part = slice(begin, end)
            yield _expand(self.index, self.rows[part], self.keys[part], counts[part])
            begin = end


def match(index: BuildRows, probe: Codes, context: Context) -> Matches:
    def chunk(start: int, stop: int) -> Pairs:
        slots = index.slot[probe.read(start, stop)]
        rows = np.flatnonzero(slots)
        keys = slots[rows].astype(np.int64) - 1
        return keys, rows + start

    return Matches(index, *concat_pairs(each_chunk(chunk, probe.rows, context)))


def concat_pairs(blocks: list[Pairs]) -> Pairs:
    if not blocks:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate([a for a, _ in blocks]), np.concatenate([b for _, b in blocks])


def cross_blocks(left: int, right: int, check: Callable[[], None]) -> Iterator[Pairs]:
    """Yield (left rows, right rows) of the cross product, a bounded number at a time."""
    right_step = min(max(right, 1), PAIRS_A_BLOCK)
    left_step = max(1, PAIRS_A_BLOCK // right_step)
    for left_begin in range(0, left, left_step):
        left_rows = np.arange(left_begin, min(left_begin + left_step, left))
        for right_begin in range(0, right, right_step):
            check()
            right_rows = np.arange(right_begin, min(right_begin + right_step, right))
            yield np.repeat(left_rows, len(right_rows)), np.tile(right_rows, len(left_rows))


def members(rows: Codes, others: Codes, context: Context) -> Mask:
    """Return which of `rows` have a code that occurs among `others`."""
    present = np.zeros(rows.size + 1, bool)
    found = np.empty(rows.rows, bool)

    def enter(start: int, stop: int) -> None:
        present[others.read(start, stop)] = True

    def look_up(start: int, stop: int) -> None:
        np.take(present, rows.read(start, stop), out=found[start:stop], mode="clip")

    each_chunk(enter, others.rows, context)
    present[-1] = False
    each_chunk(look_up, rows.rows, context)
    return found


def _expand(index: BuildRows, rows: Indices, keys: Ints, counts: Ints) -> Pairs:
    ends = np.cumsum(counts)
    total = int(ends[-1])
    # The first match of each row, less the pairs before it, plus the pair's number: its place in `order`.
    places = np.repeat(index.start[keys] - (ends - counts), counts)
    places += np.arange(total)
    return index.order[places], np.repeat(rows, counts)
