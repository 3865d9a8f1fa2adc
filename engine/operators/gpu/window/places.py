"""The order of a window's rows on the device: one sort by partition and keys, and what functions read of the rows in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import pylibcudf as plc

from ....codegen.handwritten import window_kernels as kernels
from ....plan.expr import Column, ColumnRef, SortKey
from ....plan.physical import Order
from ....records import dataclass
from ...windows.frames import FIRST, InnerOrder, Ints, Mask, WindowPlaces
from .. import columns as col
from ..aggregate.groups import pick, pick_held
from ..dictionaries import Coded, Held
from ..join.join_pairs import UNMATCHED
from ..sort.packed_keys import Direction, packed
from ..sort.sort import lie_in_order, order_of, sort_keys, sortable
from ..table import Table
from .device_array import as_array, as_rows, column_of
from .marks import (
    Codes,
    WindowMarks,
    at_ends,
    changes,
    codes_for,
    marks_of,
    moved,
    rows_taken,
    scattered,
)

Op = plc.binaryop.BinaryOperator


@dataclass(frozen=True)
class DevicePlaces(WindowPlaces):
    """Places in device columns; `order` are the input's row numbers in them, None as they lie.

    `partition_numbers` and `peers` count the partitions and the peers before each place.
    """

    order: plc.Column | None
    partition_numbers: Ints
    peer_numbers: Ints

    @cached_property
    def index(self) -> Ints:
        return as_array(col.sequence(self.rows, data_type=col.INT64))

    @cached_property
    def start(self) -> Ints:
        return self.heads[self.partition_numbers]

    @cached_property
    def stop(self) -> Ints:
        return self._ends(self.heads)[self.partition_numbers]

    @property
    def peers(self) -> Ints:
        return self.peer_numbers

    @cached_property
    def peer_start(self) -> Ints:
        return self.peer_heads[self.peer_numbers]

    @cached_property
    def peer_stop(self) -> Ints:
        return self._ends(self.peer_heads)[self.peer_numbers]

    @cached_property
    def peer_sizes(self) -> Ints:
        return self._ends(self.peer_heads) - self.peer_heads

    def _ends(self, heads: Ints) -> Ints:
        return np.concatenate([heads[1:], np.full(1, self.rows, np.int64)])

    @cached_property
    def place_of_row(self) -> plc.Column:
        """The place of each of the input's rows."""
        numbers = col.sequence(self.rows)
        if self.order is None:
            return numbers
        placed = plc.copying.scatter(plc.Table([numbers]), self.order, plc.Table([numbers]))
        return placed.columns()[0]

    def at_places(self, held: Held) -> Held:
        """Return a column of the input's rows in the order of the window."""
        return held if self.order is None else pick_held(held, self.order)

    def at_rows(self, column: Held) -> Held:
        """Return a column of places in the order of the input's rows."""
        return column if self.order is None else pick_held(column, self.place_of_row)

    def as_they_leave(self, held: Held) -> Held:
        """Return a column of the input's rows in the order in which rows come out."""
        return held

    def running(
        self, column: plc.Column, how: int, stops: Callable[[], Ints] | None
    ) -> plc.Column | None:
        """Combine values, none of which is NULL, from the beginning of each place's partition up to it or to where it `stops`.

        None where no kernel does.
        """
        return None

    def up_to_rank(self, most: int) -> plc.Column:
        """Return the row numbers up to a rank in their partitions, ascending."""
        numbers = self.index if self.order is None else as_array(col.cast(self.order, col.INT64))
        kept = as_rows(numbers[self.peer_start - self.start < most])
        return pick(kept, order_of([kept], [(False, False)]))

    def taken(self, held: Held, places: Ints) -> Held:
        """Return, in the order of the input's rows, its values at a place for each place; -1 gives NULL."""
        there = places >= 0
        if self.order is None:
            rows = np.where(there, places, UNMATCHED)
        else:
            numbers = as_array(col.cast(self.order, col.INT64))
            rows = np.where(there, numbers[np.maximum(places, 0)], UNMATCHED)
        found = self.at_rows(column_of(rows))
        return pick_held_or_null(held, as_rows(as_array(found)))


class MarkedPlaces(DevicePlaces):
    """Places of which kernels find what is asked of them, when it is; with `stays` rows come out in their order."""

    def __init__(self, order: plc.Column | None, marks: WindowMarks, stays: bool) -> None:
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "rows", marks.rows)
        object.__setattr__(self, "marks", marks)
        object.__setattr__(self, "stays", stays and order is not None)

    marks: WindowMarks
    stays: bool

    @cached_property
    def heads(self) -> Ints:
        return np.flatnonzero(as_array(self.marks.heads))

    @cached_property
    def peer_heads(self) -> Ints:
        return np.flatnonzero(as_array(self.marks.peers))

    @cached_property
    def partition_numbers(self) -> Ints:
        return np.cumsum(as_array(self.marks.heads)) - 1

    @cached_property
    def peer_numbers(self) -> Ints:
        return np.cumsum(as_array(self.marks.peers)) - 1

    @cached_property
    def start(self) -> Ints:
        return self.marks.starts(kernels.START)

    @cached_property
    def peer_start(self) -> Ints:
        return self.marks.starts(kernels.PEER_START)

    @cached_property
    def stop(self) -> Ints:
        return self.marks.stops(of_peers=False)

    @cached_property
    def peer_stop(self) -> Ints:
        return self.marks.stops(of_peers=True)

    @cached_property
    def row_numbers(self) -> Ints:
        return self.marks.starts(kernels.NUMBER)

    @cached_property
    def ranks(self) -> Ints:
        return self.marks.starts(kernels.RANK)

    @cached_property
    def dense_ranks(self) -> Ints:
        return self.marks.starts(kernels.DENSE_RANK)

    def at_rows(self, column: Held) -> Held:
        if self.stays:
            return column
        if self.order is None or isinstance(column, Coded):
            return super().at_rows(column)
        found = scattered(self.marks.codes, column, self.order)
        return super().at_rows(column) if found is None else found

    def moved(self, away: Ints | np.int64) -> Ints:
        if not isinstance(away, np.int64):
            return super().moved(away)
        return moved(self.marks.codes, self.start if away < 0 else self.stop, int(away))

    def taken(self, held: Held, places: Ints) -> Held:
        if self.order is None:
            return super().taken(held, places)
        rows = rows_taken(self.marks.codes, places, self.order, UNMATCHED, self.stays)
        return pick_held_or_null(held, rows)

    def as_they_leave(self, held: Held) -> Held:
        return self.at_places(held) if self.stays else held

    def running(
        self, column: plc.Column, how: int, stops: Callable[[], Ints] | None
    ) -> plc.Column | None:
        found = self.marks.running(column, how)
        if found is None or stops is None:
            return found
        wide = col.cast(found, col.INT64) if found.type().id() == col.INT32.id() else found
        return col.cast(at_ends(self.marks.codes, wide, stops()), found.type())


@dataclass(frozen=True)
class DeviceRows:
    """The rows of a table in the order of a window."""

    table: Table
    places: DevicePlaces

    def integers(self, column: Column) -> tuple[Ints, Mask | None]:
        placed = self._placed(self.table[column])
        return as_array(col.without_nulls(col.cast(placed, col.INT64), 0)), _valid(placed)

    def known(self, column: Column) -> Mask | None:
        return _valid(self._placed(self.table[column]))

    def ordered(self, keys: tuple[SortKey, ...]) -> InnerOrder:
        rows = self.places.rows
        columns = [k.expr.column for k in keys if isinstance(k.expr, ColumnRef)]
        placed = [sortable(column_of_keys) for column_of_keys in sort_keys(self.table, columns)]
        placed = [self._placed(column) for column in placed]
        order = order_of(placed, [(k.descending, k.nulls_first) for k in keys])
        new = _changes([pick(column, order) for column in placed], rows)
        peers = column_of(np.cumsum(new) - 1)
        index = plc.Table([column_of(self.places.index), peers])
        ranks, of_rows = plc.copying.scatter(index, order, index).columns()
        return InnerOrder(as_array(ranks), as_array(of_rows), as_array(col.cast(order, col.INT64)))

    def comparable(self, key: Column, bound: Column) -> tuple[Ints, Ints, Mask]:
        images: list[Ints] = []
        known = as_array(col.constant(True, col.BOOL, self.places.rows))
        for column in (key, bound):
            placed = self._placed(self.table[column])
            valid = _valid(placed)
            known = known if valid is None else known & valid
            images.append(as_array(col.without_nulls(_image(placed), 0)))
        return images[0], images[1], known

    def _placed(self, column: plc.Column) -> plc.Column:
        return self.places.at_places(column)


def _valid(column: plc.Column) -> Mask | None:
    return as_array(plc.unary.is_valid(column)) if column.null_count() else None


def _image(column: plc.Column) -> plc.Column:
    """Return integers of 64 or 128 bits that compare as values do."""
    numbers = sortable(column)
    kind = numbers.type().id()
    if kind == plc.TypeId.DECIMAL128:
        return col.reinterpret(numbers, col.HUGE)
    return col.cast(numbers, col.HUGE if kind == plc.TypeId.UINT64 else col.INT64)


def pick_held_or_null(held: Held, rows: plc.Column) -> Held:
    """Return the values at row numbers, NULL for one that is out of bounds."""
    if isinstance(held, Coded):
        return Coded(pick(held.codes, rows, nullify=True), held.keys)
    return pick(held, rows, nullify=True)


def places_of(
    table: Table, partition: tuple[Column, ...], keys: tuple[Order, ...], stays: bool = False
) -> DevicePlaces:
    """Sort rows by a partition, in whatever order of partitions, and by keys; there are some.

    With `stays` they may come out in the order of the places.
    """
    columns = [*partition, *(key.column for key in keys)]
    if not columns:
        one = as_array(col.sequence(1, data_type=col.INT64))
        zeros = as_array(col.constant(0, col.INT64, table.num_rows))
        return DevicePlaces(table.num_rows, one, one, None, zeros, zeros)
    directions = [(False, False)] * len(partition)
    directions += [(key.descending, key.nulls_first) for key in keys]
    held = [sortable(key) for key in sort_keys(table, columns)]
    width = len(partition)
    order, keys_in_order, below = _sorted(held, directions, width)
    codes = codes_for(table.num_rows)
    if codes is not None:
        return MarkedPlaces(order, _marked(codes, keys_in_order, width, below), stays)
    parts = _parts(keys_in_order, width, below)
    new_partition, new_peers = (_changes(c, table.num_rows) for c in (parts, keys_in_order))
    heads = np.flatnonzero(new_partition), np.flatnonzero(new_peers)
    numbers = np.cumsum(new_partition) - 1, np.cumsum(new_peers) - 1
    return DevicePlaces(table.num_rows, *heads, order, *numbers)


def _sorted(
    keys: list[plc.Column], directions: list[Direction], width: int
) -> tuple[plc.Column | None, list[plc.Column], int | None]:
    """Return the order of rows, and in it the keys: each, or one number for all and how many of these a partition has."""
    one = packed(keys, directions)
    if one is not None:
        keys, directions = [one.numbers], [(False, False)]
    order = None if lie_in_order(keys, directions) else order_of(keys, directions)
    ordered = keys if order is None else [pick(key, order) for key in keys]
    return order, ordered, None if one is None or not width else one.below(width)


def _parts(ordered: list[plc.Column], width: int, below: int | None) -> list[plc.Column]:
    """Return columns of which each new value begins a partition."""
    if below is None:
        return ordered[:width]
    kind = ordered[0].type()
    return [col.binary(ordered[0], col.scalar(below, kind), Op.DIV, kind)]


def _marked(codes: Codes, ordered: list[plc.Column], width: int, below: int | None) -> WindowMarks:
    """Return the marks of ordered keys: by one kernel where a number holds all of them."""
    first = ordered[0]
    plain = first.type().id() in (col.INT32.id(), col.INT64.id()) and not first.null_count()
    if len(ordered) == 1 and plain:
        return changes(codes, first, width if below is None else below)
    rows = int(first.size())
    return marks_of(codes, *(column_of(_changes(c, rows)) for c in (ordered[:width], ordered)))


def _changes(ordered: Sequence[plc.Column], rows: int) -> Mask:
    """Return where a value differs from the one before in any of some columns; the first row begins."""
    changed = as_array(col.constant(False, col.BOOL, rows - 1))
    for column in ordered:
        last, here = (plc.copying.slice(column, [start, start + rows - 1])[0] for start in (0, 1))
        changed = changed | as_array(col.negate(col.binary(last, here, Op.NULL_EQUALS, col.BOOL)))
    return np.concatenate([FIRST, changed])
