"""The frame of each row as ranges of places, by rows, groups of peers or values, less what EXCLUDE leaves out."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from ...errors import OutOfRange
from ...plan.expr import Column, ColumnRef, Expr
from ...plan.window.window_call import Side, WindowCall
from .window_places import BEYOND, Ints, Mask, WindowInput, WindowPlaces, numbers

NONE = np.zeros(1, bool)  # of the places before the first
FIRST = np.ones(1, bool)  # a row that has none before it


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
        differs = [bound[1:] != bound[:-1] for part in self.parts for bound in part]
        new = np.concatenate([FIRST, reduce(operator.or_, differs)])[: len(self)]
        chosen = np.flatnonzero(new)
        if len(chosen) * 4 > len(self) * 3:
            return self, None
        return self.at(chosen), np.cumsum(new) - 1

    def nth(self, number: Ints | np.int64) -> Ints:
        """Return the place of a number from 0 on in each row's ranges, -1 where there are not as many."""
        found = np.full_like(self.parts[0][0], -1)
        left = np.where(number < 0, BEYOND, number)
        for begin, end in self.parts:
            size = end - begin
            found = np.where((found < 0) & (left >= 0) & (left < size), begin + left, found)
            left = left - size
        return found


def places_before(chosen: Mask) -> Ints:
    """Return for each place, and the one behind the last, how many before it are chosen."""
    return np.cumsum(np.concatenate([NONE, chosen]))


def chosen_places(chosen: Mask | None, ranges: Ranges) -> tuple[Ints | None, Ranges]:
    """Return the chosen places, None for all, and the ranges among them."""
    if chosen is None:
        return None, ranges
    return np.flatnonzero(chosen), ranges.renumbered(places_before(chosen))


def frame_of(call: WindowCall, rows: WindowInput) -> Ranges:
    """Return the frame of each place."""
    frame, places = call.frame, rows.places
    keys = _RangeKeys(call, rows) if call.key is not None else None
    bounds = []
    for side, offset, is_end in ((frame.start, call.start, False), (frame.end, call.end, True)):
        if side == "unbounded preceding":
            bounds.append(places.start)
        elif side == "unbounded following":
            bounds.append(places.stop)
        elif frame.unit == "rows":
            bounds.append(_rows(side, offset, is_end, rows))
        elif side == "current row":
            bounds.append(places.peer_stop if is_end else places.peer_start)
        elif keys is not None:
            assert offset is not None
            bounds.append(keys.bound(offset, side, is_end))
        else:
            bounds.append(_groups(side, offset, is_end, rows))
    begin, end = bounds
    return _excluding(begin, np.maximum(begin, end), call, places)


def _rows(side: Side, offset: Expr | None, is_end: bool, rows: WindowInput) -> Ints:
    places = rows.places
    last = 1 if is_end else 0
    if side == "current row":
        return places.index + last
    away = _offset(offset, "ROWS", rows)
    moved = places.index - away if side == "preceding" else places.index + away
    return np.clip(moved + last, places.start, places.stop)


def _groups(side: Side, offset: Expr | None, is_end: bool, rows: WindowInput) -> Ints:
    places = rows.places
    away = _offset(offset, "GROUPS", rows)
    group = places.peers - away if side == "preceding" else places.peers + away
    first = places.peers[places.start] if places.rows else places.peers
    last = places.peers[places.stop - 1] if places.rows else places.peers
    inside = np.clip(group, first, last)
    found = places.peer_heads[inside]
    if is_end:
        found = found + places.peer_sizes[inside]
    return np.where(group < first, places.start, np.where(group > last, places.stop, found))


def _offset(expr: Expr | None, unit: str, rows: WindowInput) -> Ints | np.int64:
    """Return how many rows or groups a bound is away, at most as many as there are."""
    assert expr is not None
    away, valid = numbers(expr, rows)
    count = rows.places.rows
    if count and valid is not None and not valid.all():
        raise OutOfRange(f"The bound of a {unit} frame is NULL.", expr.span)
    if count and int(away.min()) < 0:
        raise OutOfRange(f"The bound of a {unit} frame is negative.", expr.span)
    return np.minimum(away, count)


class _RangeKeys:
    """The order key and bounds as integers that compare as they do, in the direction of the order."""

    def __init__(self, call: WindowCall, rows: WindowInput) -> None:
        assert isinstance(call.key, ColumnRef)
        self.rows, self.places, self.call = rows, rows.places, call
        self.key = call.key.column
        self.valid = rows.known(self.key)

    def bound(self, offset: Expr, side: Side, is_end: bool) -> Ints:
        assert isinstance(offset, ColumnRef)
        places = self.places
        if not places.rows:
            return places.index
        values, limits, known = self._integers(offset.column)
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

    def _integers(self, bound: Column) -> tuple[Ints, Ints, Mask]:
        """Return key and bound of each place in the direction of the order, and where both are known."""
        values, limits, known = self.rows.comparable(self.key, bound)
        return (~values, ~limits, known) if self.call.descending else (values, limits, known)


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
