"""Aggregates that look at all values of a group twice: entropy, and the median distance from the median."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....plan.expr import AggregateCall, Literal
from ....plan.types import DOUBLE
from ..sort.keys import group_codes
from ..table import from_numpy, take_array, validity
from .aggregate_order import quantile_cont
from .groups import Groups


def entropy(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    """The sum of -p log2(p) over the shares p of the values."""
    (array,) = args
    valid = validity(array)
    rows = np.arange(groups.rows) if valid is None else np.flatnonzero(valid)
    members = groups.subset(rows)
    codes, size = group_codes([pa.array(members.all_codes), take_array(array, rows)])
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
    middle = take_array(medians, groups.all_codes)
    if pa.types.is_decimal(array.type):
        distances = pc.abs(pc.subtract(array, middle)).cast(array.type)
    else:
        distances = pc.abs(pc.subtract(array, middle))
    return quantile_cont(half, [distances], groups)
