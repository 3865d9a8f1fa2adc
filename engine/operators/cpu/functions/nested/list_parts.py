"""Lists made, taken apart, put together and searched."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .....errors import ExecutionError
from .....plan.arrow.arrow_arrays import from_numpy, null_as, truth_values
from .....plan.expr import Call
from .....plan.types import BOOLEAN
from ... import table as tables
from ...nested_arrays import Ints, Lists, Mask, list_array, struct_array
from ...sort.keys import group_codes
from ..vectors import over_arrays


def integers(array: pa.Array) -> tuple[Ints, Mask]:
    """Return numbers, 0 for NULL, and where there is one."""
    valid = truth_values(array.is_valid())
    return np.where(valid, tables.to_numpy(array), 0).astype(np.int64), valid


def both(*masks: Mask | None) -> Mask | None:
    """Return where all are set; None is everywhere."""
    found: Mask | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found & mask
    return found


def picked(
    lengths: Ints, places: Ints, elements: pa.Array, valid: Mask | None, call: Call
) -> pa.Array:
    """Return lists of the elements at `paths`, -1 for NULL."""
    taken = tables.take_array(elements, places)
    return list_array(lengths, taken, valid, tables.physical_type(call.type))


def _value(call: Call, args: list[pa.Array]) -> pa.Array:
    """One row's values after another's: row i has those at i, i + rows, i + 2 * rows ..."""
    arrow = tables.physical_type(call.type)
    if not args:
        return list_array(np.zeros(1, np.int64), pa.nulls(0, arrow.value_type), None, arrow)
    rows, width = len(args[0]), len(args)
    values = tables.as_element(
        tables.concat_arrays([tables.decode(a) for a in args]), arrow.value_type
    )
    places = np.arange(rows * width).reshape(width, rows).T.reshape(-1)
    return picked(np.full(rows, width), places, values, None, call)


def _length(call: Call, args: list[pa.Array]) -> pa.Array:
    if pa.types.is_null(args[0].type):
        return pa.nulls(len(args[0]), pa.int64())
    return pc.list_value_length(args[0]).cast(pa.int64())


def _extract(call: Call, args: list[pa.Array]) -> pa.Array:
    """The n-th element, from 1 or, negative, from the end; NULL where there is none."""
    lists = Lists.of(args[0])
    wanted, given = integers(args[1])
    places = np.where(wanted > 0, wanted - 1, lists.lengths + wanted)
    inside = given & (wanted != 0) & (places >= 0) & (places < lists.lengths)
    return tables.take_array(lists.elements, np.where(inside, lists.starts + places, -1))


def _cut(call: Call, args: list[pa.Array]) -> pa.Array:
    """From one place to another, both included; negative ones count from the end, and with a negative step the list is read backwards."""
    lists = Lists.of(args[0])
    (begin, has_begin), (end, has_end) = integers(args[1]), integers(args[2])
    step, has_step = integers(args[3]) if len(args) > 3 else (np.ones_like(begin), has_begin)
    valid = both(lists.valid, has_begin, has_end, has_step)
    if valid is not None and bool((step[valid] == 0).any()):
        raise ExecutionError("The step of a slice cannot be 0.")
    size = lists.lengths
    backwards = step < 0
    first = np.where(begin < 0, size + begin, begin - 1)
    last = np.where(end < 0, size + end, end - 1)
    first = np.where(backwards, np.minimum(first, size - 1), np.maximum(first, 0))
    last = np.where(backwards, np.maximum(last, 0), np.minimum(last, size - 1))
    distance = np.where(backwards, first - last, last - first)
    stride = np.maximum(np.abs(step), 1)
    counts = np.where(distance >= 0, distance // stride + 1, 0)
    counts = counts if valid is None else np.where(valid, counts, 0)
    rows = np.repeat(np.arange(len(counts)), counts)
    nth = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    places = (lists.starts + first)[rows] + nth * step[rows]
    return picked(counts, places, lists.elements, valid, call)


def codes_of(*arrays: pa.Array) -> list[npt.NDArray[np.int64]]:
    """Number values of one type in several arrays, equal ones alike; NULL is a value."""
    codes, _ = group_codes([tables.concat_arrays(list(arrays))])
    return np.split(codes, np.cumsum([len(a) for a in arrays])[:-1])


def found(lists: Lists, wanted: pa.Array) -> Mask:
    """Return which elements equal the value beside their list."""
    elements, values = codes_of(lists.elements, wanted)
    equal: Mask = elements == values[lists.rows]
    return equal


def _contains(call: Call, args: list[pa.Array]) -> pa.Array:
    """Whether a value is in a list; of NULL nothing is known but that it is not in an empty one."""
    lists = Lists.of(args[0])
    hits = np.bincount(lists.rows[found(lists, args[1])], minlength=len(lists.lengths))
    given = tables.validity(args[1])
    valid = both(lists.valid, None if given is None else given | (lists.lengths == 0))
    return from_numpy(hits > 0, valid, pa.bool_())


def _concat(call: Call, args: list[pa.Array]) -> pa.Array:
    """The elements of all lists of a row; NULL counts as a list without any."""
    parts = [Lists.of(a) for a in args]
    elements = tables.concat_arrays([p.elements for p in parts])
    lengths = np.stack([p.lengths for p in parts], axis=1)
    bases = np.cumsum([0, *(len(p.elements) for p in parts[:-1])])
    starts = np.stack([p.starts + base for p, base in zip(parts, bases, strict=True)], axis=1)
    flat, begin = lengths.reshape(-1), starts.reshape(-1)
    within = np.arange(int(flat.sum())) - np.repeat(np.cumsum(flat) - flat, flat)
    places = np.repeat(begin, flat) + within
    return picked(lengths.sum(axis=1), places, elements, None, call)


def _flatten(call: Call, args: list[pa.Array]) -> pa.Array:
    outer = Lists.of(args[0])
    inner = Lists.of(outer.elements)
    lengths = np.zeros(len(outer.lengths), np.int64)
    np.add.at(lengths, outer.rows, inner.lengths)
    return list_array(lengths, inner.elements, outer.valid, tables.physical_type(call.type))


def _zip(call: Call, args: list[pa.Array]) -> pa.Array:
    """Rows of the first elements, of the second ones ...; NULL behind the end of a list, and for a list that is NULL."""
    flag = args[-1] if call.args[-1].type == BOOLEAN else None
    lists = [Lists.of(a) for a in (args if flag is None else args[:-1])]
    every = np.stack([each.lengths for each in lists])
    lengths = every.max(axis=0)
    if flag is not None:
        shortest = truth_values(null_as(flag, False))
        lengths = np.where(shortest, every.min(axis=0), lengths)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    arrow = tables.physical_type(call.type)
    fields = [
        tables.as_element(
            tables.take_array(
                each.elements, np.where(nth < each.lengths[rows], each.starts[rows] + nth, -1)
            ),
            field.type,
        )
        for each, field in zip(lists, arrow.value_type, strict=True)
    ]
    return list_array(lengths, struct_array(fields, None, arrow.value_type), None, arrow)


KERNELS = {
    name: over_arrays(function)
    for name, function in {
        "list_value": _value,
        "list_length": _length,
        "list_element": _extract,
        "list_cut": _cut,
        "list_contains": _contains,
        "list_concat": _concat,
        "flatten": _flatten,
        "list_zip": _zip,
    }.items()
}
