"""The order of a window's rows: one sort by partition and keys, and what functions read of the rows in it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from ....plan.expr import Column, ColumnRef, SortKey
from ....plan.physical import Order
from ....records import dataclass
from ...windows.frames import InnerOrder, Values, WindowPlaces
from ..memory.chunks import each_chunk
from ..sort.keys import Ints, group_codes, ordered_images
from ..sort.ordering import MOST_PACKED, sorted_with_rows
from ..sort.sort import SortColumn, directed_digits, order_of, packed_digits
from ..table import Indices, Mask, Table, concat_arrays, take_array, to_numpy, validity

ROWS_LOOKED_AT = 1 << 10  # that are looked at before all are


@dataclass(frozen=True)
class HostPlaces(WindowPlaces):
    """Places in arrays of NumPy's; `order` are the input's row numbers in them, None as they lie."""

    order: Indices | None

    @cached_property
    def numbers(self) -> Indices:
        """The input's row number in each place."""
        return self.index if self.order is None else self.order

    def at_places(self, values: Values) -> Values:
        """Return values of the input's rows in the order of the window."""
        order = self.order
        if order is None:
            return values
        result = np.empty(len(order), values.dtype)

        def gather(start: int, stop: int) -> None:
            result[start:stop] = values[order[start:stop]]

        each_chunk(gather, len(order))
        return result

    def at_rows(self, values: Values) -> Values:
        """Return values of places in the order of the input's rows."""
        order = self.order
        if order is None:
            return values
        result = np.empty(len(order), values.dtype)

        def scatter(start: int, stop: int) -> None:
            result[order[start:stop]] = values[start:stop]

        each_chunk(scatter, len(order))
        return result

    def up_to_rank(self, most: int) -> Indices:
        """Return the row numbers up to a rank in their partitions, ascending."""
        kept = self.numbers[self.peer_start - self.start < most]
        kept.sort()
        return kept

    def take(self, array: pa.Array, places: Ints) -> pa.Array:
        """Return, in the order of the input's rows, the values at a place for each place; -1 gives NULL."""
        if self.order is not None and self.rows:
            places = np.where(places < 0, -1, self.order[places])
        return take_array(array, self.at_rows(places))


@dataclass(frozen=True)
class HostRows:
    """The rows of a table in the order of a window."""

    table: Table
    places: HostPlaces

    def integers(self, column: Column) -> tuple[Ints, Mask | None]:
        return self.places.at_places(to_numpy(self.table[column])), self.known(column)

    def known(self, column: Column) -> Mask | None:
        valid = validity(self.table[column])
        return None if valid is None else self.places.at_places(valid)

    def ordered(self, keys: tuple[SortKey, ...]) -> InnerOrder:
        places = self.places
        digits = [(np.zeros(places.rows, np.int64), 1)]
        for key in keys:
            assert isinstance(key.expr, ColumnRef)
            array = self.table[key.expr.column]
            digits += directed_digits(SortColumn(array, key.descending, key.nulls_first))
        parts = [(places.at_places(values), size) for values, size in packed_digits(digits)]
        order = order_of(parts)
        new = np.zeros(places.rows, bool)
        new[_heads([values for values, _ in parts], order)] = True
        ranks, peers = np.empty((2, places.rows), np.int64)
        ranks[order], peers[order] = places.index, np.cumsum(new) - 1
        return InnerOrder(ranks, peers, order)

    def comparable(self, key: Column, bound: Column) -> tuple[Ints, Ints, Mask]:
        both = concat_arrays([self.table[key], self.table[bound]])
        images = ordered_images(both)
        if len(images) == 1:
            combined = images[0].values
        else:
            combined = _ranks(images[0].values, images[1].values)
        rows = self.places.rows
        valid = validity(both)
        known = np.ones(rows, bool) if valid is None else valid[:rows] & valid[rows:]
        at = self.places.at_places
        return at(combined[:rows]), at(combined[rows:]), at(known)


def _ranks(high: Ints, low: Ints) -> Ints:
    """Return one integer in the order of two."""
    order = np.lexsort([low, high])
    new = np.zeros(len(order), bool)
    new[1:] = (high[order][1:] != high[order][:-1]) | (low[order][1:] != low[order][:-1])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(new)
    return ranks


def places_of(table: Table, partition: tuple[Column, ...], keys: tuple[Order, ...]) -> HostPlaces:
    """Sort rows by a partition, in whatever order of partitions, and by keys."""
    rows = table.num_rows
    digits = [group_codes([table[c] for c in partition])] if partition else []
    if partition:
        digits[0] = digits[0][0].astype(np.int64, copy=False), digits[0][1]
    for key in keys:
        column = SortColumn(table[key.column], key.descending, key.nulls_first)
        digits += directed_digits(column)
    if not digits or not rows:
        one = np.zeros(min(1, rows), np.int64)
        return HostPlaces(rows, one, one, None)
    parts = packed_digits(digits)
    if len(parts) == 1:
        values, size = parts[0]
        width = size // digits[0][1] if partition else None
        if _ascend(values):
            return _of_sorted(values, None, width)
        found = sorted_with_rows(values) if rows <= MOST_PACKED else None
        if found is not None:
            return _of_sorted(*found, width)
    order: Indices | None = order_of(parts)
    assert order is not None
    if bool((order[1:] > order[:-1]).all()):
        order = None
    heads = np.zeros(min(1, rows), np.int64)
    if partition:
        heads = _heads([digits[0][0]], order)
    peers = _heads([values for values, _ in parts], order)
    return HostPlaces(rows, heads, peers, order)


def _of_sorted(values: Ints, rows: Indices | None, width: int | None) -> HostPlaces:
    """Return the places of sorted keys; `width` of them belong to one partition, None for all."""
    peers = _heads([values], None)
    heads = peers[:1]
    if width is not None:
        partitions = values[peers] // width
        heads = peers[_heads([partitions], None)]
    return HostPlaces(len(values), heads, peers, rows)


def _ascend(values: Ints) -> bool:
    """Whether rows lie in order, as those of a sorted table; most others are told by their first rows."""
    head = values[:ROWS_LOOKED_AT]
    return bool((head[1:] >= head[:-1]).all() and (values[1:] >= values[:-1]).all())


def _heads(parts: list[Ints], order: Indices | None) -> Ints:
    """Return the first places of rows that are alike in all parts."""
    differs = np.zeros(len(parts[0]), bool)
    differs[:1] = True
    for values in parts:
        ordered = values if order is None else values[order]
        differs[1:] |= ordered[1:] != ordered[:-1]
    return np.flatnonzero(differs)
