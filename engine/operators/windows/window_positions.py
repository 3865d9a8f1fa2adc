"""Window functions of a row's place, and the places at which others find their values.

A call may have an ORDER BY of its own: it goes through the rows of a frame in the order of other keys than the window's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import InvalidQuery
from ...plan.window.window_call import WindowCall
from .frames import (
    Ints,
    Mask,
    Ranges,
    Values,
    WindowInput,
    WindowPlaces,
    argument,
    chosen_places,
    frame_of,
    numbers,
    places_before,
)
from .wavelet import count_below, nth_smallest

Numbered = tuple[Values, Mask | None]  # and where they are not NULL, None for everywhere


def row_number(call: WindowCall, rows: WindowInput) -> Numbered:
    return rows.places.row_numbers, None


def rank(call: WindowCall, rows: WindowInput) -> Numbered:
    return rows.places.ranks, None


def dense_rank(call: WindowCall, rows: WindowInput) -> Numbered:
    return rows.places.dense_ranks, None


def percent_rank(call: WindowCall, rows: WindowInput) -> Numbered:
    places = rows.places
    others = places.stop - places.start - 1
    return (places.peer_start - places.start) / np.maximum(others, 1), None


def cume_dist(call: WindowCall, rows: WindowInput) -> Numbered:
    places = rows.places
    return (places.peer_stop - places.start) / (places.stop - places.start), None


def ntile(call: WindowCall, rows: WindowInput) -> Numbered:
    places = rows.places
    return tile(call, rows, places.index - places.start, places.stop - places.start)


def tile(call: WindowCall, rows: WindowInput, number: Ints, size: Ints) -> Numbered:
    """The first `size % n` tiles have a row more than the others."""
    places = rows.places
    count, valid = numbers(call.args[0], rows)
    wrong = count <= 0 if valid is None else valid & (count <= 0)
    if places.rows and bool(np.any(wrong)):
        raise InvalidQuery("ntile() takes a number above zero.")
    count = np.maximum(count, 1)
    least = size // count
    larger = size - least * count
    of_larger = larger * (least + 1)
    found = np.where(
        number < of_larger,
        number // (least + 1),
        larger + np.maximum(number - of_larger, 0) // np.maximum(least, 1),
    )
    return found + 1, valid


NUMBERED: dict[str, Callable[[WindowCall, WindowInput], Numbered]] = {
    function.__name__: function
    for function in (row_number, rank, dense_rank, percent_rank, cume_dist, ntile)
}


def numbered(call: WindowCall, rows: WindowInput) -> Numbered:
    """Return the number of each row; with an ORDER BY of the call, among the rows of its frame."""
    return _numbered_in_order(call, rows) if call.order else NUMBERED[call.function](call, rows)


def _numbered_in_order(call: WindowCall, rows: WindowInput) -> Numbered:
    ranges = frame_of(call, rows)
    order = rows.ordered(call.order)
    ranks, peers = order.ranks, order.peers
    size = ranges.sizes
    if call.function == "row_number":
        return count_below(ranks, ranges, ranks) + 1, None
    if call.function == "ntile":
        return tile(call, rows, count_below(ranks, ranges, ranks), size)
    if call.function == "cume_dist":
        return count_below(peers, ranges, peers + 1) / np.maximum(size, 1), None
    before = count_below(peers, ranges, peers)
    if call.function == "rank":
        return before + 1, None
    return before / np.maximum(size - 1, 1), None


def shifted(call: WindowCall, rows: WindowInput) -> tuple[Ints, Mask]:
    """Return the place that LAG or LEAD reads for each place, -1 for none, and where there is the default instead.

    It is one of the partition, or with an ORDER BY of the call one of the frame.
    """
    places = rows.places
    away: Ints | np.int64 = np.int64(1)
    known: Mask | None = None
    if len(call.args) > 1:
        away, known = numbers(call.args[1], rows)
    away = np.clip(away, -places.rows, places.rows) * (-1 if call.function == "lag" else 1)
    if call.order:
        ranges, order = frame_of(call, rows), rows.ordered(call.order)
        number = count_below(order.ranks, ranges, order.ranks) + away
        found = _nth_in_order(order.ranks, order.places, ranges, number)
    elif call.ignore_nulls:
        found = _among_values(rows.known(argument(call)), places, away)
    else:
        found = places.moved(away)
    if known is None:
        return found, found < 0
    return np.where(known, found, -1), known & (found < 0)


def _among_values(valid: Mask | None, places: WindowPlaces, away: Ints | np.int64) -> Ints:
    """Return the place of the value so many values before or behind each row's, a row's own being none."""
    chosen = places.index >= 0 if valid is None else valid
    before = places_before(chosen)
    at = np.flatnonzero(chosen)
    own = np.where(away == 0, places.index, -1)
    if not len(at):
        return own
    first = np.where(away < 0, before[places.index] + away, before[places.index + 1] + away - 1)
    inside = (first >= before[places.start]) & (first < before[places.stop]) & (away != 0)
    return np.where(inside, at[np.where(inside, first, 0)], own)


def picked(call: WindowCall, rows: WindowInput) -> Ints:
    """Return the place in its frame that FIRST_VALUE, LAST_VALUE or NTH_VALUE reads for each place, -1 for none."""
    ranges = frame_of(call, rows)
    at, ranges = chosen_places(rows.known(argument(call)) if call.ignore_nulls else None, ranges)
    number: Ints = np.zeros_like(ranges.sizes)
    if call.function == "last_value":
        number = ranges.sizes - 1
    elif call.function == "nth_value":  # NULL for a number that is NULL or below one
        wanted, valid = numbers(call.args[1], rows)
        number = number + (wanted if valid is None else np.where(valid, wanted, 0)) - 1
    if call.order:
        order = rows.ordered(call.order)
        among = order.ranks if at is None else order.ranks[at]
        return _nth_in_order(among, order.places, ranges, number)
    found = ranges.nth(number)
    if at is None or not len(at):
        return found
    return np.where(found < 0, -1, at[np.maximum(found, 0)])


def _nth_in_order(ranks: Ints, places: Ints, ranges: Ranges, number: Ints) -> Ints:
    """Return the place of the row of this number, from 0 on, among the sorted rows of each frame, -1 for none."""
    there = (number >= 0) & (number < ranges.sizes)
    return np.where(there, places[np.where(there, nth_smallest(ranks, ranges, number), 0)], -1)
