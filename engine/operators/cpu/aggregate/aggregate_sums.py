"""Aggregates that add: sums and averages, exact for integers and decimals, and the moments of floats."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....errors import OutOfRange
from ....plan.arrow.arrow_arrays import from_numpy
from ....plan.expr import AggregateCall
from ....plan.functions import AGGREGATE
from ....plan.types import LARGEST_DECIMAL, DataType
from ....storage.columns.encodings import Array
from ..sort.keys import Ints
from ..table import Mask, decimal_limbs, to_numpy, validity
from .groups import Floats, Groups, Sums, sum_int64, sum_limbs


def sum_of(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    (array,) = args
    some = groups.some(validity(array))
    if call.type.is_float:
        return from_numpy(_float_sums(array, groups), some)
    return _decimal(_sums(array, groups), some, call.type)


def avg(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    (array,) = args
    argument = call.args[0].type
    total = (_float_sums if argument.is_float else _sums)(array, groups)
    return mean(total, groups.counts(validity(array)), 10**argument.scale)


def mean(total: Sums | Floats, counts: Ints, unit: int) -> pa.Array:
    """Divide a sum once, an exact one in 80 bits where the platform has them, as DuckDB does."""
    with np.errstate(all="ignore"):
        if isinstance(total, Sums):
            divisor = counts.astype(np.longdouble) * np.longdouble(unit)
            return from_numpy((total.as_longdouble() / divisor).astype(np.float64), counts > 0)
        return from_numpy(total / counts, counts > 0)


def product(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    values, valid = floats_of(args[0])
    counts = groups.counts(valid)
    with np.errstate(all="ignore"):
        return from_numpy(groups.reduce(np.multiply, _filled(values, valid, 1.0), 1.0), counts > 0)


def corr(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    """NaN where a side does not vary, a single row included; NULL without rows."""
    groups, (x, y) = _pairs(args, groups)
    with np.errstate(all="ignore"):
        dx, dy = _deviations(x, groups), _deviations(y, groups)
        spread = np.sqrt(groups.add(dx * dx)) * np.sqrt(groups.add(dy * dy))
        return from_numpy(groups.add(dx * dy) / spread, groups.sizes > 0)


def _sums(array: pa.Array, groups: Groups) -> Sums:
    """Exact sums of integers or unscaled decimals; kept for a second aggregate of the same column."""
    known = groups.memo.get(id(array))
    if known is None:
        try:
            known = _exact_sums(array, groups)
        except OverflowError:
            raise OutOfRange(_TOO_LARGE) from None
        groups.memo[id(array)] = known
    assert isinstance(known, Sums)
    return known


_TOO_LARGE = "A SUM has more than 38 digits: cast its argument to DOUBLE."


def _exact_sums(array: pa.Array, groups: Groups) -> Sums:
    valid = validity(array)
    if pa.types.is_null(array.type):
        return Sums(np.zeros(groups.count, np.int64))
    if pa.types.is_decimal(array.type):
        low, high = decimal_limbs(array).T
        if valid is not None:
            low, high = np.where(valid, low, 0), np.where(valid, high, 0)
        if bool((high == low >> 63).all()):
            return sum_int64(groups, np.ascontiguousarray(low))
        halves = [low & 0xFFFFFFFF, (low >> 32) & 0xFFFFFFFF, high & 0xFFFFFFFF, high >> 32]
        return sum_limbs(groups, halves)
    values = to_numpy(array)
    if valid is not None:
        values = np.where(valid, values, values.dtype.type(0))
    if values.dtype == np.uint64:
        return sum_limbs(groups, [_low_half(values), (values >> np.uint64(32)).astype(np.int64)])
    return sum_int64(groups, values.astype(np.int64, copy=False))


def _low_half(values: npt.NDArray[np.uint64]) -> Ints:
    return (values & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _decimal(sums: Sums, some: Mask | None, data_type: DataType) -> pa.Array:
    total = from_numpy(sums.limbs(), some, pa.decimal128(38, data_type.scale))
    if sums.high is not None:
        unscaled = from_numpy(sums.limbs(), some, pa.decimal128(38, 0))
        extremes = pc.min_max(unscaled).values()
        if any(v.is_valid and abs(int(v.as_py())) > LARGEST_DECIMAL for v in extremes):
            raise OutOfRange(_TOO_LARGE)
    return total


def floats_of(array: pa.Array) -> tuple[Floats, Mask | None]:
    """Return the values of a DOUBLE column, and which of them are not NULL."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array)), validity(array)
    return to_numpy(array).astype(np.float64, copy=False), validity(array)


def _filled(values: Floats, valid: Mask | None, neutral: float) -> Floats:
    return values if valid is None else np.where(valid, values, neutral)


def _float_sums(array: pa.Array, groups: Groups) -> Array:
    values, valid = floats_of(array)
    with np.errstate(all="ignore"):
        return groups.add(_filled(values, valid, 0.0))


def _pairs(args: list[pa.Array], groups: Groups) -> tuple[Groups, list[Floats]]:
    """Only the rows in which no argument is NULL."""
    columns = [floats_of(a) for a in args]
    masks = [valid for _, valid in columns if valid is not None]
    if not masks:
        return groups, [values for values, _ in columns]
    rows = np.flatnonzero(np.logical_and.reduce(masks))
    return groups.subset(rows), [values[rows] for values, _ in columns]


def _deviations(values: Floats, groups: Groups) -> Floats:
    """Distances from the group's mean; a second pass keeps digits that sums of squares would lose."""
    means = groups.add(values) / groups.sizes
    return values - (means[0] if groups.codes is None else means[groups.codes])


def variance(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    """Over the size of the group less `ddof`; 0 for one value, infinite or NaN though it may be."""
    groups, (values,) = _pairs(args, groups)
    sizes, row = groups.sizes, AGGREGATE[call.function]
    with np.errstate(all="ignore"):
        deviations = _deviations(values, groups)
        # The deviations would add up to 0 but for the rounding of the mean.
        correction = groups.add(deviations) ** 2 / sizes
        correction[np.isinf(correction)] = 0.0
        variances = (groups.add(deviations * deviations) - correction) / (sizes - row.ddof)
        variances[sizes == 1] = 0.0
        result = np.sqrt(variances) if row.root else variances
    return from_numpy(result, sizes > row.ddof)


def covariance(call: AggregateCall, args: list[pa.Array], groups: Groups) -> pa.Array:
    ddof = AGGREGATE[call.function].ddof
    groups, (x, y) = _pairs(args, groups)
    with np.errstate(all="ignore"):
        products = _deviations(x, groups) * _deviations(y, groups)
        covariances = groups.add(products) / (groups.sizes - ddof)
    return from_numpy(covariances, groups.sizes > ddof)
