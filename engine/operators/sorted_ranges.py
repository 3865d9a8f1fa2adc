"""Sorting what does not fit: rows are cut at some values into ranges, which are spilled, and each of which is sorted alone.

The first rows say where to cut.  Where later ones lie elsewhere, as when they come in order, most of them fall into one range:
it is cut again, at values of samples of all rows.  Rows that equal one of these values are a range of their own, which needs
no sorting, so that any number of equal rows may come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..plan import physical as p
from ..plan.expr import FALSE, TRUE, Call, ColumnRef, new_column
from ..plan.types import BOOLEAN
from .spilling import PARTS
from .spools import Spool, in_parts

if TYPE_CHECKING:
    from .pulling import Pull

# Of the room, what sorting rows may take: these, their keys, and the rows in order
SHARE_OF_SORT = 3
BYTES_A_KEY = 40
MARKS = PARTS // 2 - 1  # values, before and behind each of which rows are cut


def sort(pull: Pull, node: p.SortRows) -> Iterator[Any]:
    """Sort at once, or in ranges."""
    yield from _sorted(pull, node, pull.pieces(node.input), None)


def _sorted(pull: Pull, node: p.SortRows, pieces: Iterable[Any], marks: Any) -> Iterator[Any]:
    """Sort rows; `marks` are those at which they are cut, None for some of the first rows."""
    spool = Spool(pull, node.input, [order.column for order in node.keys], node.columns)
    samples: list[Any] = []
    for rows, last in _chunks(pull, node, pieces):
        if last and not samples:
            yield pull.run(node, (rows,))
            return
        if marks is None:
            marks = _some(pull, node, pull.run(node, (rows,)))
        ordered, bounds = _cut(pull, node, rows, marks)
        samples.append(_some(pull, node, ordered))
        spool.add_parted(ordered, bounds)

    def anew(part: int) -> Iterator[Any]:
        if part % 2:  # all of them equal a mark
            yield from spool.pieces(part)
            return
        ordered, bounds = _cut(pull, node, pull.together(node, samples, node.columns), marks)
        start, count = bounds[part], bounds[part + 1] - bounds[part]
        inner = _some(pull, node, pull.cut(node, ordered, start, count)) if count else None
        yield from _sorted(pull, node, spool.pieces(part), inner)

    def work(tables: Sequence[Any]) -> Iterator[Any]:
        yield pull.run(node, tuple(tables))

    yield from in_parts(pull, node, [spool], work, anew=anew)


def _chunks(pull: Pull, node: p.SortRows, pieces: Iterable[Any]) -> Iterator[tuple[Any, bool]]:
    """Yield rows, as many at a time as can be sorted, and whether they are the last."""
    pending: list[Any] = []
    size = 0
    for piece in pieces:
        if size > pull.room(node.device) // SHARE_OF_SORT:
            yield pull.together(node.input, pending, node.columns), False
            pending, size = [], 0
        pending.append(piece)
        size += 2 * pull.backends[node.device].num_bytes(piece) + BYTES_A_KEY * piece.num_rows
    yield pull.together(node.input, pending, node.columns), True


def _some(pull: Pull, node: p.SortRows, ordered: Any) -> Any:
    """Return different rows of sorted ones, about equally many of which lie between two of them."""
    places = np.linspace(0, ordered.num_rows - 1, MARKS + 2)[1:-1].astype(int)
    rows = [pull.cut(node, ordered, place, 1) for place in dict.fromkeys(places.tolist())]
    one = p.DistinctOn(node, tuple(order.column for order in node.keys), device=node.device)
    return pull.run(one, (pull.together(node, rows, node.columns),))


def _cut(pull: Pull, node: p.SortRows, table: Any, marks: Any) -> tuple[Any, list[int]]:
    """Return rows sorted, and where they pass each of the marks: before and behind all rows that are equal to it."""
    flag = new_column("mark", BOOLEAN)
    passed = tuple((c, ColumnRef(c)) for c in node.columns)
    tagged = [
        p.ComputeColumns(node.input, (*passed, (flag, value)), device=node.device)
        for value in (TRUE, FALSE)
    ]
    tables = [pull.run(tagged[0], (marks,)), pull.run(tagged[1], (table,))]
    both = pull.together(tagged[0], [*tables, tables[0]], tagged[0].columns)
    ordered = pull.run(replace(node, input=tagged[0]), (both,))
    backend = pull.backends[node.device]
    flags = backend.to_arrow(ordered, (flag,)).column(0).combine_chunks()
    places = np.flatnonzero(flags.to_numpy(zero_copy_only=False))
    # Each mark that stands before a row moves it one further back
    bounds = [0, *(places - np.arange(len(places))).tolist()]
    bounds += [table.num_rows] * (PARTS + 1 - len(bounds))
    rest = p.FilterRows(
        tagged[0], Call("not", (ColumnRef(flag),), BOOLEAN), node.columns, device=node.device
    )
    return pull.run(rest, (ordered,)), bounds
