"""Window functions with an ORDER BY of their own: places in the order of a frame's rows by other keys than the window's."""

from __future__ import annotations

import numpy as np

from ...plan.window.window_call import WindowCall
from .frames import chosen_places, frame_of
from .wavelet import count_below, nth_smallest
from .window_places import Ints, Mask, WindowInput, argument, numbers
from .window_positions import Numbered, tile


def numbered_in_order(call: WindowCall, rows: WindowInput) -> Numbered:
    """Return a number of each row among the rows of its frame."""
    ranges = frame_of(call, rows)
    order = rows.ordered(call.order)
    ranks, peers = order.ranks, order.peers
    size = ranges.sizes
    if call.function == "row_number":
        return count_below(ranks, ranges, ranks) + 1, None
    if call.function == "ntile":
        return tile(call, rows, count_below(ranks, ranges, ranks), size)
    if call.function == "cume_dist":
        share = count_below(peers, ranges, peers + 1) / np.maximum(size, 1)
        return share, None
    before = count_below(peers, ranges, peers)
    if call.function == "rank":
        return before + 1, None
    return before / np.maximum(size - 1, 1), None


def shifted_in_order(call: WindowCall, rows: WindowInput) -> tuple[Ints, Mask]:
    """Return the place that LAG or LEAD reads in the order of each frame, -1 for none, and where there is the default instead."""
    places, ranges = rows.places, frame_of(call, rows)
    order = rows.ordered(call.order)
    away: Ints | np.int64 = np.int64(1)
    known: Mask | None = None
    if len(call.args) > 1:
        away, known = numbers(call.args[1], rows)
    away = np.clip(away, -places.rows, places.rows) * (-1 if call.function == "lag" else 1)
    number = count_below(order.ranks, ranges, order.ranks) + away
    there = (number >= 0) & (number < ranges.sizes)
    found = np.where(
        there, order.places[_inside(nth_smallest(order.ranks, ranges, number), there)], -1
    )
    if known is None:
        return found, found < 0
    return np.where(known, found, -1), known & (found < 0)


def picked_in_order(call: WindowCall, rows: WindowInput) -> Ints:
    """Return the place that FIRST_VALUE, LAST_VALUE or NTH_VALUE reads in the order of each frame, -1 for none."""
    order = rows.ordered(call.order)
    ranges = frame_of(call, rows)
    chosen, ranges = chosen_places(
        rows.known(argument(call)) if call.ignore_nulls else None, ranges
    )
    number: Ints = np.zeros_like(ranges.sizes)
    if call.function == "last_value":
        number = ranges.sizes - 1
    elif call.function == "nth_value":
        wanted, valid = numbers(call.args[1], rows)
        number = number + (wanted - 1 if valid is None else np.where(valid, wanted, 0) - 1)
    there = (number >= 0) & (number < ranges.sizes)
    among = order.ranks if chosen is None else order.ranks[chosen]
    return np.where(there, order.places[_inside(nth_smallest(among, ranges, number), there)], -1)


def _inside(found: Ints, there: Mask) -> Ints:
    return np.where(there, found, 0)
