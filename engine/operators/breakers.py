"""Pipeline breakers in the pull model: operators that take in all rows before they give any, with what does not fit spilled.

Each is a function from the node to its pieces.  Rows with equal keys meet in one part, whichever operator asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from ..plan import partial, physical as p
from ..plan.pipeline_steps import columns_read, probed
from ..plan.window.window_operator import WindowRows
from .join_in_parts import joined_parts, side_of
from .one_group import one_group
from .run_unfused import T
from .sorted_ranges import SHARE_OF_SORT, size_of_sort, sorted_pieces
from .spilling import SHARE_IN_MEMORY, Merging, Spool, in_parts

if TYPE_CHECKING:
    from .pulling import Pull

TRIED_ROWS = 1 << 20  # after which an aggregation in parts has shown whether it makes fewer rows
REDUCES = 2  # rows for each group, from which it is worth it
BUILD_ROWS = 1 << 20  # of a build side that is hashed anew for each piece of the probe side
# The same for each row of such a piece on a GPU, where the link takes longer: of TPC-H SF100's Q09 within 2 GB 29 GB of rows were
# spilled so that 4 million rows were hashed once
BUILD_ROWS_GPU = 4
TOP_ROWS = 1 << 20  # that are sorted again with as many others


def _once(pull: Pull[T], node: p.Physical) -> Callable[[Sequence[T]], Iterator[T]]:
    """Run an operator over tables."""

    def work(tables: Sequence[T]) -> Iterator[T]:
        yield pull.run(node, tuple(tables))

    return work


# Groups


def aggregate(pull: Pull[T], node: p.HashAggregate) -> Iterator[T]:
    """Aggregate each piece and merge what comes of them; pieces of which nothing smaller comes wait for their group's other rows."""
    split = partial.in_parts(node)
    if isinstance(split, str) and not node.keys:
        yield from one_group(pull, node)
        return
    pieces = pull.pieces(node.input)
    rows = Spool(pull, node.input, node.keys, node.input.columns)
    if isinstance(split, str) or (node.keys and not _reduces(pull, split, pieces, rows)):
        _read_into(rows, pieces)
        yield from in_parts(pull, node, [rows], _once(pull, node))
        return
    tried = rows.taken()
    groups = Spool(pull, split.partial, node.keys, split.partial.columns)
    rows = Spool(pull, node.input, node.keys, node.input.columns)
    _reduce(pull, split, chain(tried, pieces), groups, rows)

    def finish(tables: Sequence[T]) -> Iterator[T]:
        parts, *raw = tables
        given = [parts, *(pull.run(split.partial, (table,)) for table in raw)]
        yield _merging(pull, split).merged(given, *split.finish)

    yield from in_parts(pull, node, [groups, rows] if rows.rows else [groups], finish)


def _reduces(
    pull: Pull[T], split: partial.PartialAggregate, pieces: Iterator[T], rows: Spool[T]
) -> bool:
    """Read the first pieces, and say whether aggregating makes fewer rows of them: else they had better wait as they are."""
    share = pull.room(rows.node.device) // SHARE_IN_MEMORY // 2
    for piece in pieces:
        rows.add(piece)
        if rows.spilled:
            return False
        if rows.rows > TRIED_ROWS or rows.bytes > share:
            break
    made = pull.run(split.partial, (rows.whole(),))
    return rows.rows <= TRIED_ROWS // 16 or made.num_rows * REDUCES <= rows.rows


def _reduce(
    pull: Pull[T],
    split: partial.PartialAggregate,
    pieces: Iterable[T],
    groups: Spool[T],
    rows: Spool[T],
) -> None:
    """Aggregate pieces as long as that makes fewer rows of them; the rest become `rows`."""
    device, merging = groups.node.device, _merging(pull, split)
    taken = made = 0
    for piece in pieces:
        if split.partial.keys and taken > TRIED_ROWS and made * REDUCES > taken:
            rows.add(piece)
            continue
        part = pull.run(split.partial, (piece,))
        taken, made = taken + piece.num_rows, made + part.num_rows
        due = merging.is_due(part)
        share = pull.room(device) // SHARE_IN_MEMORY
        full = groups.bytes + pull.backends[device].num_bytes(part) > share
        if groups.spilled or not (full or due):
            groups.add(part)
            continue
        groups.add(merging.merged([*groups.taken(), part]))
        if groups.bytes > share // 2:
            groups.spill()


def _merging(pull: Pull[T], split: partial.PartialAggregate) -> Merging[T]:
    made = split.partial
    return Merging(split, pull.run, lambda parts: pull.together(made, parts, made.columns))


def _read_into(spool: Spool[T], pieces: Iterable[T]) -> Spool[T]:
    for piece in pieces:
        spool.add(piece)
    return spool


def first_rows(pull: Pull[T], node: p.DistinctOn | p.LimitRows) -> Iterator[T]:
    """Keep some rows of each group, in parts by the keys; each part is sorted by itself, since groups come in no order."""
    below = node.input
    if isinstance(node, p.DistinctOn) and not node.keys:
        yield from pull.pieces(p.LimitRows(below, 1, device=node.device))
        return
    ordered = below if isinstance(below, p.SortRows) and pull.is_alone(below) else None
    source = below if ordered is None else ordered.input
    spool = _read_into(Spool(pull, source, node.keys, node.columns), pull.pieces(source))

    def work(tables: Sequence[T]) -> Iterator[T]:
        (rows,) = tables
        yield pull.run(node, (rows if ordered is None else pull.run(ordered, (rows,)),))

    yield from in_parts(pull, node, [spool], work)


def window(pull: Pull[T], node: WindowRows) -> Iterator[T]:
    """Compute windows in parts by the partition; without one all rows are needed at once."""
    read = (*node.passed, *columns_read(node))
    columns = [c for c in node.input.columns if c in read]
    spool = _read_into(Spool(pull, node.input, node.partition, columns), pull.pieces(node.input))
    yield from in_parts(pull, node, [spool], _once(pull, node))


# Joins and set operations


def join(pull: Pull[T], node: p.HashJoin) -> Iterator[T]:
    """Hash a small build side for each piece of the probe side; else join parts of both."""
    place = probed(node)
    sides = side_of(pull, node, 0), side_of(pull, node, 1)
    if place is not None:
        build = _read_into(sides[1 - place], pull.pieces(node.children[1 - place]))
        if not build.spilled and build.rows <= _most_hashed(pull, node.children[place]):
            table = build.whole()
            try:
                for piece in pull.pieces(node.children[place]):
                    yield from pull.probed(node, place, piece, table)
            finally:
                build.drop()
            return
        _read_into(sides[place], pull.pieces(node.children[place]))
    else:
        for side in sides:
            _read_into(side, pull.pieces(side.node))

    def joined(tables: Sequence[T]) -> Iterator[T]:
        if place is None:
            yield pull.run(node, tuple(tables))
        else:
            yield from pull.probed(node, place, tables[place], tables[1 - place])

    yield from joined_parts(pull, node, sides, joined)


def _most_hashed(pull: Pull[T], probe: p.Physical) -> int:
    return BUILD_ROWS_GPU * pull.piece_rows(probe) if probe.device == "gpu" else BUILD_ROWS


def nested_loop(pull: Pull[T], node: p.NestedLoopJoin) -> Iterator[T]:
    """Make pairs of some rows of the left side with all of the right one, which is complete."""
    if probed(node) is None:
        yield pull.run(node, tuple(map(pull.collected, node.children)))
        return
    right = pull.collected(node.right)
    with pull.holding(node.right, right):
        for piece in pull.pieces(node.left):
            for block in pull.blocks(node.left, piece, right.num_rows):
                yield from pull.probed(node, 0, block, right)


def set_operation(pull: Pull[T], node: p.HashSetOperation) -> Iterator[T]:
    """Count equal rows in parts of both sides."""
    sides = [
        _read_into(Spool(pull, c, c.columns, c.columns), pull.pieces(c)) for c in node.children
    ]
    yield from in_parts(pull, node, sides, _once(pull, node))


# Order


def top(pull: Pull[T], node: p.TopK) -> Iterator[T]:
    """Keep the first rows of those seen so far; sort in ranges where they are too many to be kept."""
    end = node.offset + node.count
    pieces = pull.pieces(node.input)
    if end > TOP_ROWS:
        yield from _first_of_sorted(pull, node, pieces)
        return
    first = replace(node, count=end, offset=0)
    best: list[T] = []
    count = size = 0
    for piece in pieces:
        best.append(piece)
        count, size = count + piece.num_rows, size + size_of_sort(pull, node, piece)
        share = pull.room(node.device) // SHARE_OF_SORT
        if count < 2 * end and size <= share:
            continue
        best = [pull.run(first, (pull.together(node.input, best, node.columns),))]
        count, size = best[0].num_rows, size_of_sort(pull, node, best[0])
        if size > share // 2:
            yield from _first_of_sorted(pull, node, chain(best, pieces))
            return
    yield pull.run(node, (pull.together(node.input, best, node.columns),))


def _first_of_sorted(pull: Pull[T], node: p.TopK, pieces: Iterable[T]) -> Iterator[T]:
    ordered = p.SortRows(node.input, node.keys, device=node.device)
    rows = p.LimitRows(ordered, node.count, node.offset, device=node.device)
    remarks = pull.context.remarks
    try:
        yield from pull.limited(rows, sorted_pieces(pull, ordered, pieces))
    finally:
        if (text := remarks.pop(id(ordered), None)) is not None:
            remarks[id(node)] = text
