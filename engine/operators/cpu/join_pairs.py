"""Pairs of matching rows: from key codes to row numbers of both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .keys import Ints, stable_order
from .table import Indices, Mask

PAIRS_A_BLOCK = 1 << 20  # candidate pairs that are expanded at a time; a few columns of them stay in cache

Pairs = tuple[Indices, Indices]


@dataclass(frozen=True)
class Index:
    """Build rows by key code: a row number (or -1) for each code when keys are unique, else a counting sort.

    Arrays have one slot more than there are codes, for rows that match none.  The rows of code c are
    `order[start[c] : start[c] + count[c]]`.
    """

    row: Indices | None
    order: Indices
    start: Indices
    count: Indices


def build_index(codes: Ints, size: int) -> Index:
    """Index build rows whose codes are in 0..size; `size` stands for no key."""
    empty = np.zeros(0, np.int64)
    row = np.full(size + 1, -1, np.int64)
    row[codes] = np.arange(len(codes))
    row[size] = -1
    with_key = len(codes) - int(np.count_nonzero(codes == size))
    if int(np.count_nonzero(row >= 0)) == with_key:
        return Index(row, empty, empty, empty)
    count = np.bincount(codes, minlength=size + 1)
    count[size] = 0
    return Index(None, stable_order(codes, size + 1), np.cumsum(count) - count, count)


def unique_matches(index: Index, probe: Ints) -> Indices:
    """Return the build row of each probe row, -1 for none, of an index with unique keys."""
    assert index.row is not None
    return index.row[probe]


def pair_blocks(index: Index, probe: Ints, check: Callable[[], None]) -> Iterator[Pairs]:
    """Yield (build rows, probe rows) of all pairs with equal codes, in order of the probe rows."""
    if index.row is not None:
        build = index.row[probe]
        rows = np.flatnonzero(build >= 0)
        for begin in range(0, len(rows), PAIRS_A_BLOCK):
            check()
            block = rows[begin : begin + PAIRS_A_BLOCK]
            yield build[block], block
        return
    rows = np.flatnonzero(index.count[probe])
    codes = probe[rows]
    counts = index.count[codes]
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(rows):
        check()
        done = int(ends[begin - 1]) if begin else 0
        # At least one probe row, however many matches it has.
        end = max(int(np.searchsorted(ends, done + PAIRS_A_BLOCK, "right")), begin + 1)
        yield _expand(index, rows[begin:end], codes[begin:end], counts[begin:end])
        begin = end


def all_pairs(index: Index, probe: Ints, check: Callable[[], None]) -> Pairs:
    """Return (build rows, probe rows) of all pairs with equal codes."""
    if index.row is not None:
        build = index.row[probe]
        rows = np.flatnonzero(build >= 0)
        return build[rows], rows
    return concat_pairs(list(pair_blocks(index, probe, check)))


def concat_pairs(blocks: list[Pairs]) -> Pairs:
    if not blocks:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate([b for b, _ in blocks]), np.concatenate([p for _, p in blocks])


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


def members(codes: Ints, others: Ints, size: int) -> Mask:
    """Return which of `codes` occur among `others`; `size` matches nothing."""
    present = np.zeros(size + 1, bool)
    present[others] = True
    present[size] = False
    return present[codes]


def _expand(index: Index, rows: Indices, codes: Ints, counts: Ints) -> Pairs:
    ends = np.cumsum(counts)
    total = int(ends[-1])
    # The first match of each row, less the pairs before it, plus the pair's number: its place in `order`.
    places = np.repeat(index.start[codes] - (ends - counts), counts)
    places += np.arange(total)
    return index.order[places], np.repeat(rows, counts)
