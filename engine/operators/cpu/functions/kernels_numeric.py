"""Rounding, floating-point functions, and bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import OutOfRange
from ....plan.expr import Call
from ....plan.functions import SCALAR
from ....plan.types import room_for
from . import kernels_wide as decimals, kernels_wide as wide, vectors as vec
from .kernels_arithmetic import shown

_NEAREST = {"round": "half_away", "trunc": "truncate", "ceil": "ceil", "floor": "floor"}


def rounding(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
    """Round and trunc, with digits or without, and ceil and floor."""
    value = args[0]
    valid = vec.both_valid(*args)
    if value.type.is_float:
        digits = args[1].data if len(args) > 1 else None
        return vec.Vector(call.type, _round_floats(call.function, value.data, digits), valid)
    if value.type.is_decimal:
        return vec.Vector(call.type, _round_decimals(call, args, valid), valid)
    if len(args) == 1:
        return value
    return vec.Vector(call.type, _round_integers(call, value, args[1], valid), valid)


def _round_decimals(call: Call, args: tuple[vec.Vector, ...], valid: vec.Mask | None) -> vec.Array:
    value = args[0]
    digits = int(args[1].data) if len(args) > 1 else 0
    scale = value.type.scale
    if digits >= scale:
        return decimals.fitted(value.data, call.type)
    if scale - digits >= decimals.NO_DIGIT_LEFT:
        return decimals.fitted(np.zeros(value.data.shape, np.int64), call.type)
    data, _ = decimals.rescale(value.data, digits - scale, _NEAREST[call.function])
    data, _ = decimals.rescale(data, call.type.scale - digits)
    return (
        _fitted(call, value.data, data, digits, valid)
        if digits < 0
        else decimals.fitted(data, call.type)
    )


def _round_integers(
    call: Call, value: vec.Vector, digits: vec.Vector, valid: vec.Mask | None
) -> vec.Array:
    """Negative digits round to tens, hundreds and so on; the others change nothing."""
    if digits.data.ndim == 0:
        return _round_to(call, value.data, int(digits.data), valid)
    out = np.array(np.broadcast_to(value.data, digits.data.shape))
    for d in np.unique(digits.data[digits.data < 0]):
        rows = digits.data == d
        here = rows if valid is None else rows & valid
        out[rows] = _round_to(call, out, int(d), here)[rows]
    return out


def _round_to(call: Call, data: vec.Array, digits: int, valid: vec.Mask | None) -> vec.Array:
    if digits >= 0:
        return data
    if digits < -decimals.MACHINE_DIGITS - 1:
        return np.zeros_like(data)
    values = wide.widen(data) if data.dtype in (vec.WIDE, np.uint64) else data
    rounded = decimals.rescale(values, digits, _NEAREST[call.function])[0]
    result, _ = decimals.rescale(rounded, -digits)
    return _fitted(call, data, result, digits, valid)


def _fitted(
    call: Call, data: vec.Array, result: vec.Array, digits: int, valid: vec.Mask | None
) -> vec.Array:
    """Return what rounding to tens gave, which may have a digit more; raises `OutOfRange`."""
    low, high = call.type.integer_range
    checked = result if result.dtype == vec.WIDE else wide.widen(result)
    lost = wide.less(checked, wide.wide_constant(low)) | wide.less(
        wide.wide_constant(high), checked
    )
    lost = lost if valid is None else lost & valid
    if lost.any():
        given = data if data.dtype == vec.WIDE else wide.widen(data)
        value = shown(
            wide.to_int(given if data.ndim == 0 else given[vec.first_row(lost)]), call.type
        )
        raise OutOfRange(f"Overflow in {call.function}({value}, {digits}): {room_for(call.type)}")
    return decimals.fitted(result, call.type)


def _round_floats(function: str, data: vec.Array, digits: vec.Array | None) -> vec.Array:
    if function == "ceil":
        return np.ceil(data)
    if function == "floor":
        return np.floor(data)
    nearest = np.trunc if function == "trunc" else half_away
    if digits is None:
        return nearest(data)
    # As DuckDB: by a double power of ten, and unchanged (or 0 where round gives tens) where that overflows.
    factor = np.power(10.0, np.abs(digits))
    up, down = nearest(data * factor), nearest(data / factor)
    if function == "round":
        up = np.where(_is_below_half(data, factor), np.trunc(data * factor), up)
    rounded = np.where(digits >= 0, up / factor, down * factor)
    fallback = np.where((digits >= 0) | (function == "trunc") | ~np.isfinite(data), data, 0)
    return np.where(np.isfinite(rounded), rounded, fallback).astype(data.dtype)


def _is_below_half(data: vec.Array, factor: vec.Array) -> vec.Mask:
    """Where a product ends in .5 that is less than that before it is rounded: 2.675 is 2.67499999999999982 * 100.

    Dekker, A floating-point technique for extending the available precision, 1971: the rounding error of a product.
    """
    product = data * factor
    (a, a_low), (b, b_low) = _halves(data), _halves(factor)
    error = ((a * b - product) + a * b_low + a_low * b) + a_low * b_low
    half = np.abs(product - np.trunc(product)) == 0.5
    return half & (error != 0) & ((error < 0) == (product > 0))


def _halves(data: vec.Array) -> tuple[vec.Array, vec.Array]:
    """Return doubles as sums of two of 26 bits, whose products are exact."""
    far = data * float((1 << 27) + 1)
    high = far - (far - data)
    return high, data - high


def half_away(data: vec.Array) -> vec.Array:
    """Adding a half first would turn 0.49999999999999994 into 1."""
    whole = np.trunc(data)
    return np.where(
        np.abs(data - whole) >= 0.5, whole + np.copysign(data.dtype.type(1), data), whole
    )


def _even(data: vec.Array) -> vec.Array:
    """Away from zero to the next even number."""
    size = np.ceil(np.abs(data))
    return np.copysign(np.where(size % 2 == 1, size + 1, size), data)


def unsigned(data: vec.Array) -> vec.Array:
    """The bits of integers as numbers without a sign, of which numpy counts the bits."""
    return data.view(f"u{data.itemsize}")


def _each(function: Callable[..., vec.Array]) -> vec.Kernel:
    """Return the kernel of a function of numpy's, whose value is NULL where an argument is."""

    def kernel(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
        values = np.asarray(function(*(arg.data for arg in args)))
        return vec.Vector(call.type, values, vec.both_valid(*args))

    return kernel


def shift_left(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
    """Raises for negative arguments and where a bit would be lost."""
    value, shift = args
    valid = vec.both_valid(value, shift)
    bits = vec.dtype_of(call.type).itemsize * 8
    usable = bits - 1 if call.type.is_signed_integer else bits
    zero = value.data == 0
    _refuse(
        value.data < 0,
        valid,
        lambda row: f"Cannot left-shift negative number {vec.at(value.data, row)}",
    )
    _refuse(
        shift.data < 0,
        valid,
        lambda row: f"Cannot left-shift by negative number {vec.at(shift.data, row)}",
    )
    _refuse((shift.data >= bits) & ~zero, valid, lambda _: "Left-shift value is out of range")
    places = np.clip(shift.data, 0, bits - 1)
    top = np.uint64(2**usable - 1) >> places.astype(np.uint64)
    lost = ~zero & (np.maximum(value.data, 0).astype(np.uint64) > top)
    _refuse(lost, valid, lambda row: f"Overflow in left shift of {vec.at(value.data, row)}")
    return vec.Vector(call.type, np.left_shift(value.data, places.astype(value.data.dtype)), valid)


def _refuse(wrong: vec.Array, valid: vec.Mask | None, words: Callable[[int], str]) -> None:
    wrong = wrong if valid is None else wrong & valid
    if wrong.any():
        raise OutOfRange(
            f"{words(vec.first_row(wrong))}: cast to a wider type or change the shift."
        )


def shift_right(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
    """A shift outside of the type's width gives 0."""
    value, shift = args
    bits = vec.dtype_of(call.type).itemsize * 8
    inside = (shift.data >= 0) & (shift.data < bits)
    places = np.where(inside, shift.data, shift.data.dtype.type(0))
    data = np.where(inside, np.right_shift(value.data, places), value.data.dtype.type(0))
    return vec.Vector(call.type, data, vec.both_valid(value, shift))


def bit_count(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
    (value,) = args
    counts = np.bitwise_count(unsigned(value.data)).astype(vec.dtype_of(call.type))
    return vec.Vector(call.type, counts, value.valid)


KERNELS: dict[str, vec.Kernel] = {
    **{row.name: _each(getattr(np, row.numpy)) for row in SCALAR.values() if row.numpy},
    **dict.fromkeys(_NEAREST, rounding),
    "even": _each(_even),
    "signbit": _each(lambda data: np.signbit(data) & ~np.isnan(data)),
    "bit_count": bit_count,
    "shift_left": shift_left,
    "shift_right": shift_right,
}
