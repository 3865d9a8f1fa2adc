"""Aggregates that look at all values of a group together: quantiles and what is made of them, the mode, entropy, joined strings."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....errors import OutOfRange
from ....plan.arrow.arrow_arrays import from_numpy, scalar_from
from ....plan.expr import AggregateCall, Literal
from ....plan.types import DOUBLE
from ....storage.columns.encodings import Array
from .. import table as tables
from ..functions import interval_records
from ..nested_arrays import list_array
from ..sort.keys import group_codes
from .groups import Groups
from .selected_places import Ordered, ordered_places


def string_agg(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    """Values in the order of the rows, NULLs left out; NULL for a group without values."""
    rows, members = _valid_rows(args[0], groups)
    separator = call.args[1]
    assert isinstance(separator, Literal)
    if separator.value is None:
        return pa.nulls(groups.count, pa.string())
    order = members.order()
    strings = tables.decode(tables.take_array(args[0], rows[order])).cast(pa.large_string())
    ends = np.cumsum(members.sizes)
    lists = pa.LargeListArray.from_arrays(from_numpy(np.concatenate([[0], ends])), strings)
    joined = pc.binary_join(lists, scalar_from(str(separator.value), pa.large_string()))
    return pc.if_else(from_numpy(members.sizes > 0), joined, scalar_from(None, joined.type))


def collected(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    """All values of a group as a list, in the order of the rows; NULL for a group without rows."""
    arrow = tables.physical_type(call.type)
    values = tables.decode(tables.take_array(args[0], groups.order())).cast(arrow.value_type)
    some = groups.sizes > 0
    return list_array(groups.sizes, values, None if some.all() else some, arrow)


def quantile_cont(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    return continuous(args[0], _ordered(call, args[0], groups), call.fraction)


def quantile_disc(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    return discrete(args[0], _ordered(call, args[0], groups), call.fraction)


def _ordered(call: AggregateCall, array: pa.Array, groups: Groups) -> Ordered:
    """The rows of groups by their values, which several quantiles of a column share."""
    descending = bool(call.order) and call.order[0].descending
    key = "places", id(array), descending
    if key not in groups.memo:
        groups.memo[key] = array, ordered_places(array, groups, descending)
    found: Ordered = groups.memo[key][1]  # the array is kept, so that its id stays its own
    return found


def discrete(array: pa.Array, ordered: Ordered, fraction: float) -> pa.Array:
    """Return a value that occurs."""
    return tables.take_array(array, ordered.rows_at(occurring(ordered.sizes, fraction)))


def occurring(sizes: tables.Indices, fraction: float) -> tables.Indices:
    """Return the place of the ceil(n * fraction)-th of n values, for 0 of the first."""
    place = sizes - np.floor(sizes - fraction * sizes).astype(np.int64)
    return np.maximum(place, 1) - 1


def mode(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    """The most frequent value, of several the one that occurs first."""
    rows, members = _valid_rows(args[0], groups)
    codes, size = group_codes([from_numpy(members.all_codes), tables.take_array(args[0], rows)])
    values, first = Groups(codes, size, len(rows)).compact()
    owner = members.all_codes[first]
    # Within a group by descending frequency, then by first occurrence: the first of each group wins.
    best = np.lexsort([first, -values.sizes, owner])
    winner = np.full(groups.count, -1, np.int64)
    winner[owner[best[::-1]]] = rows[first[best[::-1]]]
    return tables.take_array(args[0], winner)


def _valid_rows(array: pa.Array, groups: Groups) -> tuple[tables.Indices, Groups]:
    valid = tables.validity(array)
    rows = np.arange(groups.rows) if valid is None else np.flatnonzero(valid)
    return rows, groups.subset(rows)


def continuous(array: pa.Array, ordered: Ordered, fraction: float) -> pa.Array:
    """Return the value at `fraction` of the way through sorted values, interpolated between two neighbours."""
    below, above, weight = neighbours(ordered.sizes, fraction)
    low = tables.take_array(array, ordered.rows_at(below))
    return between(low, tables.take_array(array, ordered.rows_at(above)), weight)


def neighbours(
    sizes: tables.Indices, fraction: float
) -> tuple[tables.Indices, tables.Indices, Array]:
    """Return the places before and behind `fraction` of the way through so many values, and how far it is from the first to the second."""
    place = np.maximum(sizes - 1, 0) * fraction
    below = np.floor(place).astype(np.int64)
    return below, np.ceil(place).astype(np.int64), place - below


def between(low: pa.Array, high: pa.Array, weight: Array) -> pa.Array:
    """Return values so far on the way from `low` to `high`, as DuckDB interpolates their type."""
    if pa.types.is_null(low.type):
        return low
    if pa.types.is_floating(low.type):
        return _between_floats(low, high, weight)
    if pa.types.is_interval(low.type):
        mixed = interval_records.between(tables.spans_of(low), tables.spans_of(high), weight)
        return from_numpy(mixed, tables.validity(low), low.type)
    if pa.types.is_decimal(low.type):
        return _between_wide_decimals(low, high, weight)
    return _between_integers(low, high, weight, to_nearest=pa.types.is_timestamp(low.type))


def _between_floats(low: pa.Array, high: pa.Array, weight: npt.NDArray[np.float64]) -> pa.Array:
    """As DuckDB: doubles by their weights, so that one infinite neighbour is the result, and floats by their difference."""
    a, b = tables.to_numpy(low), tables.to_numpy(high)
    with np.errstate(all="ignore"):
        mixed = a * (1 - weight) + b * weight if a.dtype == np.float64 else a + (b - a) * weight
    # A neighbour that is not needed must not turn the value into NaN.
    return from_numpy(
        np.where(weight == 0, a, mixed).astype(a.dtype), tables.validity(low), low.type
    )


def _between_integers(
    low: pa.Array, high: pa.Array, weight: npt.NDArray[np.float64], to_nearest: bool
) -> pa.Array:
    """Timestamps, rounded to the nearest, halves upwards, or unscaled decimals, rounded towards zero."""
    a, b = tables.to_numpy(low), tables.to_numpy(high)
    step = (b - a) * weight
    rest = step - np.floor(step)
    mixed = a + np.floor(step).astype(np.int64)
    if to_nearest:
        mixed += rest >= 0.5
        far = (a <= b) != (b - a >= 0)  # farther apart than 64 bits hold, as the infinities are
        mixed[far] = (a * (1 - weight) + b * weight)[far]
    else:
        mixed += (mixed < 0) & (rest > 0)
        # DuckDB rounds low + (high - low) * weight to a double once, so that 6 + 15 * 0.19999999999999996 is 9; beyond
        # 2^53 that would lose digits.
        total = (a + (b - a).astype(np.longdouble) * weight).astype(np.float64)
        mixed = np.where(np.abs(total) < 2.0**53, np.trunc(total).astype(np.int64), mixed)
    return from_numpy(mixed, tables.validity(low), low.type)


def _between_wide_decimals(
    low: pa.Array, high: pa.Array, weight: npt.NDArray[np.float64]
) -> pa.Array:
    """The step from the lower neighbour is a DOUBLE cut to an integer, as in DuckDB."""
    mixed = [
        None if a is None or b is None else a + int(float(b - a) * w)
        for a, b, w in zip(_unscaled(low), _unscaled(high), weight.tolist(), strict=True)
    ]
    limbs = [((v or 0) & (1 << 128) - 1).to_bytes(16, "little") for v in mixed]
    values = np.frombuffer(b"".join(limbs), np.int64).reshape(-1, 2)
    return from_numpy(values, tables.validity(low), low.type)


def _unscaled(array: pa.Array) -> list[int | None]:
    valid = tables.validity(array)
    limbs = tables.decimal_limbs(array).tolist()
    known = [True] * len(limbs) if valid is None else valid.tolist()
    return [
        (high << 64) + (low & (1 << 64) - 1) if ok else None
        for (low, high), ok in zip(limbs, known, strict=True)
    ]


def entropy(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    """The sum of -p log2(p) over the shares p of the values."""
    (array,) = args
    valid = tables.validity(array)
    rows = np.arange(groups.rows) if valid is None else np.flatnonzero(valid)
    members = groups.subset(rows)
    codes, size = group_codes([from_numpy(members.all_codes), tables.take_array(array, rows)])
    values, first = Groups(codes, size, len(rows)).compact()
    owners = Groups(members.all_codes[first], groups.count, len(first))
    with np.errstate(all="ignore"):
        shares = values.sizes / members.sizes[owners.all_codes]
        found = owners.add(-shares * np.log2(shares)) if len(first) else np.zeros(groups.count)
    return from_numpy(np.asarray(found, np.float64) + 0.0)


def median_distance(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    (array,) = args
    half = dataclasses.replace(call, args=(*call.args[:1], Literal(0.5, DOUBLE)), order=())
    medians = quantile_cont(half, args, groups)
    middle = tables.take_array(medians, groups.all_codes)
    if pa.types.is_decimal(array.type):
        wide = pa.decimal256(
            array.type.precision, array.type.scale
        )  # 38 digits have a difference of 39
        apart = pc.abs(pc.subtract(array.cast(wide), middle.cast(wide)))
        try:
            distances = apart.cast(array.type)
        except pa.ArrowInvalid:
            raise OutOfRange(
                f"A distance from the median has more digits than {call.type}: cast the argument of mad to DOUBLE."
            ) from None
    else:
        distances = pc.abs(pc.subtract(array, middle))
    return quantile_cont(half, [distances], groups)
