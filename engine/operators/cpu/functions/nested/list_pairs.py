"""Two lists side by side: elements that a list of truths chooses, distances and products of vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .....errors import ExecutionError
from .....plan.arrow.arrow_arrays import array_from, from_numpy, null_as, truth_values
from .....plan.arrow.values_type import values_type
from .....plan.expr import Call
from .....records import dataclass
from ... import table as tables
from ...nested_arrays import Ints, Lists, list_array
from ..vectors import ArrayFunction, over_arrays
from .list_parts import both, picked

Doubles = npt.NDArray[np.float64]


def _where(call: Call, args: list[pa.Array]) -> pa.Array:
    """The elements where the other list is TRUE, NULL behind the end of the first."""
    lists, chosen = map(Lists.of, args)
    valid = both(lists.valid, chosen.valid)
    known = np.ones(len(lists.lengths), bool) if valid is None else valid
    inside = known[chosen.rows]
    if chosen.elements.filter(from_numpy(inside)).null_count:
        raise ExecutionError("The list that chooses elements has no NULL.")
    hits = np.flatnonzero(truth_values(null_as(chosen.elements, False)) & inside)
    rows, places = chosen.rows[hits], chosen.places[hits]
    found = np.where(places < lists.lengths[rows], lists.starts[rows] + places, -1)
    lengths = np.bincount(rows, minlength=len(known))
    return picked(lengths, found, lists.elements, valid, call)


@dataclass(frozen=True)
class _VectorRows:
    """The rows to which numbers of vectors belong."""

    of_each: Ints
    count: int

    def total(self, numbers: Doubles) -> Doubles:
        return np.bincount(self.of_each, numbers, minlength=self.count).astype(np.float64)

    def scaled(self, numbers: Doubles) -> Doubles:
        """Return vectors of the same directions, whose largest number is about 1: its square neither overflows nor vanishes."""
        largest = np.zeros(self.count)
        np.maximum.at(largest, self.of_each, np.abs(numbers))
        _, exponents = np.frexp(largest)
        found: Doubles = np.ldexp(numbers, -exponents[self.of_each])
        return found


def _vectors(
    compute: Callable[[Doubles, Doubles, _VectorRows], Doubles], of_nothing: bool = True
) -> ArrayFunction:
    """Return a function of the numbers of two lists that are equally long; NULL of empty ones unless it has a value `of_nothing`."""

    def function(call: Call, args: list[pa.Array]) -> pa.Array:
        left, right = map(Lists.of, args)
        valid = both(left.valid, right.valid)
        known = np.ones(len(left.lengths), bool) if valid is None else valid
        if bool((left.lengths != right.lengths)[known].any()):
            raise ExecutionError("The two lists are equally long.")
        sides = [each.elements.filter(from_numpy(known[each.rows])) for each in (left, right)]
        if any(side.null_count for side in sides):
            raise ExecutionError("The lists have no NULL.")
        rows = np.repeat(np.arange(len(known)), np.where(known, left.lengths, 0))
        numbers = [tables.to_numpy(side).astype(np.float64) for side in sides]
        made = compute(numbers[0], numbers[1], _VectorRows(rows, len(known)))
        if not of_nothing:
            valid = known & (left.lengths > 0)
        arrow = tables.physical_type(call.type)
        return from_numpy(made.astype(values_type(arrow)), valid, arrow)

    return function


def _distance(left: Doubles, right: Doubles, rows: _VectorRows) -> Doubles:
    found: Doubles = np.sqrt(rows.total((left - right) ** 2))
    return found


def _cosine(left: Doubles, right: Doubles, rows: _VectorRows) -> Doubles:
    """The cosine of the angle between two vectors, NaN where one has no length."""
    left, right = rows.scaled(left), rows.scaled(right)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = rows.total(left * left) * rows.total(right * right)
        found = rows.total(left * right) / np.sqrt(squares)
    clipped: Doubles = np.clip(found, -1.0, 1.0)
    return clipped


def _cross_product(call: Call, args: list[pa.Array]) -> pa.Array:
    """The vector that is at right angles with two others, of three numbers each."""
    sides = [Lists.of(a) for a in args]
    valid = both(*(side.valid for side in sides))
    arrow = tables.physical_type(call.type)
    lengths = np.where(np.ones(len(args[0]), bool) if valid is None else valid, 3, 0)
    known = lengths > 0
    inside = [side.elements.filter(from_numpy(known[side.rows])) for side in sides]
    if any(part.null_count for part in inside):
        raise ExecutionError("The arrays have no NULL.")
    left, right = (tables.to_numpy(part).reshape(-1, 3) for part in inside)
    turned = left[:, [1, 2, 0]] * right[:, [2, 0, 1]] - left[:, [2, 0, 1]] * right[:, [1, 2, 0]]
    return list_array(lengths, array_from(turned.reshape(-1), arrow.value_type), valid, arrow)


KERNELS = {
    name: over_arrays(function)
    for name, function in {
        "list_where": _where,
        "cross_product": _cross_product,
        "list_distance": _vectors(_distance),
        "list_cosine_similarity": _vectors(_cosine, of_nothing=False),
        "list_cosine_distance": _vectors(lambda a, b, rows: 1 - _cosine(a, b, rows), False),
        "list_inner_product": _vectors(lambda a, b, rows: rows.total(a * b)),
        "list_negative_inner_product": _vectors(lambda a, b, rows: -rows.total(a * b)),
    }.items()
}
