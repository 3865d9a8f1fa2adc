"""Where the workers of a cluster cut rows that each has sorted, so that of the whole order each gets a stretch, about equally long ones.

Each shows the others some of its rows, evenly spread; in the order of all of these, cuts are taken where as many rows lie between them
(Shi and Schaeffer, Parallel sorting by regular sampling, 1992: no stretch has more than twice its even share).  Rows that equal each
other are in the order of their workers, and on one as they lie, as in a stable sort; so a cut may lie between them, and any number
of equal rows is spread too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic

import numpy as np
import pyarrow as pa

from ...plan import physical as p
from ...plan.exchange import Exchange
from ...plan.expr import Column, new_column
from ...plan.types import BIGINT
from ..context import Context
from ..run_unfused import T
from ..spilling import Parting

# That each worker shows, for each worker: then stretches are expected to differ by some 3 %
SAMPLES = 32
SEARCHED = 1 << 10  # rows among which a cut is looked for at a time


@dataclass
class _Sorter(Generic[T]):
    """Sorts a few rows of several workers by the keys of an exchange."""

    node: Exchange
    backend: Parting[T]
    context: Context

    def __post_init__(self) -> None:
        self.columns = sort_columns(self.node)
        self._number = new_column("number", BIGINT)
        stored = p.Stored(0, (*self.columns, self._number), device=self.node.device)
        self._sort = p.SortRows(stored, self.node.orders, device=self.node.device)

    def order(self, batches: Sequence[pa.RecordBatch]) -> list[int]:
        """Return the places that rows, counted through all batches, have before they are sorted, in the order that they have then."""
        table = self.backend.numbered(self.backend.unparted(batches, self.columns), self._number, 0)
        ordered = self.backend.OPERATORS[p.SortRows](self._sort, (table,), self.context)
        found: list[int] = self.backend.to_arrow(ordered, (self._number,)).column(0).to_pylist()
        return found


def sort_columns(node: Exchange) -> tuple[Column, ...]:
    """The columns by which rows are sorted."""
    return tuple(dict.fromkeys(order.column for order in node.orders))


def ends_of_stretches(
    node: Exchange, keys: pa.RecordBatch, backend: Parting[T], context: Context
) -> list[int]:
    """Return where the stretch of each worker begins in this one's sorted rows, and their end; all workers meet for it.

    `keys` are the `sort_columns` of these rows.
    """
    peers = context.peers
    assert peers is not None
    sorter = _Sorter(node, backend, context)
    places = _spread(len(keys), SAMPLES * peers.workers)
    count = pa.record_batch({"rows": pa.array([len(keys)], pa.int64())})
    shown = [_few(keys, places), count]
    # Batches of all workers, two of each; a meeting that is not the exchange's own
    met = peers.exchange(~node.number, [shown] * peers.workers)
    samples = met[::2]
    counts = [batch.column(0)[0].as_py() for batch in met[1::2]]
    ends = [0]
    for worker, place in _cuts(sorter, samples, counts, peers.workers):
        if worker == peers.rank:
            ends.append(places[place])
        else:
            mark = samples[worker].slice(place, 1)
            ends.append(_place(sorter, keys, mark, before=worker < peers.rank))
    return [*ends, *[len(keys)] * (peers.workers + 1 - len(ends))]


def _spread(rows: int, most: int) -> list[int]:
    """Return places of rows that are evenly spread, in the middle of as many rows each."""
    count = min(rows, most)
    return [(2 * i + 1) * rows // (2 * count) for i in range(count)]


def _few(rows: pa.RecordBatch, places: Sequence[int]) -> pa.RecordBatch:
    """Return some rows; without dictionaries, whose values are more than they are."""
    taken = rows.take(pa.array(places, pa.int64()))
    arrays = [
        array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        for array in taken.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, taken.schema.names)


def _cuts(
    sorter: _Sorter[T], samples: Sequence[pa.RecordBatch], counts: Sequence[int], workers: int
) -> list[tuple[int, int]]:
    """Return the samples, by worker and place among its own, before which rows are cut; none where there are no rows."""
    lengths = list(map(len, samples))
    begins = list(accumulate(lengths, initial=0))
    order = np.array(sorter.order(samples), np.int64)
    if not len(order):
        return []
    owners = np.searchsorted(begins, order, side="right") - 1
    weights = np.array([rows / max(1, n) for rows, n in zip(counts, lengths, strict=True)])
    before = np.cumsum(weights[owners]) - weights[owners] / 2
    wanted = sum(counts) * np.arange(1, workers) / workers
    found = np.minimum(np.searchsorted(before, wanted), len(order) - 1)
    return [(int(owners[i]), int(order[i] - begins[owners[i]])) for i in found]


def _place(sorter: _Sorter[T], keys: pa.RecordBatch, mark: pa.RecordBatch, before: bool) -> int:
    """Return how many sorted rows stand before a mark, which stands before or behind those that equal it."""
    low, high = 0, len(keys)
    while low < high:
        step = max(1, (high - low) // SEARCHED)
        places = range(low, high, step)
        some = _few(keys, places)
        order = sorter.order([mark, some] if before else [some, mark])
        reached = order.index(0 if before else len(places))
        if step == 1:
            return low + reached
        if reached < len(places):
            high = places[reached]
        if reached:
            low = places[reached - 1] + 1
    return low
