"""Rows in the order of a window: the place of each, where its partition and its peers begin and end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....plan.expr import Column
from ....plan.physical import Order
from ..sort.keys import Ints, group_codes
from ..sort.ordering import MOST_PACKED, sorted_with_rows
from ..sort.sort import SortColumn, directed_digits, order_of, packed_digits
from ..table import Indices, Table, take_array


@dataclass(frozen=True)
class WindowPlaces:
    """The places 0 to `rows` - 1 of the sorted rows; `order` are the input's row numbers in them, None as they lie.

    `heads` and `peer_heads` are the first places of partitions and of rows with equal keys, ascending.
    """

    rows: int
    order: Indices | None
    heads: Ints
    peer_heads: Ints

    @cached_property
    def index(self) -> Ints:
        return np.arange(self.rows)

    @cached_property
    def numbers(self) -> Indices:
        """The input's row number in each place."""
        return self.index if self.order is None else self.order

    @cached_property
    def sizes(self) -> Ints:
        return np.diff(self.heads, append=self.rows)

    @cached_property
    def start(self) -> Ints:
        """The first place of the partition of each place."""
        return np.repeat(self.heads, self.sizes)

    @cached_property
    def stop(self) -> Ints:
        """The place behind the partition of each place."""
        return np.repeat(self.heads + self.sizes, self.sizes)

    @cached_property
    def peer_sizes(self) -> Ints:
        return np.diff(self.peer_heads, append=self.rows)

    @cached_property
    def peers(self) -> Ints:
        """The number of the peers of each place, over all partitions."""
        return np.repeat(np.arange(len(self.peer_heads)), self.peer_sizes)

    @cached_property
    def peer_start(self) -> Ints:
        return np.repeat(self.peer_heads, self.peer_sizes)

    @cached_property
    def peer_stop(self) -> Ints:
        return np.repeat(self.peer_heads + self.peer_sizes, self.peer_sizes)

    def at_places(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values of the input's rows in the order of the window."""
        return values if self.order is None else values[self.order]

    def at_rows(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values of places in the order of the input's rows."""
        if self.order is None:
            return values
        result = np.empty_like(values)
        result[self.order] = values
        return result

    def take(self, array: pa.Array, places: Ints) -> pa.Array:
        """Return, in the order of the input's rows, the values at a place for each place; -1 gives NULL."""
        if self.order is not None and self.rows:
            places = np.where(places < 0, -1, self.order[places])
        return take_array(array, self.at_rows(places))


def places_of(table: Table, partition: tuple[Column, ...], keys: tuple[Order, ...]) -> WindowPlaces:
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
        return WindowPlaces(rows, None, one, one)
    parts = packed_digits(digits)
    if len(parts) == 1 and rows <= MOST_PACKED:
        found = sorted_with_rows(parts[0][0])
        if found is not None:
            return _of_sorted(*found, parts[0][1] // digits[0][1] if partition else None)
    order: Indices | None = order_of(parts)
    assert order is not None
    if bool((order[1:] > order[:-1]).all()):
        order = None
    heads = np.zeros(min(1, rows), np.int64)
    if partition:
        heads = _heads([digits[0][0]], order)
    return WindowPlaces(rows, order, heads, _heads([values for values, _ in parts], order))


def _of_sorted(values: Ints, rows: Indices, width: int | None) -> WindowPlaces:
    """Return the places of sorted keys; `width` of them belong to one partition, None for all."""
    peers = _heads([values], None)
    heads = peers[:1]
    if width is not None:
        partitions = values[peers] // width
        heads = peers[_heads([partitions], None)]
    in_order = bool((rows[1:] > rows[:-1]).all())
    return WindowPlaces(len(rows), None if in_order else rows, heads, peers)


def _heads(parts: list[Ints], order: Indices | None) -> Ints:
    """Return the first places of rows that are alike in all parts."""
    differs = np.zeros(len(parts[0]), bool)
    differs[:1] = True
    for values in parts:
        ordered = values if order is None else values[order]
        differs[1:] |= ordered[1:] != ordered[:-1]
    return np.flatnonzero(differs)
