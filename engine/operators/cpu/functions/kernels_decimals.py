"""Changing the scale of decimals: what rounding functions and casts share."""

from __future__ import annotations

import numpy as np

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


def beyond(data: Array, limit: int) -> Mask:
    """Where the size of a value is above `limit`."""
    if data.dtype == WIDE:
        return wide.out_of_range(data, limit)
    if limit >= 2**63 - 1 or (data.dtype == np.uint64 and limit >= 2**64 - 1):
        return np.zeros(data.shape, bool)
    if data.dtype == np.uint64:
        return data > np.uint64(limit)
    values = data.astype(np.int64, copy=False)
    return (values > limit) | (values < -limit)


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
