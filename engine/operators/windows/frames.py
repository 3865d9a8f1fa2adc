"""Rows in the order of a window, and the frame of each row as ranges of places, by rows, groups of peers or values, less what EXCLUDE leaves out."""

from __future__ import annotations

import operator
from functools import cached_property, reduce
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import OutOfRange
from ...plan.expr import Column, ColumnRef, Expr, Literal, SortKey
from ...plan.window.window_call import Side, WindowCall
from ...plan.window.window_operator import WindowRows
from ...records import dataclass

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Values = npt.NDArray[Any]

BEYOND = 1 << 40  # more than there are places
LEAST_CUT = 1 << 12  # rows of which those that are wanted are taken before anything is computed


def rank_to_cut_at(node: WindowRows, rows: int) -> int | None:
    """Return the rank above which rows are left out; None for few rows, and where all are wanted."""
    return node.most_rank if rows > LEAST_CUT else None


@dataclass(frozen=True)
class WindowPlaces:
    """The places 0 to `rows` - 1 of the sorted rows.

    `heads` and `peer_heads` are the first places of partitions and of rows with equal keys, ascending.
    """

    rows: int
    heads: Ints
    peer_heads: Ints

    @cached_property
    def index(self) -> Ints:
        return np.arange(self.rows)

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
    def row_numbers(self) -> Ints:
        """The number of each place in its partition, from 1 on."""
        return self.index - self.start + 1

    @cached_property
    def ranks(self) -> Ints:
        """That of its first peer."""
        return self.peer_start - self.start + 1

    @cached_property
    def dense_ranks(self) -> Ints:
        """The number of its peers among all of the partition."""
        return self.peers - self.peers[self.start] + 1

    def moved(self, away: Ints | np.int64) -> Ints:
        """Return the place so many after each one, or before it, -1 beyond its partition."""
        there = self.index + away
        return np.where((there >= self.start) & (there < self.stop), there, -1)

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


@dataclass(frozen=True)
class InnerOrder:
    """Places in the order of a call's own keys: the rank of each, `peers` the same for equal keys, and the place of each rank."""

    ranks: Ints
    peers: Ints
    places: Ints


class WindowInput(Protocol):
    """What the functions of a window read of its rows, in the order of the window."""

    @property
    def places(self) -> WindowPlaces: ...

    def integers(self, column: Column) -> tuple[Ints, Mask | None]:
        """Return a BIGINT column, and where it is not NULL; None for everywhere."""
        ...

    def known(self, column: Column) -> Mask | None:
        """Return where a column is not NULL; None for everywhere."""
        ...

    def ordered(self, keys: tuple[SortKey, ...]) -> InnerOrder:
        """Return all places in the order of some columns; those with equal ones keep theirs."""
        ...

    def comparable(self, key: Column, bound: Column) -> tuple[Ints, Ints, Mask]:
        """Return two columns as integers that compare as they do, and where both are known."""
        ...


def numbers(expr: Expr, rows: WindowInput) -> tuple[Ints | np.int64, Mask | None]:
    """Return a BIGINT argument in the order of the window, as one number where it is constant."""
    if isinstance(expr, Literal):
        if expr.value is None:
            return np.int64(0), rows.places.index < 0
        assert isinstance(expr.value, int)
        return np.int64(expr.value), None
    assert isinstance(expr, ColumnRef)
    return rows.integers(expr.column)


def argument(call: WindowCall) -> Column:
    """Return the column whose values a function picks."""
    (first, *_) = call.args
    assert isinstance(first, ColumnRef)
    return first.column


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
