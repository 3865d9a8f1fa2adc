"""Window functions over rows that are sorted once; results go back to where the rows came from.

Aggregates over frames are folds of ranges where the function allows, else over the rows of each frame one after the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .... import stopping
from ....errors import Located
from ....plan.arrow.arrow_arrays import from_numpy
from ....plan.expr import Column, ColumnRef, columns_of
from ....plan.physical import Order
from ....plan.window.window_call import WindowCall
from ....plan.window.window_operator import WindowRows
from ....records import dataclass
from ...context import Context
from ...windows.frames import Ranges, argument, chosen_places, frame_of, rank_to_cut_at
from ...windows.wavelet import added, count_below, finished, moments_of_rows, nth_smallest
from ...windows.window_positions import NUMBERED, numbered, picked, shifted
from .. import table as tables
from ..aggregate import aggregate_sums as sums, aggregate_values as values
from ..aggregate.aggregate import aggregate_groups
from ..aggregate.aggregate_order import continuous, discrete
from ..aggregate.groups import Groups, Sums
from ..aggregate.selected_places import Ordered
from ..memory.ask_memory import BYTES_A_CODE, CODES_A_ROW, ask_window, row_bytes
from ..sort.keys import Ints, group_codes
from ..sort.ordering import stable_order
from ..sort.sort import SortColumn, leading_digit, sorted_order
from ..table import (
    Indices,
    Mask,
    Table,
    concat_arrays,
    decimal_limbs,
    decode,
    take_array,
    to_numpy,
    validity,
)
from .folds import FrameGroups, folded
from .places import HostPlaces, HostRows, places_of

MOST_PAIRS = 1 << 20  # of a frame and a row of it that are looked at together

Ask = Callable[[int], None]
Fold = Callable[[WindowCall, list[pa.Array], FrameGroups], pa.Array]


def aggregate_frames(call: WindowCall, input_rows: HostRows, ask: Ask) -> pa.Array:
    """Return an aggregate over the frame of each row, in the order of the input's rows."""
    table, places = input_rows.table, input_rows.places
    chosen: Mask | None = None
    if isinstance(call.filter, ColumnRef):
        condition = table[call.filter.column]
        valid = validity(condition)
        passed = to_numpy(condition)
        chosen = places.at_places(passed if valid is None else passed & valid)
    ranges = frame_of(call, input_rows)
    if (
        call.distinct
        and call.frame.start == "unbounded preceding"
        and call.frame.exclude == "no others"
    ):
        chosen = _first_of_equal(call, table, places, chosen)
        call = dataclasses.replace(call, distinct=False)
    at, ranges = chosen_places(chosen, ranges)
    rows = places.numbers if at is None else places.numbers[at]
    frames, owner = ranges.distinct()
    fold = None if call.order else FOLDS.get(call.function)
    if call.distinct:
        fold = _distinct_count if call.function == "count" and len(frames.parts) == 1 else None
    if not places.rows:
        found = _grouped(call, table, rows, Ranges(((rows, rows),)))[:0]
    elif fold is None:
        found = concat_arrays(list(_one_by_one(call, table, rows, frames, ask)))
    else:
        stopping.check()
        args = [take_array(table[a.column], rows) for a in call.args if isinstance(a, ColumnRef)]
        found = fold(call, args, FrameGroups(frames, len(rows)))
    if owner is None and places.order is None:
        return found
    return take_array(found, places.at_rows(places.index if owner is None else owner))


def _first_of_equal(
    call: WindowCall, table: Table, places: HostPlaces, chosen: Mask | None
) -> Mask:
    """Return the first rows with their values in each partition: all that DISTINCT leaves of frames that begin with the partition."""
    rows = places.index if chosen is None else np.flatnonzero(chosen)
    args = [
        take_array(table[a.column], places.numbers[rows])
        for a in call.args
        if isinstance(a, ColumnRef)
    ]
    earlier = _earlier_equal([from_numpy(places.start[rows]), *args])
    first = np.zeros(places.rows, bool)
    first[rows[earlier < 0]] = True
    return first


def _earlier_equal(arrays: list[pa.Array]) -> Ints:
    """Return the last row before each that is equal to it, -1 where there is none."""
    codes, size = group_codes(arrays)
    order = stable_order(codes, size)
    same = np.zeros(len(order), bool)
    same[1:] = codes[order][1:] == codes[order][:-1]
    earlier = np.full(len(order), -1, np.int64)
    earlier[order[1:][same[1:]]] = order[:-1][same[1:]]
    return earlier


def _one_by_one(
    call: WindowCall, table: Table, rows: Ints, frames: Ranges, ask: Ask
) -> Iterator[pa.Array]:
    """Aggregate the rows of each frame, those of several frames together."""
    ends = np.cumsum(frames.sizes)
    row = row_bytes(table, columns_of(call)) + BYTES_A_CODE * CODES_A_ROW
    start = 0
    while start < len(frames):
        stopping.check()
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + MOST_PAIRS, "right")))
        ask(int((ends[stop - 1] - done) * row))
        yield _grouped(call, table, rows, frames.at(slice(start, stop)))
        start = stop


def _grouped(call: WindowCall, table: Table, rows: Ints, frames: Ranges) -> pa.Array:
    count = len(frames)
    begin = np.stack([b for b, _ in frames.parts], axis=1).ravel()
    sizes = np.stack([e - b for b, e in frames.parts], axis=1).ravel()
    first = np.cumsum(sizes) - sizes
    pairs = np.repeat(begin - first, sizes) + np.arange(int(sizes.sum()))
    codes = np.repeat(np.arange(count), frames.sizes)
    members = rows[pairs]
    group_call = dataclasses.replace(call.aggregate, filter=None)
    read: set[Column] = {
        e.column for e in (*call.args, *(k.expr for k in call.order)) if isinstance(e, ColumnRef)
    }
    arrays = {c.id: take_array(table[c], members) for c in read}
    groups = Groups(codes, max(count, 1), len(members))
    return aggregate_groups(group_call, Table(arrays, len(members)), groups)


# Folds


def _distinct_count(call: WindowCall, args: list[pa.Array], frames: FrameGroups) -> pa.Array:
    """Count the values whose last equal lies before the frame; it does not matter whether in this partition."""
    valid = validity(args[0])
    at, ranges = chosen_places(valid, frames.ranges)
    array = args[0] if at is None else take_array(args[0], at)
    ((begin, _),) = ranges.parts
    counts = count_below(_earlier_equal([array]) + 1, ranges, begin + 1)
    return from_numpy(counts)


@dataclass(frozen=True)
class _FrameOrder:
    """The rows of frames in the order of their values."""

    ranges: Ranges
    ranks: Ints
    order: Ints

    @property
    def sizes(self) -> Ints:
        return self.ranges.sizes

    def rows_at(self, places: Ints) -> Ints:
        found = nth_smallest(self.ranks, self.ranges, places)
        return np.where(
            self.sizes > 0, np.append(self.order, -1)[np.minimum(found, len(self.order))], -1
        )


def _quantile(compute: Callable[[pa.Array, Ordered, float], pa.Array]) -> Fold:
    def fold(call: WindowCall, args: list[pa.Array], frames: FrameGroups) -> pa.Array:
        (array,) = args
        at, ranges = chosen_places(validity(array), frames.ranges)
        known = array if at is None else take_array(array, at)
        order = sorted_order([SortColumn(known)]) if len(known) else np.zeros(0, np.int64)
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        return compute(known, _FrameOrder(ranges, ranks, order), call.aggregate.fraction)

    return fold


def _as_groups(compute: Callable[..., pa.Array]) -> Fold:
    return lambda call, args, frames: compute(call.aggregate, args, frames)


def _extreme(call: WindowCall, args: list[pa.Array], frames: FrameGroups) -> pa.Array:
    (array,) = args
    if values.is_plain_integer(array.type):
        return values.extreme(call.aggregate, args, frames)  # type: ignore[arg-type]
    numbers = _unscaled(array)
    if numbers is not None:
        found = values.extreme(call.aggregate, [numbers], frames)  # type: ignore[arg-type]
        return from_numpy(Sums(to_numpy(found)).limbs(), validity(found), array.type)
    return _best(array, array, frames, call.function == "max")


def _unscaled(array: pa.Array) -> pa.Array | None:
    """Return decimals as integers of 64 bits, None where one does not fit.

    TPC-DS Q51, two running maxima of 610,000 sums, takes 345 ms of CPU time so, and 408 by their ranks.
    """
    if not pa.types.is_decimal128(array.type):
        return None
    valid, (low, high) = validity(array), decimal_limbs(array).T
    fits = high == low >> 63
    return (
        from_numpy(low, valid) if bool((fits if valid is None else fits | ~valid).all()) else None
    )


def _at_extreme(call: WindowCall, args: list[pa.Array], frames: FrameGroups) -> pa.Array:
    value, key = args
    return _best(value, key, frames, call.function == "arg_max")


def _best(value: pa.Array, key: pa.Array, frames: FrameGroups, largest: bool) -> pa.Array:
    """Return the value in the first row of each frame with the extreme key, of the rows that have both."""
    order = sorted_order([SortColumn(key, largest)])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    none = len(order)
    for array in (value, key):
        valid = validity(array)
        if valid is not None:
            ranks[~valid] = none
    best = frames.reduce(np.minimum, ranks, none)
    rows = np.where(best < none, np.append(order, 0)[best], -1)
    return take_array(value, rows)


def _first_known(call: WindowCall, args: list[pa.Array], frames: FrameGroups) -> pa.Array:
    (array,) = args
    at, ranges = chosen_places(validity(array), frames.ranges)
    found = ranges.nth(np.int64(0))
    return take_array(
        array, found if at is None or not len(at) else np.where(found < 0, -1, at[found])
    )


def _moments(call: WindowCall, args: list[pa.Array], frames: FrameGroups) -> pa.Array:
    columns = [sums.floats_of(a) for a in args]
    known = np.ones(frames.rows, bool)
    for _, valid in columns:
        if valid is not None:
            known &= valid
    with np.errstate(all="ignore"):
        state = moments_of_rows([x for x, _ in columns], known)
        empty = tuple(np.zeros(frames.count) for _ in state)
        return from_numpy(*finished(call.function, folded(state, added, frames.ranges, empty)))


FOLDS: dict[str, Fold] = {
    "count_star": _as_groups(values.count_star),
    "count": _as_groups(values.count),
    "sum": _as_groups(sums.sum_of),
    "avg": _as_groups(sums.avg),
    "product": _as_groups(sums.product),
    "bit_and": _as_groups(values.bits),
    "bit_or": _as_groups(values.bits),
    "bit_xor": _as_groups(values.bits),
    "min": _extreme,
    "max": _extreme,
    "arg_min": _at_extreme,
    "arg_max": _at_extreme,
    "any_value": _first_known,
    "quantile_cont": _quantile(continuous),
    "quantile_disc": _quantile(discrete),
    "var_samp": _moments,
    "var_pop": _moments,
    "stddev_samp": _moments,
    "stddev_pop": _moments,
    "covar_samp": _moments,
    "covar_pop": _moments,
    "corr": _moments,
}


def window_rows(node: WindowRows, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    ask_window(node, table, context)
    most = rank_to_cut_at(node, table.num_rows)
    if most is not None:
        among = rows_up_to_rank(table, node.partition, node.order, most)
        table = table if among is None else tables.take(table, among)
    places = places_of(table, node.partition, node.order)
    if most is not None:
        table = tables.take(table, places.up_to_rank(most))
        places = places_of(table, node.partition, node.order)
    rows = HostRows(table, places)
    arrays = {c.id: table[c] for c in node.passed}
    for column, call in node.calls:
        context.check()
        with Located(call.span):
            if call.is_aggregate:
                ask = partial(context.ask, node)
                arrays[column.id] = aggregate_frames(call, rows, ask)
            else:
                arrays[column.id] = position(call, rows)
    return Table(arrays, table.num_rows)


SUBSETS = 4  # of a partition's rows, for each row that is wanted of it
LEAST_SUBSET = 2  # for each subset, below which sorting them takes as long


def rows_up_to_rank(
    table: Table, partition: tuple[Column, ...], keys: tuple[Order, ...], most: int
) -> Indices | None:
    """Return rows, ascending, among which are all up to a rank in their partitions; None where sorting all takes as long.

    The rows of a partition lie in several subsets, by their number.  Of the least values of the subsets, each of another row, the `most`-th
    is a bound: what comes after it has as many rows before it.  Two rows of each of 10,000 partitions of a million rows take 40 % of the time
    of a sort; `SUBSETS` = inf switches it off.
    """
    rows = table.num_rows
    codes, size = group_codes([table[c] for c in partition]) if partition else (None, 1)
    subsets = SUBSETS * most
    if not keys or size * subsets * LEAST_SUBSET > rows:
        return None
    values = _leading(table, keys[0])
    places = np.arange(rows) % subsets
    if codes is not None:
        places += codes * subsets
    least = np.full(size * subsets, np.iinfo(np.int64).max)
    np.minimum.at(least, places, values)
    bounds = np.partition(least.reshape(size, subsets), most - 1, axis=1)[:, most - 1]
    return np.flatnonzero(values <= (bounds[0] if codes is None else bounds[codes]))


def _leading(table: Table, key: Order) -> Ints:
    column = SortColumn(table[key.column], key.descending, key.nulls_first)
    return leading_digit(column)[0]


def position(call: WindowCall, rows: HostRows) -> pa.Array:
    """Return a function of `functions.WINDOW` of each row, in the order of the input's rows."""
    places, table = rows.places, rows.table
    if call.function in NUMBERED:
        values, valid = numbered(call, rows)
        return from_numpy(places.at_rows(values), None if valid is None else places.at_rows(valid))
    array = table[argument(call)]
    if call.function not in ("lag", "lead"):
        return places.take(array, picked(call, rows))
    found, outside = shifted(call, rows)
    taken = places.take(array, found)
    default = call.args[2] if len(call.args) > 2 else None
    if not isinstance(default, ColumnRef) or not outside.any():
        return taken
    mask = from_numpy(places.at_rows(outside))
    return pc.if_else(mask, decode(table[default.column]), decode(taken))
