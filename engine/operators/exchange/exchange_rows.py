"""Rows that the workers of a cluster give each other, in the form in which parts of joins are spilled: as they lie.

Rows of keys that many rows of one side of a join have stay where they are; sorted rows are cut so that each worker gets a stretch of the order.

Which keys are heavy is asked of their hash: the workers count the rows of each of its parts together.  A part with more than half of
a worker's even share would make that worker late.  To send the other side's rows of it to all costs some 1/64 of that side for each.

Each shows the others some of its rows, evenly spread; in the order of all of these, cuts are taken where as many rows lie between them
(Shi and Schaeffer, Parallel sorting by regular sampling, 1992: no stretch has more than twice its even share).  Rows that equal each
other are in the order of their workers, and on one as they lie, as in a stable sort; so a cut may lie between them, and any number
of equal rows is spread too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Generic

import numpy as np
import pyarrow as pa

from ...plan import physical as p
from ...plan.arrow.arrow_arrays import array_from, from_numpy, null_as
from ...plan.exchange import Exchange
from ...plan.expr import Column, new_column
from ...plan.types import BIGINT, to_arrow
from ...records import dataclass
from ...storage.columns.encodings import numbers
from ..context import Context, Peers
from ..run_unfused import T
from ..spill_area import SpilledPiece
from ..spilling import PARTS, Parting

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
    count = pa.record_batch({"rows": array_from([len(keys)], pa.int64())})
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
    taken = rows.take(array_from(places, pa.int64()))
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


SHARE = 0.5  # of a worker's even share of all rows, what a part of the hash may have
# How many times the rows of an even part a heavy one has at least, with however many workers
TIMES_USUAL = 4


def heavy_parts(
    node: Exchange, bounds: Iterable[Sequence[int]], context: Context
) -> frozenset[int]:
    """Return the parts that stay where they are, or of which the other side's do; all workers say the same.

    `bounds` say of some rows at a time where those of each part begin, and their end.
    """
    peers = context.peers
    assert peers is not None
    if node.beside is not None:
        return context.heavy[node.beside.number]
    counts = np.zeros(PARTS, np.int64)
    for ends in bounds:
        counts += np.diff(ends)
    told = [pa.record_batch({"rows": counts})]
    # A meeting that is not the exchange's own
    met = peers.exchange(~node.number, [told] * peers.workers)
    total = np.sum([numbers(batch.column(0)) for batch in met], axis=0)
    most = max(SHARE / peers.workers, TIMES_USUAL / PARTS) * total.sum()
    found = context.heavy[node.number] = frozenset(np.flatnonzero(total > most).tolist())
    if found:
        rows = int(total[list(found)].sum())
        context.remarks[id(node)] = f"{rows:,} rows of heavy keys stay where they are"
    else:
        peers.over.add(~node.number)
    return found


def batches_of(
    pieces: Sequence[SpilledPiece], heavy: frozenset[int], wanted: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the parts that are heavy, or of those that are not."""
    for piece in pieces:
        for part in range(PARTS):
            if (part in heavy) == wanted and piece.bounds[part] < piece.bounds[part + 1]:
                yield from piece.parts(part, part + 1)


Parts = Sequence[list[pa.RecordBatch] | None]


def exchanged(
    node: Exchange, table: T, backends: Mapping[p.Device, Parting[T]], context: Context
) -> T:
    """Return the rows that a worker has after an exchange; raises `MemoryError` where there is no room for them."""
    assert context.peers is not None
    found = _exchanged(node, table, backends[node.device], context)
    context.peers.over.add(node.number)
    return found


def _exchanged(node: Exchange, table: T, backend: Parting[T], context: Context) -> T:
    columns, peers = node.columns, context.peers
    assert peers is not None
    parts: Parts
    if not columns:  # rows alone, which no message could count
        count = pa.RecordBatch.from_arrays([pa.nulls(table.num_rows)], [""])
        parts = _sent(node, count, peers)
        own = node.kind == "pick"
        arrived = parts[peers.rank] or [] if own else peers.exchange(node.number, parts)
        total = sum(batch.num_rows for batch in arrived)
        return backend.from_arrow(pa.table({"": pa.nulls(total)}).select([]), ())
    if backend.exchanged is not None:
        ends = partial(ends_of_stretches, node, backend=backend, context=context)
        moved = backend.exchanged(node, table, ends, context)
        if moved is not None:
            return moved
    context.ask(node, backend.num_bytes(table))
    found = _parts(node, table, backend, context)
    if found is None:
        return table
    parts = found
    if node.keys and node.of_first and peers.rank:
        parts = [[] for _ in parts]
    own = node.kind == "pick"
    arrived = parts[peers.rank] or [] if own else peers.exchange(node.number, parts)
    context.ask(node, sum(batch.nbytes for batch in arrived))
    return backend.unparted(arrived, columns)


def _parts(node: Exchange, table: T, backend: Parting[T], context: Context) -> Parts | None:
    """Return what each worker gets of a table, None where it stays as it is."""
    peers = context.peers
    assert peers is not None
    pieces: list[SpilledPiece] = []
    if node.kind == "spread" or not node.keys or node.cuts:
        numbers = backend.parted(table, node.keys, node.keys)
    else:
        numbers = iter(pieces := list(backend.parted(table, node.keys, node.columns)))
    if node.is_spread:
        heavy = heavy_parts(node, (piece.bounds for piece in numbers), context)
        if heavy:
            pieces = pieces or list(backend.parted(table, node.keys, node.columns))
            return _beside_heavy(node, pieces, heavy, peers)
    if node.kind == "spread":
        return None
    if node.orders:
        rows = _whole(backend, table, node.columns)
        keys = rows.select([node.columns.index(column) for column in sort_columns(node)])
        ends = ends_of_stretches(node, keys, backend, context)
        return [[rows.slice(begin, end - begin)] for begin, end in pairwise(ends)]
    if node.cuts:
        return _in_ranges(node, _whole(backend, table, node.columns))
    if node.keys:
        return [
            [batch for piece in pieces for batch in piece.parts(first, last)]
            for first, last in pairwise(ends_of_parts(peers.workers))
        ]
    return _sent(node, _whole(backend, table, node.columns), peers)


def _whole(backend: Parting[T], table: T, columns: tuple[Column, ...]) -> pa.RecordBatch:
    return backend.piece_of(table, [0, table.num_rows], columns).rows


def parts_of_few(node: Exchange, rows: pa.Table, peers: Peers) -> Parts:
    """What each worker gets of few rows, which all go to the first or to each."""
    arrays = [column.combine_chunks() for column in rows.columns]
    names = [str(column.id) for column in node.columns]
    return _sent(node, pa.RecordBatch.from_arrays(arrays, names), peers)


def few_together(
    batches: Sequence[pa.RecordBatch], columns: Sequence[Column]
) -> tuple[dict[Column, pa.Array], int]:
    """Return few rows of all workers by their columns, and how many there are."""
    arrays = {
        column: pa.chunked_array([b.column(i) for b in batches], to_arrow(column.type))
        for i, column in enumerate(columns)
    }
    count = sum(batch.num_rows for batch in batches)
    return {column: array.combine_chunks() for column, array in arrays.items()}, count


def ends_of_parts(workers: int) -> list[int]:
    """The parts of a hash of which each worker has those from one end to the next."""
    return [PARTS * rank // workers for rank in range(workers + 1)]


def _beside_heavy(
    node: Exchange, pieces: Sequence[SpilledPiece], heavy: frozenset[int], peers: Peers
) -> Parts:
    """Parts that are heavy stay here, or go to all beside those that do; the others go where keys say, or nowhere."""
    parts: list[list[pa.RecordBatch]] = [[] for _ in range(peers.workers)]
    light = list(batches_of(pieces, heavy, wanted=False))
    if node.kind == "spread":
        parts[peers.rank] += light
    elif node.cuts:
        for rows in light:
            for part, found in zip(parts, _in_ranges(node, rows), strict=True):
                part.extend(found or [])
    else:
        for part, (first, last) in zip(parts, pairwise(ends_of_parts(peers.workers)), strict=True):
            own = frozenset(range(first, last)) - heavy
            part.extend(batches_of(pieces, own, wanted=True))
    to = range(peers.workers) if node.beside is not None else (peers.rank,)
    rest = list(batches_of(pieces, heavy, wanted=True))
    for rank in to:
        parts[rank] += rest
    return parts


def _in_ranges(node: Exchange, rows: pa.RecordBatch) -> Parts:
    """Cut rows at values of an integer; those where it is NULL are with the least."""
    (key,) = node.keys
    values = rows.column(node.columns.index(key)).cast(pa.int64())
    keys = numbers(null_as(values, np.iinfo(np.int64).min))
    ranks = np.searchsorted(np.array(node.cuts, np.int64), keys, side="right")
    ordered = rows.take(from_numpy(np.argsort(ranks, kind="stable")))
    ends = [0, *np.cumsum(np.bincount(ranks, minlength=len(node.cuts) + 1)).tolist()]
    return [[ordered.slice(begin, end - begin)] for begin, end in pairwise(ends)]


def _sent(node: Exchange, rows: pa.RecordBatch, peers: Peers) -> Parts:
    """What each worker gets: all that there is, or the first alone does."""
    part = [rows.slice(0, 0) if node.of_first and peers.rank else rows]
    return [part if node.kind == "broadcast" or to == 0 else None for to in range(peers.workers)]
