"""Decimals as doubles: the nearest one, as in DuckDB, though neither the digits nor the power of ten may be a double."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from . import kernels_wide as wide
from .vectors import WIDE, Array

Doubles = npt.NDArray[np.float64]

EXACT = 2**53  # up to which a double is every integer
EXACT_POWERS = 22  # 10^22 is the largest power of ten that a double holds
MOST_ERROR = (
    4 * np.finfo(np.longdouble).eps
)  # of the sum of two limbs, a power of ten and a quotient; these make 1.5


def doubles(data: Array, scale: int) -> Doubles:
    """Return unscaled values / 10^scale."""
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
