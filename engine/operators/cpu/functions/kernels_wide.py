"""128-bit integers in numpy: the unscaled values of decimals of more than 18 digits.

A value is two limbs in two's complement (`vectors.WIDE`).  Decimals hold at most 38 digits, less than 2^127, so a sum of two
overflows by its sign alone; products are bounded by their size as doubles before their low 128 bits are trusted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .vectors import WIDE, Array, Mask, wide_limbs

Unsigned = npt.NDArray[np.uint64]
_LOW_HALF = np.uint64(0xFFFF_FFFF)
_HALF = np.uint64(32)
_TWO_64 = 2.0**64


def pack(low: Array, high: Array | np.int64) -> Array:
    """Return limbs as one array of `WIDE`."""
    out = np.empty(np.broadcast_shapes(np.shape(low), np.shape(high)), WIDE)
    out["low"], out["high"] = low, high
    return out


def wide_constant(value: int) -> Array:
    return np.array(wide_limbs(value), WIDE)


def widen(values: Array) -> Array:
    """Return integers of any width as 128-bit ones."""
    if values.dtype == np.uint64:
        return pack(values, np.int64(0))
    values = values.astype(np.int64, copy=False)
    return pack(values.view(np.uint64), values >> np.int64(63))


def fits_int64(values: Array) -> Mask:
    """Where the low limb alone, read signed, is the value."""
    return values["high"] == (signed(values["low"]) >> np.int64(63))


def signed(low: Array) -> Array:
    return np.ascontiguousarray(low).view(np.int64).reshape(low.shape)


def equal(left: Array, right: Array) -> Mask:
    return (left["low"] == right["low"]) & (left["high"] == right["high"])


def less(left: Array, right: Array) -> Mask:
    lower = (left["high"] == right["high"]) & (left["low"] < right["low"])
    return (left["high"] < right["high"]) | lower


def negate(values: Array) -> Array:
    low = ~values["low"] + np.uint64(1)
    return pack(low, ~values["high"] + (low == 0))


def signed_as(size: Array, negative: Array) -> Array:
    """Return `size`, negated in the rows where `negative`."""
    flipped = negate(size)
    return pack(
        np.where(negative, flipped["low"], size["low"]),
        np.where(negative, flipped["high"], size["high"]),
    )


def magnitude(values: Array) -> Array:
    return signed_as(values, values["high"] < 0)


def add(left: Array, right: Array) -> tuple[Array, Mask]:
    """Return the sum and where it left 128 bits."""
    low = left["low"] + right["low"]
    high = left["high"] + right["high"] + (low < left["low"])
    lost = ((left["high"] ^ high) & (right["high"] ^ high)) < 0
    return pack(low, high), lost


def subtract(left: Array, right: Array) -> tuple[Array, Mask]:
    return add(left, negate(right))


def multiply(left: Array, right: Array) -> tuple[Array, Mask]:
    """Return the product and where it surely has more than 38 digits."""
    lost = np.abs(to_double(left) * to_double(right)) > 1.1e38
    low, carry = _product(left["low"], right["low"])
    # The upper limb is right modulo 2^64, whatever the signs: two's complement.
    cross = signed(left["low"]) * right["high"] + left["high"] * signed(right["low"])
    return pack(low, signed(carry) + cross), lost


def _product(left: Unsigned, right: Unsigned) -> tuple[Unsigned, Unsigned]:
    """The 128-bit product of 64-bit unsigned limbs, by halves."""
    left_low, left_high = left & _LOW_HALF, left >> _HALF
    right_low, right_high = right & _LOW_HALF, right >> _HALF
    lowest = left_low * right_low
    middle = left_high * right_low + (lowest >> _HALF)
    other = left_low * right_high + (middle & _LOW_HALF)
    high = left_high * right_high + (middle >> _HALF) + (other >> _HALF)
    return left * right, high


def to_double(values: Array) -> npt.NDArray[np.float64]:
    """Return doubles that are off by one unit in the last place at most; `kernels_decimals` has the nearest."""
    low = values["low"]
    split = values["high"] * _TWO_64 + low.astype(np.float64)
    return np.where(values["high"] == -1, -(~low).astype(np.float64) - 1, split)


def from_double(values: npt.NDArray[np.float64]) -> Array:
    """Return whole doubles below 2^127 exactly."""
    size = np.abs(values)
    high = np.floor(size / _TWO_64)
    positive = pack((size - high * _TWO_64).astype(np.uint64), high.astype(np.int64))
    return signed_as(positive, values < 0)


def out_of_range(values: Array, limit: int) -> Mask:
    """Where the size of a value is above `limit`."""
    bound, lower = wide_constant(limit), wide_constant(-limit)
    return less(bound, values) | less(values, lower)


def power_of_ten(exponent: int) -> Array:
    return wide_constant(10**exponent)


def scale_down(values: Array, digits: int, mode: str = "half_away") -> Array:
    """Return values / 10^digits, rounded half away from zero, or by `mode` "truncate", "floor" or "ceil"."""
    if digits == 0:
        return values
    size = magnitude(values)
    rest = np.zeros(values.shape, bool)
    remaining = digits - 1
    while remaining:
        step = min(remaining, 9)
        size, left_over = _divide(size, 10**step)
        rest |= left_over != 0
        remaining -= step
    size, last = _divide(size, 10)
    rest |= last != 0
    negative = values["high"] < 0
    bump = {
        "half_away": last >= 5,
        "truncate": np.zeros(values.shape, bool),
        "floor": negative & rest,
        "ceil": ~negative & rest,
    }[mode]
    size, _ = add(size, pack(bump.astype(np.uint64), np.int64(0)))
    return signed_as(size, negative)


def _divide(size: Array, divisor: int) -> tuple[Array, Unsigned]:
    """Quotient and remainder of non-negative values by less than 2^32: long division by halves of limbs."""
    by = np.uint64(divisor)
    high = size["high"].astype(np.uint64)
    low = size["low"]
    rest: Unsigned = np.zeros((), np.uint64)
    digits = []
    for half in (high >> _HALF, high & _LOW_HALF, low >> _HALF, low & _LOW_HALF):
        current = (rest << _HALF) | half
        quotient = current // by
        rest = current - quotient * by
        digits.append(quotient)
    first, second, third, fourth = digits
    quotient_high = ((first << _HALF) | second).astype(np.int64)
    return pack((third << _HALF) | fourth, quotient_high), rest


def remainder(left: Array, right: Array) -> Array:
    """Return left - right * trunc(left / right) for non-zero `right`.

    Where both fit 64 bits, as nearly always, by machine integers; the rest by Python's.
    """
    shape = np.broadcast_shapes(left.shape, right.shape)
    left, right = np.broadcast_to(left, shape), np.broadcast_to(right, shape)
    small = fits_int64(left) & fits_int64(right)
    divisor = np.where(small, signed(right["low"]), np.int64(1))
    divisor = np.where(
        divisor == -1, np.int64(1), divisor
    )  # the smallest int64 % -1 traps on some machines
    out = widen(np.fmod(signed(left["low"]), divisor))
    if not small.all():
        for row in np.flatnonzero(~small):
            a, b = (to_int(side.reshape(-1)[row]) for side in (left, right))
            out.reshape(-1)[row] = wide_limbs(abs(a) % abs(b) * (1 if a >= 0 else -1))
    return out


def to_int(value: Array) -> int:
    """Return one value as a Python integer."""
    return int(value["high"]) * 2**64 + int(value["low"])
