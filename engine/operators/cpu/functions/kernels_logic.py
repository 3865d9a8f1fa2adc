"""Three-valued logic, comparisons, NULL tests, and the functions that choose among their arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....plan.arrow.arrow_arrays import array_from, from_numpy
from ....plan.calendar import DAYS_A_MONTH, MICROS_A_DAY
from ....plan.expr import Call
from ....plan.types import BOOLEAN, Kind
from .. import table as tables
from ..sort.keys import value_ranks
from . import kernels_wide as wide
from .vectors import Array, Kernel, Vector, booleans, both_valid, null_constant


def known_true(vector: Vector) -> Array:
    """Where a BOOLEAN is TRUE: neither FALSE nor NULL."""
    if vector.is_null:
        return np.zeros((), bool)
    return vector.data if vector.valid is None else vector.data & vector.valid


def known_false(vector: Vector) -> Array:
    if vector.is_null:
        return np.zeros((), bool)
    return ~vector.data if vector.valid is None else ~vector.data & vector.valid


def logical_and(call: Call, args: tuple[Vector, ...]) -> Vector:
    """Kleene's AND: one FALSE decides, else one NULL makes NULL."""
    if all(a.valid is None for a in args):
        return booleans(reduce(np.logical_and, [a.data for a in args]))
    true = reduce(np.logical_and, [known_true(a) for a in args])
    false = reduce(np.logical_or, [known_false(a) for a in args])
    return booleans_or_null(true, true | false)


def logical_or(call: Call, args: tuple[Vector, ...]) -> Vector:
    if all(a.valid is None for a in args):
        return booleans(reduce(np.logical_or, [a.data for a in args]))
    true = reduce(np.logical_or, [known_true(a) for a in args])
    false = reduce(np.logical_and, [known_false(a) for a in args])
    return booleans_or_null(true, true | false)


def booleans_or_null(data: Array, valid: Array) -> Vector:
    if valid.ndim == 0:
        return booleans(data) if valid else null_constant(BOOLEAN)
    return booleans(data, valid)


def logical_not(call: Call, args: tuple[Vector, ...]) -> Vector:
    (arg,) = args
    return booleans(~arg.data, arg.valid)


def is_null(call: Call, args: tuple[Vector, ...]) -> Vector:
    return booleans(~present(args[0]))


def is_not_null(call: Call, args: tuple[Vector, ...]) -> Vector:
    return booleans(present(args[0]))


def present(vector: Vector) -> Array:
    """Where a value is not NULL, as an array of the vector's own length."""
    mask = vector.mask
    if mask is not None:
        return mask
    return np.ones(() if vector.is_constant else len(vector.data), bool)


# Comparisons.  Each function below compares physical values and ignores validity.


def _is_float(vector: Vector) -> bool:
    return vector.type.is_float


def same(left: Vector, right: Vector) -> Array:
    if _is_float(left):
        return (left.data == right.data) | (np.isnan(left.data) & np.isnan(right.data))
    if left.type.is_wide_decimal:
        return wide.equal(left.data, right.data)
    if left.type.kind is Kind.VARCHAR:
        return _texts(pc.equal, left, right)
    if left.type.is_ranked:
        return np.equal(*ranked(left, right))
    if left.type.kind is Kind.INTERVAL:
        return reduce(np.logical_and, map(np.equal, ranks(left.data), ranks(right.data)))
    return np.equal(left.data, right.data)


def _less(left: Vector, right: Vector) -> Array:
    if _is_float(left):
        # NaN is above every number and equal to itself.
        return (left.data < right.data) | (np.isnan(right.data) & ~np.isnan(left.data))
    if left.type.is_wide_decimal:
        return wide.less(left.data, right.data)
    if left.type.kind is Kind.VARCHAR:
        return _texts(pc.less, left, right)
    if left.type.is_ranked:
        return np.less(*ranked(left, right))
    if left.type.kind is Kind.INTERVAL:
        return _less_ranks(ranks(left.data), ranks(right.data))
    return np.less(left.data, right.data)


def _less_or_equal(left: Vector, right: Vector) -> Array:
    if _is_float(left):
        return (left.data <= right.data) | np.isnan(right.data)
    if left.type.is_wide_decimal or left.type.kind is Kind.INTERVAL or left.type.is_ranked:
        return ~_less(right, left)
    if left.type.kind is Kind.VARCHAR:
        return _texts(pc.less_equal, left, right)
    return np.less_equal(left.data, right.data)


def _texts(
    function: Callable[[pa.Array, pa.Array], pa.Array], left: Vector, right: Vector
) -> Array:
    """Compare strings byte by byte, as DuckDB's default collation does."""
    if isinstance(left.data, str) and isinstance(right.data, str):
        return np.array(function(left.text, right.text).as_py())
    return tables.to_numpy(function(*aligned(left, right)))


def aligned(*vectors: Vector) -> list[pa.Array]:
    """Strings as arguments of one Arrow type."""
    texts = [v.text for v in vectors]
    if len({t.type for t in texts}) > 1:
        texts = [t.cast(pa.large_string()) for t in texts]
    return texts


def ranked(left: Vector, right: Vector) -> tuple[Array, Array]:
    """Return numbers in the order of lists, structs or bytes, where NULL within is the largest value and equal to itself."""
    count = max(left.length, right.length)
    ours, theirs = (vector.to_arrow(1 if vector.is_constant else count) for vector in (left, right))
    ranks = value_ranks(pa.concat_arrays([ours, theirs]))
    found, other = ranks[: len(ours)], ranks[len(ours) :]
    constant = left.is_constant, right.is_constant
    return found[0] if constant[0] else found, other[0] if constant[1] else other


def ranks(data: Array) -> tuple[Array, Array, Array]:
    """Return months, days and microseconds of intervals after carrying 30 days and 24 hours over, as DuckDB compares."""
    micros = data["micros"]
    days = data["days"].astype(np.int64) + micros // MICROS_A_DAY
    months = data["months"].astype(np.int64) + days // DAYS_A_MONTH
    return months, days % DAYS_A_MONTH, micros % MICROS_A_DAY


def _less_ranks(left: tuple[Array, ...], right: tuple[Array, ...]) -> Array:
    result: Array = np.zeros((), bool)
    for a, b in zip(reversed(left), reversed(right), strict=True):
        result = (a < b) | ((a == b) & result)
    return np.asarray(result)


def _comparison(compare: Callable[[Vector, Vector], Array]) -> Kernel:
    def kernel(call: Call, args: tuple[Vector, ...]) -> Vector:
        left, right = args
        if left.type.kind is Kind.NULL:
            return null_constant(BOOLEAN)
        return booleans(compare(left, right), both_valid(left, right))

    return kernel


def _swapped(compare: Callable[[Vector, Vector], Array]) -> Callable[[Vector, Vector], Array]:
    return lambda left, right: compare(right, left)


def _not_equal(left: Vector, right: Vector) -> Array:
    if (
        left.type.is_float
        or left.type.is_wide_decimal
        or left.type.varies_in_width
        or left.type.kind is Kind.INTERVAL
    ):
        return ~same(left, right)
    return np.not_equal(left.data, right.data)


def is_not_distinct(call: Call, args: tuple[Vector, ...]) -> Vector:
    left, right = args
    if left.type.kind is Kind.NULL:
        return booleans(np.ones((), bool))
    here, there = present(left), present(right)
    if left.is_null or right.is_null:
        return booleans(~here & ~there)
    if isinstance(left.data, pa.Array) or isinstance(right.data, pa.Array):
        # Arrow leaves arbitrary bits where an argument is NULL.
        return booleans(np.where(here & there, same(left, right), here == there))
    matching = same(left, right)
    if left.valid is None and right.valid is None:
        return booleans(matching)
    return booleans((matching & here & there) | (~here & ~there))


def is_distinct(call: Call, args: tuple[Vector, ...]) -> Vector:
    return booleans(~is_not_distinct(call, args).data)


# Functions that choose.


def select(chosen: Array, first: Vector, second: Vector) -> Vector:
    """Return `first` in the rows where `chosen`, else `second`; both have one type."""
    if first.type.varies_in_width:
        return _select_arrays(chosen, first, second)
    data = np.where(chosen, first.data, second.data)
    if first.valid is None and second.valid is None:
        return Vector(first.type, data)
    valid = np.where(chosen, present(first), present(second))
    if valid.ndim == 0:
        return Vector(first.type, data) if valid else null_constant(first.type)
    return Vector(first.type, data, valid)


def _select_arrays(chosen: Array, first: Vector, second: Vector) -> Vector:
    if chosen.ndim == 0:
        return first if chosen else second
    null = pa.nulls(1, tables.physical_type(first.type))[0]
    texts = [null if v.is_null else v.text for v in (first, second)]
    if len({t.type for t in texts}) > 1:
        texts = [t.cast(pa.large_string()) for t in texts]
    if first.type.holds(Kind.NULL):
        return Vector(first.type, _taken(chosen, *texts))
    return Vector(first.type, pc.if_else(from_numpy(chosen), *texts))


def _taken(chosen: Array, *both: pa.Array | pa.ChunkedArray | pa.Scalar) -> pa.Array:
    """Do what `if_else` does, which Arrow does not have for lists and structs of the type of NULL."""
    arrays = [array_from([v.as_py()], v.type) if isinstance(v, pa.Scalar) else v for v in both]
    first, second = (a.combine_chunks() if isinstance(a, pa.ChunkedArray) else a for a in arrays)
    rows = np.arange(len(chosen))
    places = [
        rows * (not isinstance(v, pa.Scalar)) + start
        for v, start in zip(both, (0, len(first)), strict=True)
    ]
    return pa.concat_arrays([first, second]).take(from_numpy(np.where(chosen, *places)))


def coalesce(call: Call, args: tuple[Vector, ...]) -> Vector:
    result = args[0]
    for arg in args[1:]:
        if result.mask is None:
            break
        result = arg if result.is_null else select(present(result), result, arg)
    return result


def _extreme(better: Callable[[Vector, Vector], Array]) -> Kernel:
    """Greatest or least: NULL arguments are skipped."""

    def kernel(call: Call, args: tuple[Vector, ...]) -> Vector:
        result = args[0]
        for arg in args[1:]:
            if result.is_null or arg.is_null:
                result = arg if result.is_null else result
                continue
            wins = better(arg, result) & present(arg)
            result = select(wins | ~present(result), arg, result)
        return result

    return kernel


KERNELS: dict[str, Kernel] = {
    "and": logical_and,
    "or": logical_or,
    "not": logical_not,
    "is_null": is_null,
    "is_not_null": is_not_null,
    "eq": _comparison(same),
    "ne": _comparison(_not_equal),
    "lt": _comparison(_less),
    "le": _comparison(_less_or_equal),
    "gt": _comparison(_swapped(_less)),
    "ge": _comparison(_swapped(_less_or_equal)),
    "is_distinct": is_distinct,
    "is_not_distinct": is_not_distinct,
    "coalesce": coalesce,
    "greatest": _extreme(_swapped(_less)),
    "least": _extreme(_less),
}
