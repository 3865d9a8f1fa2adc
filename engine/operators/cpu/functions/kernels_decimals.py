"""Decimals in another scale and as doubles: what rounding functions and casts share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....plan.types import DataType
from . import kernels_wide as wide
from .vectors import WIDE, Array, Mask, dtype_of

MACHINE_DIGITS = 18
NO_DIGIT_LEFT = 39  # dropping more places than 38 leaves 0


def rescale(data: Array, digits: int, mode: str = "half_away") -> tuple[Array, Mask | None]:
    """Return unscaled values times 10^digits, and where that certainly left 38 digits (None: nowhere).

    Negative `digits` drop places: rounded half away from zero, or by `mode` "truncate", "floor" or "ceil".  The result is of
    64 bits where all values fit them, else of 128.
    """
    if digits <= 0:
        return _drop(data, -digits, mode), None
    if data.dtype != WIDE and digits <= MACHINE_DIGITS:
        factor = 10**digits
        if data.size == 0 or (
            abs(int(data.min())) * factor < 2**63 and abs(int(data.max())) * factor < 2**63
        ):
            return data.astype(np.int64, copy=False) * np.int64(factor), None
    values = data if data.dtype == WIDE else wide.widen(data)
    return wide.multiply(values, wide.power_of_ten(digits))


def _drop(data: Array, digits: int, mode: str) -> Array:
    if digits == 0:
        return data
    if data.dtype == WIDE or digits > MACHINE_DIGITS:
        return wide.scale_down(
            data if data.dtype == WIDE else wide.widen(data), min(digits, NO_DIGIT_LEFT), mode
        )
    values = data.astype(np.int64, copy=False)
    divisor = np.int64(10**digits)
    quotient = values // divisor  # floors
    if mode == "floor":
        return quotient
    rest = values - quotient * divisor
    if mode == "ceil":
        return quotient + (rest != 0)
    if mode == "truncate":
        return quotient + ((rest != 0) & (values < 0))
    half = divisor // 2
    # Half away from zero: a negative value sits `rest` above its floor, so exactly half stays there.
    return quotient + np.where(values < 0, rest > half, rest >= half)


def fitted(data: Array, data_type: DataType) -> Array:
    """Return values, known to fit, in the form of `data_type`."""
    target = dtype_of(data_type)
    if data.dtype == target:
        return data
    if target == WIDE:
        return wide.widen(data)
    if data.dtype == WIDE:
        data = wide.signed(data["low"])
    return data.astype(target)


Doubles = npt.NDArray[np.float64]

EXACT = 2**53  # up to which a double is every integer
EXACT_POWERS = 22  # 10^22 is the largest power of ten that a double holds
MOST_ERROR = (
    4 * np.finfo(np.longdouble).eps
)  # of the sum of two limbs, a power of ten and a quotient; these make 1.5


def doubles(data: Array, scale: int) -> Doubles:
    """Return unscaled values / 10^scale, each the nearest double.

    As in DuckDB, also where neither the digits nor the power of ten are a double.
    """
    if scale == 0 and data.dtype != WIDE:
        return data.astype(np.float64)
    values = data.reshape(-1)
    approximate = wide.to_double(values) if values.dtype == WIDE else values.astype(np.float64)
    out = approximate / float(10**scale)
    if scale > EXACT_POWERS:
        rows = np.flatnonzero(approximate)
    else:
        rows = np.flatnonzero(np.abs(approximate) >= EXACT)
    if len(rows):
        out[rows] = _nearest(values[rows], scale)
    return out.reshape(data.shape)


def _nearest(values: Array, scale: int) -> Doubles:
    """Where the error of a long double may lie across the middle between two doubles, Python's integers divide."""
    quotients = _long_doubles(values) / np.longdouble(10**scale)
    error = np.abs(quotients) * MOST_ERROR
    out = (quotients - error).astype(np.float64)
    unsure = np.flatnonzero(out != (quotients + error).astype(np.float64))
    for row in unsure:
        value = wide.to_int(values[row]) if values.dtype == WIDE else int(values[row])
        out[row] = value / 10**scale
    return out


def _long_doubles(values: Array) -> npt.NDArray[np.longdouble]:
    if values.dtype != WIDE:
        return values.astype(np.longdouble)
    return values["high"].astype(np.longdouble) * np.longdouble(2.0**64) + values["low"]
