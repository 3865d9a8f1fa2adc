"""Sorting what does not fit: rows are cut at some values into ranges, which are spilled, and each of which is sorted alone.

The first rows say where to cut.  Where later ones lie elsewhere, as when they come in order, most of them fall into one range:
it is cut again, at values of samples of all rows.  Rows that equal one of these values are a range of their own, which needs
no sorting, so that any number of equal rows may come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..plan import physical as p
from ..plan.arrow.arrow_arrays import truth_values
from ..plan.expr import FALSE, TRUE, Call, ColumnRef, new_column
from ..plan.types import BOOLEAN
from .host_memory import give_back
from .run_unfused import T
from .spilling import PARTS, Spool, in_parts

if TYPE_CHECKING:
    import pyarrow as pa

    from .pulling import Pull

# Of the room, what sorting rows may take: these, copies that keys are made of, and the rows in order
SHARE_OF_SORT = 3
COPIES = 3
BYTES_A_KEY = 40
MARKS = PARTS // 2 - 1  # values, before and behind each of which rows are cut


def sort(pull: Pull[T], node: p.SortRows) -> Iterator[T]:
    """Sort at once, or in ranges."""
    yield from sorted_pieces(pull, node, pull.pieces(node.input))


def sorted_pieces(pull: Pull[T], node: p.SortRows, pieces: Iterable[T]) -> Iterator[T]:
    """Sort rows that come in pieces."""
    yield from _sorted(pull, node, pieces, None)


def size_of_sort(pull: Pull[T], node: p.SortRows | p.TopK, table: T) -> int:
    """Return how many bytes sorting a table's rows takes, about."""
    size: int = pull.backends[node.device].num_bytes(table)
    return COPIES * size + BYTES_A_KEY * table.num_rows


def _sorted(pull: Pull[T], node: p.SortRows, pieces: Iterable[T], marks: pa.Array) -> Iterator[T]:
    """Sort rows; `marks` are those at which they are cut, None for some of the first rows."""
    spool = Spool(pull, node.input, [order.column for order in node.keys], node.columns)
    samples: list[T] = []
    for chunk, last in _chunks(pull, node, pieces):
        if last and not samples:
            yield pull.run(node, (_taken(pull, node, chunk),))
            return
        if marks is None:
            chunk[:] = [_taken(pull, node, chunk)]
            marks = _some(pull, node, pull.run(node, tuple(chunk)))
        ordered, bounds = _cut(pull, node, chunk, marks)
        samples.append(_some(pull, node, ordered))
        spool.write_ordered(ordered, bounds)
        del ordered
        give_back()

    def anew(part: int) -> Iterator[T]:
        if part % 2:  # all of them equal a mark
            yield from spool.pieces(part)
            return
        ordered, bounds = _cut(pull, node, list(samples), marks)
        start, count = bounds[part], bounds[part + 1] - bounds[part]
        inner = _some(pull, node, pull.cut(node, ordered, start, count)) if count else None
        yield from _sorted(pull, node, spool.pieces(part), inner)

    def work(tables: Sequence[T]) -> Iterator[T]:
        yield pull.run(node, tuple(tables))

    yield from in_parts(pull, node, [spool], work, anew=anew)


def _chunks(pull: Pull[T], node: p.SortRows, pieces: Iterable[T]) -> Iterator[tuple[list[T], bool]]:
    """Yield pieces, as many at a time as can be sorted together, and whether they are the last.

    Whoever takes them out of the list frees them.
    """
    pending: list[T] = []
    size = 0
    for piece in pieces:
        if size > pull.room(node.device) // SHARE_OF_SORT:
            yield pending, False
            pending, size = [], 0
        pending.append(piece)
        size += size_of_sort(pull, node, piece)
        del piece
    yield pending, True


def _taken(pull: Pull[T], node: p.SortRows, chunk: list[T]) -> T:
    """Return the rows of pieces, which are let go of."""
    rows = pull.together(node.input, chunk, node.columns)
    chunk.clear()
    return rows


def _some(pull: Pull[T], node: p.SortRows, ordered: T) -> T:
    """Return different rows of sorted ones, about equally many of which lie between two of them."""
    places = np.linspace(0, ordered.num_rows - 1, MARKS + 2)[1:-1].astype(int)
    rows = [pull.cut(node, ordered, place, 1) for place in dict.fromkeys(places.tolist())]
    one = p.DistinctOn(node, tuple(order.column for order in node.keys), device=node.device)
    return pull.run(one, (pull.together(node, rows, node.columns),))


def _cut(pull: Pull[T], node: p.SortRows, chunk: list[T], marks: pa.Array) -> tuple[T, list[int]]:
    """Return rows sorted, and where they pass each of the marks: before and behind all rows that are equal to it.

    The pieces of the chunk are let go of as soon as they are copied: of rows that are sorted there are never more than two copies.
    """
    flag = new_column("mark", BOOLEAN)
    passed = tuple((c, ColumnRef(c)) for c in node.columns)
    mark, other = (
        p.ComputeColumns(node.input, (*passed, (flag, value)), device=node.device)
        for value in (TRUE, FALSE)
    )
    tagged = [pull.run(mark, (marks,)), *(pull.run(other, (piece,)) for piece in chunk)]
    chunk.clear()
    both = [pull.together(mark, [*tagged, tagged[0]], mark.columns)]
    count = both[0].num_rows - 2 * marks.num_rows
    tagged.clear()
    ordered = pull.run(replace(node, input=mark), (both.pop(),))
    backend = pull.backends[node.device]
    flags = backend.to_arrow(ordered, (flag,)).column(0).combine_chunks()
    places = np.flatnonzero(truth_values(flags))
    # Each mark that stands before a row moves it one further back
    bounds = [0, *(places - np.arange(len(places))).tolist()]
    bounds += [count] * (PARTS + 1 - len(bounds))
    rest = p.FilterRows(
        mark, Call("not", (ColumnRef(flag),), BOOLEAN), node.columns, device=node.device
    )
    return pull.run(rest, (ordered,)), bounds
