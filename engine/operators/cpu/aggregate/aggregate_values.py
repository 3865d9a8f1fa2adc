"""Aggregates that count rows or pick one of the values: extremes, first and last, bits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ....codegen.groups.accumulate import FOLDS
from ....plan.arrow.arrow_arrays import from_numpy
from ....plan.expr import AggregateCall
from ....plan.functions import AGGREGATE
from ....storage.columns.encodings import Array
from ..sort.keys import Ints, is_plain_string, leading_image, ordered_images
from ..sort.text_words import last_rows
from ..table import Indices, take_array, to_numpy, validity
from .groups import INT64, Groups

FEW_STRINGS = 1 << 12  # which are ranked as they are
MOST_LOOKS = 8  # at some bytes more of what is left


def count_star(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    return from_numpy(groups.sizes)


def count(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    return from_numpy(groups.counts(validity(args[0])))


def first(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    return take_array(args[0], groups.first_rows())


def last(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    return take_array(args[0], groups.last_rows())


def any_value(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    """The first value that is not NULL."""
    (array,) = args
    valid = validity(array)
    if valid is None:
        return take_array(array, groups.first_rows())
    rows = np.flatnonzero(valid)
    return take_array(array, _renamed(groups.subset(rows).first_rows(), rows))


def extreme_rows(array: pa.Array, groups: Groups, largest: bool) -> Indices:
    """Return the first row of each group that has its extreme value, -1 without a valid one."""
    if is_plain_string(array):
        found = last_rows(array, groups.codes, groups.count, descending=not largest)
        if found is not None:
            return found
    rows = _leading_rows(array, groups, largest) if is_plain_string(array) else None
    if rows is None:
        return _extreme_rows(array, groups, largest)
    return _renamed(_extreme_rows(take_array(array, rows), groups.subset(rows), largest), rows)


def _leading_rows(array: pa.Array, groups: Groups, largest: bool) -> Indices | None:
    """Return those rows of many strings whose first bytes are the extreme ones of their group, None where that are all.

    They alone are ranked: ranking six million comments takes twenty times as long as looking at their first bytes.
    """
    rows: Indices | None = None
    for _ in range(MOST_LOOKS):
        strings = array if rows is None else take_array(array, rows)
        if len(strings) <= FEW_STRINGS:
            break
        valid = validity(strings)
        here = np.arange(len(strings)) if valid is None else np.flatnonzero(valid)
        values = leading_image(strings).values[here]
        members = groups.subset(here if rows is None else rows[here])
        led = here[values == _extremes(values, members, largest)[members.all_codes]]
        if len(led) == len(strings):
            break
        rows = led if rows is None else rows[led]
    return rows


def _extreme_rows(array: pa.Array, groups: Groups, largest: bool) -> Indices:
    rows = None
    valid = validity(array)
    if valid is not None:
        rows = np.flatnonzero(valid)
    for image in ordered_images(array):
        values = image.values if rows is None else image.values[rows]
        members = groups if rows is None else groups.subset(rows)
        extremes = _extremes(values, members, largest)
        hits = np.flatnonzero(values == extremes[members.all_codes])
        rows = hits if rows is None else rows[hits]
    assert rows is not None
    return _renamed(groups.subset(rows).first_rows(), rows)


def _extremes(values: Ints, groups: Groups, largest: bool) -> Ints:
    if largest:
        result: Ints = groups.reduce(np.maximum, values, INT64.min)
    else:
        result = groups.reduce(np.minimum, values, INT64.max)
    return result


def extreme(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    (array,), largest = args, call.function == "max"
    if not is_plain_integer(array.type):
        return take_array(array, extreme_rows(array, groups, largest))
    values, valid = to_numpy(array), validity(array)
    neutral = INT64.min if largest else INT64.max
    wide = values.astype(np.int64, copy=False)
    if valid is not None:
        wide = np.where(valid, wide, neutral)
    extremes = _extremes(wide, groups, largest)
    # The neutral value of a group without rows does not fit a narrow type, and is NULL anyway.
    some = groups.counts(valid) > 0
    return from_numpy(np.where(some, extremes, 0).astype(values.dtype), some, array.type)


def is_plain_integer(t: pa.DataType) -> bool:
    """Whether numbers have the order of the values, and are them."""
    types = pa.types
    return bool(
        (types.is_integer(t) and not types.is_uint64(t))
        or types.is_boolean(t)
        or types.is_date32(t)
        or types.is_timestamp(t)
    )


def value_at_extreme(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    """The value where the key is extreme; rows with NULL in the key do not count, nor in the value unless that is wanted."""
    (value, key), largest = args, call.function.startswith("arg_max")
    valid = None if AGGREGATE[call.function].nulls == "own" else validity(value)
    if valid is None:
        return take_array(value, extreme_rows(key, groups, largest))
    rows = np.flatnonzero(valid)
    best = extreme_rows(take_array(key, rows), groups.subset(rows), largest)
    return take_array(value, _renamed(best, rows))


def _renamed(places: Indices, rows: Indices) -> Indices:
    """Row numbers of a subset as row numbers of the whole; -1 stays."""
    if not len(rows):
        return np.full(len(places), -1, np.int64)
    return np.where(places < 0, -1, rows[places])


def bits(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    (array,), fold = args, AGGREGATE[call.function].fold
    values: Array = to_numpy(array)
    valid = validity(array)
    start = np.invert(values.dtype.type(0)) if fold == "and" else values.dtype.type(0)
    filled = values if valid is None else np.where(valid, values, start)
    found = groups.reduce(FOLDS[fold], filled, start)
    return from_numpy(found, groups.counts(valid) > 0, array.type)
