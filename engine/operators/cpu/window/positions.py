"""Window functions of a row's place in its partition, and of the values at places near it or of its frame."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....errors import InvalidQuery
from ....plan.expr import ColumnRef
from ....plan.window.window_call import WindowCall
from ..sort.keys import Ints
from ..table import Mask, Table, decode, from_numpy, validity
from .folds import chosen_places
from .frames import frame_of, numbers, places_before
from .places import WindowPlaces

Position = Callable[[WindowCall, Table, WindowPlaces], pa.Array]


def row_number(call: WindowCall, table: Table, places: WindowPlaces) -> pa.Array:
    return _ints(places.index - places.start + 1, places)


def rank(call: WindowCall, table: Table, places: WindowPlaces) -> pa.Array:
    return _ints(places.peer_start - places.start + 1, places)


def dense_rank(call: WindowCall, table: Table, places: WindowPlaces) -> pa.Array:
    return _ints(places.peers - places.peers[places.start] + 1, places)


def percent_rank(call: WindowCall, table: Table, places: WindowPlaces) -> pa.Array:
    others = places.stop - places.start - 1
    ranks = (places.peer_start - places.start) / np.maximum(others, 1)
    return from_numpy(places.at_rows(ranks))


def cume_dist(call: WindowCall, table: Table, places: WindowPlaces) -> pa.Array:
    shares = (places.peer_stop - places.start) / np.maximum(places.stop - places.start, 1)
    return from_numpy(places.at_rows(shares))


def ntile(call: WindowCall, table: Table, places: WindowPlaces) -> pa.Array:
    """The first `size % n` tiles have a row more than the others."""
    count, valid = numbers(call.args[0], table, places)
    known = np.ones(places.rows, bool) if valid is None else valid
    if bool((known & (count <= 0)).any()):
        raise InvalidQuery("ntile() takes a number above zero.")
    count = np.maximum(count, 1)
    number = places.index - places.start
    least, larger = np.divmod(places.stop - places.start, count)
    of_larger = larger * (least + 1)
    tile = np.where(
        number < of_larger,
        number // (least + 1),
        larger + (number - of_larger) // np.maximum(least, 1),
    )
    return _ints(tile + 1, places, valid)


def lag(call: WindowCall, table: Table, places: WindowPlaces) -> pa.Array:
    return _shifted(call, table, places, -1)


def lead(call: WindowCall, table: Table, places: WindowPlaces) -> pa.Array:
    return _shifted(call, table, places, 1)


def _shifted(call: WindowCall, table: Table, places: WindowPlaces, direction: int) -> pa.Array:
    array = _argument(call, table)
    away: Ints | np.int64 = np.int64(1)
    known: Mask | None = None
    if len(call.args) > 1:
        away, known = numbers(call.args[1], table, places)
    away = np.clip(away, -places.rows, places.rows) * direction
    if call.ignore_nulls:
        found = _among_values(array, places, away)
    else:
        there = places.index + away
        found = np.where((there >= places.start) & (there < places.stop), there, -1)
    if known is not None:
        found = np.where(known, found, -1)
    taken = places.take(array, found)
    default = call.args[2] if len(call.args) > 2 else None
    if not isinstance(default, ColumnRef):
        return taken
    outside = found < 0 if known is None else known & (found < 0)
    if not outside.any():
        return taken
    mask = pa.array(places.at_rows(outside))
    return pc.if_else(mask, decode(table[default.column]), decode(taken))


def _among_values(array: pa.Array, places: WindowPlaces, away: Ints | np.int64) -> Ints:
    """Return the place of the value so many values before or behind each row's, a row's own being none."""
    valid = validity(array)
    chosen = np.ones(places.rows, bool) if valid is None else places.at_places(valid)
    before = places_before(chosen)
    at = np.flatnonzero(chosen)
    first = np.where(away < 0, before[places.index] + away, before[places.index + 1] + away - 1)
    inside = (first >= before[places.start]) & (first < before[places.stop])
    inside &= away != 0
    found = np.full(places.rows, -1, np.int64)
    found[inside] = at[first[inside]]
    return np.where(away == 0, places.index, found)


def first_value(call: WindowCall, table: Table, places: WindowPlaces) -> pa.Array:
    return _of_frame(call, table, places, lambda sizes: np.int64(0))


def last_value(call: WindowCall, table: Table, places: WindowPlaces) -> pa.Array:
    return _of_frame(call, table, places, lambda sizes: sizes - 1)


def nth_value(call: WindowCall, table: Table, places: WindowPlaces) -> pa.Array:
    """NULL for a number that is NULL or below one."""
    number, valid = numbers(call.args[1], table, places)
    if valid is not None:
        number = np.where(valid, number, 0)
    return _of_frame(call, table, places, lambda sizes: np.maximum(number, 0) - 1)


def _of_frame(
    call: WindowCall, table: Table, places: WindowPlaces, number: Callable[[Ints], Ints | np.int64]
) -> pa.Array:
    array = _argument(call, table)
    ranges = frame_of(call, table, places)
    chosen = None
    if call.ignore_nulls:
        valid = validity(array)
        chosen = None if valid is None else places.at_places(valid)
    at, ranges = chosen_places(chosen, ranges)
    wanted = number(ranges.sizes)
    found = ranges.nth(np.where(wanted < 0, -1, wanted))
    if at is not None:
        found = np.where(found < 0, -1, at[found] if len(at) else -1)
    return places.take(array, found)


def _argument(call: WindowCall, table: Table) -> pa.Array:
    (first, *_) = call.args
    assert isinstance(first, ColumnRef)
    return table[first.column]


def _ints(values: Ints, places: WindowPlaces, valid: Mask | None = None) -> pa.Array:
    known = None if valid is None else places.at_rows(valid)
    return from_numpy(places.at_rows(values), known)


POSITIONS: dict[str, Position] = {
    function.__name__: function
    for function in (
        row_number,
        rank,
        dense_rank,
        percent_rank,
        cume_dist,
        ntile,
        lag,
        lead,
        first_value,
        last_value,
        nth_value,
    )
}
