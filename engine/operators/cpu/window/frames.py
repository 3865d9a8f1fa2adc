"""The frame of each row as ranges of places, by rows, groups of peers or values, less what EXCLUDE leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....errors import OutOfRange
from ....plan.expr import ColumnRef, Expr, Literal
from ....plan.window.window_call import Side, WindowCall
from ..sort.keys import Ints, ordered_images
from ..table import Mask, Table, concat_arrays, to_numpy, validity
from .places import WindowPlaces


@dataclass(frozen=True)
class Ranges:
    """For each of some rows the places `begin` to `end` of each part; parts follow one another and do not overlap."""

    parts: tuple[tuple[Ints, Ints], ...]

    def __len__(self) -> int:
        return len(self.parts[0][0])

    @cached_property
    def sizes(self) -> Ints:
        total = self.parts[0][1] - self.parts[0][0]
        for begin, end in self.parts[1:]:
            total = total + (end - begin)
        return total

    def renumbered(self, before: Ints) -> Ranges:
        """Return the ranges among some of the places, of which `before[p]` lie before place p."""
        return Ranges(tuple((before[begin], before[end]) for begin, end in self.parts))

    def at(self, chosen: Ints | slice | Mask) -> Ranges:
        return Ranges(tuple((begin[chosen], end[chosen]) for begin, end in self.parts))

    def distinct(self) -> tuple[Ranges, Ints | None]:
        """Return ranges without those that are the same as of the row before, and which of them each row has, None for its own."""
        new = np.zeros(len(self), bool)
        new[:1] = True
        for begin, end in self.parts:
            new[1:] |= (begin[1:] != begin[:-1]) | (end[1:] != end[:-1])
        chosen = np.flatnonzero(new)
        if len(chosen) * 4 > len(self) * 3:
            return self, None
        return self.at(chosen), np.cumsum(new) - 1

    def nth(self, number: Ints | np.int64 | int) -> Ints:
        """Return the place of a number from 0 on in each row's ranges, -1 where there are not as many."""
        found = np.full(len(self), -1, np.int64)
        left = np.broadcast_to(np.asarray(number, np.int64), len(self)).copy()
        left[left < 0] = np.iinfo(np.int64).max  # which no range has
        for begin, end in self.parts:
            size = end - begin
            hit = (found < 0) & (left < size)
            found[hit] = begin[hit] + left[hit]
            left -= size
        return found


def places_before(chosen: Mask) -> Ints:
    """Return for each place, and the one behind the last, how many before it are chosen."""
    before = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(chosen, out=before[1:])
    return before


def numbers(expr: Expr, table: Table, places: WindowPlaces) -> tuple[Ints | np.int64, Mask | None]:
    """Return a BIGINT argument in the order of the window, as one number where it is constant."""
    if isinstance(expr, Literal):
        if expr.value is None:
            return np.int64(0), np.zeros(places.rows, bool)
        assert isinstance(expr.value, int)
        return np.int64(expr.value), None
    assert isinstance(expr, ColumnRef)
    array = table[expr.column]
    valid = validity(array)
    return places.at_places(to_numpy(array)), None if valid is None else places.at_places(valid)


def frame_of(call: WindowCall, table: Table, places: WindowPlaces) -> Ranges:
    """Return the frame of each place."""
    frame = call.frame
    keys = _RangeKeys(call, table, places) if call.key is not None else None
    bounds = []
    for side, offset, is_end in ((frame.start, call.start, False), (frame.end, call.end, True)):
        if side == "unbounded preceding":
            bounds.append(places.start)
        elif side == "unbounded following":
            bounds.append(places.stop)
        elif frame.unit == "rows":
            bounds.append(_rows(side, offset, is_end, table, places))
        elif side == "current row":
            bounds.append(places.peer_stop if is_end else places.peer_start)
        elif keys is not None:
            assert offset is not None
            bounds.append(keys.bound(offset, side, is_end))
        else:
            bounds.append(_groups(side, offset, is_end, table, places))
    begin, end = bounds
    return _excluding(begin, np.maximum(begin, end), call, places)


def _rows(
    side: Side, offset: Expr | None, is_end: bool, table: Table, places: WindowPlaces
) -> Ints:
    last = 1 if is_end else 0
    if side == "current row":
        return places.index + last
    away = _offset(offset, "ROWS", table, places)
    moved = places.index - away if side == "preceding" else places.index + away
    return np.clip(moved + last, places.start, places.stop)


def _groups(
    side: Side, offset: Expr | None, is_end: bool, table: Table, places: WindowPlaces
) -> Ints:
    away = _offset(offset, "GROUPS", table, places)
    group = places.peers - away if side == "preceding" else places.peers + away
    first = places.peers[places.start] if places.rows else places.peers
    last = places.peers[places.stop - 1] if places.rows else places.peers
    inside = np.clip(group, first, last)
    found = places.peer_heads[inside]
    if is_end:
        found = found + places.peer_sizes[inside]
    return np.where(group < first, places.start, np.where(group > last, places.stop, found))


def _offset(expr: Expr | None, unit: str, table: Table, places: WindowPlaces) -> Ints | np.int64:
    """Return how many rows or groups a bound is away, at most as many as there are."""
    assert expr is not None
    away, valid = numbers(expr, table, places)
    if places.rows and valid is not None and not valid.all():
        raise OutOfRange(f"The bound of a {unit} frame is NULL.", expr.span)
    if places.rows and int(np.min(away)) < 0:
        raise OutOfRange(f"The bound of a {unit} frame is negative.", expr.span)
    return np.minimum(away, places.rows)


class _RangeKeys:
    """The order key and bounds as integers that compare as they do, in the direction of the order."""

    def __init__(self, call: WindowCall, table: Table, places: WindowPlaces) -> None:
        assert isinstance(call.key, ColumnRef)
        self.table, self.places, self.call = table, places, call
        self.key = table[call.key.column]
        valid = validity(self.key)
        self.valid = None if valid is None else places.at_places(valid)

    def bound(self, offset: Expr, side: Side, is_end: bool) -> Ints:
        assert isinstance(offset, ColumnRef)
        places = self.places
        if not places.rows:
            return places.index
        values, limits, known = self._integers(offset)
        wrong = limits > values if side == "preceding" else limits < values
        if bool((wrong & known).any()):
            raise OutOfRange(f"The bound of a RANGE frame is not {side.upper()}.", offset.span)
        low, high = self._valid_places()
        steps = int((high - low).max()).bit_length()
        for _ in range(steps):
            open_ = low < high
            middle = (low + high) >> 1
            there = values[np.minimum(middle, places.rows - 1)]
            goes_on = open_ & ((there <= limits) if is_end else (there < limits))
            low = np.where(goes_on, middle + 1, low)
            high = np.where(open_ & ~goes_on, middle, high)
        peers = places.peer_stop if is_end else places.peer_start
        return np.where(known, low, peers)  # rows without a key are a frame of their own

    def _valid_places(self) -> tuple[Ints, Ints]:
        """Return where the rows with a key begin and end in each place's partition."""
        places = self.places
        if self.valid is None:
            return places.start, places.stop
        before = places_before(self.valid)
        count = before[places.stop] - before[places.start]
        first = np.where(self.valid[places.start], places.start, places.stop - count)
        return first, first + count

    def _integers(self, offset: ColumnRef) -> tuple[Ints, Ints, Mask]:
        """Return key and bound of each place, and where both are known."""
        bound = self.table[offset.column]
        both = concat_arrays([self.key, bound])
        images = ordered_images(both)
        if len(images) == 1:
            combined = images[0].values
        else:
            combined = _ranks(images[0].values, images[1].values)
        if self.call.descending:
            combined = ~combined
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


def _excluding(begin: Ints, end: Ints, call: WindowCall, places: WindowPlaces) -> Ranges:
    exclude = call.frame.exclude
    if exclude == "no others":
        return Ranges(((begin, end),))

    def within(place: Ints) -> Ints:
        return np.clip(place, begin, end)

    index = places.index
    if exclude == "current row":
        return Ranges(((begin, within(index)), (within(index + 1), end)))
    around = (begin, within(places.peer_start)), (within(places.peer_stop), end)
    if exclude == "group":
        return Ranges(around)
    itself = within(index), within(index + 1)
    return Ranges((around[0], itself, around[1]))
