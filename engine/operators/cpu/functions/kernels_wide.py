"""128-bit integers in numpy: the unscaled values of decimals of more than 18 digits; decimals in another scale and as doubles.

A value is two limbs in two's complement (`vectors.WIDE`).  Decimals hold at most 38 digits, less than 2^127, so a sum of two
overflows by its sign alone; products are bounded by their size as doubles before their low 128 bits are trusted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....plan.types import DataType
from .vectors import WIDE, Array, Mask, dtype_of, wide_limbs

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
    values = data if data.dtype == WIDE else widen(data)
    return multiply(values, power_of_ten(digits))


def _drop(data: Array, digits: int, mode: str) -> Array:
    if digits == 0:
        return data
    if data.dtype == WIDE or digits > MACHINE_DIGITS:
        return scale_down(
            data if data.dtype == WIDE else widen(data), min(digits, NO_DIGIT_LEFT), mode
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
        return widen(data)
    if data.dtype == WIDE:
        data = signed(data["low"])
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
    approximate = to_double(values) if values.dtype == WIDE else values.astype(np.float64)
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
        value = to_int(values[row]) if values.dtype == WIDE else int(values[row])
        out[row] = value / 10**scale
    return out


def _long_doubles(values: Array) -> npt.NDArray[np.longdouble]:
    if values.dtype != WIDE:
        return values.astype(np.longdouble)
    return values["high"].astype(np.longdouble) * np.longdouble(2.0**64) + values["low"]
