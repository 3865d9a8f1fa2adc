"""Arithmetic whose results are exact or raise: + - * // % and negation; `/` and floats follow IEEE 754.

Whether a result can leave its type is decided for a chunk at once, from types and literals or from the smallest and largest
argument; only when that proves nothing is the operation done in 128 bits, row by row checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ....errors import ExecutionError, OutOfRange
from ....plan.expr import Call
from ....plan.functions import SCALAR
from ....plan.types import TINYINT, DataType, room_for
from ...integer_bounds import NAMES, Bounds, combined, inside, type_bounds
from . import kernels_wide as wide, vectors as vec

_WIDE_OPERATIONS: dict[str, Callable[[vec.Array, vec.Array], tuple[vec.Array, vec.Mask]]] = {
    "add": wide.add,
    "sub": wide.subtract,
    "mul": wide.multiply,
}
_OPERATIONS: dict[str, Callable[[vec.Array, vec.Array], vec.Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
}


def exact(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
    """+, - and *."""
    left, right = args
    valid = vec.both_valid(left, right)
    if call.type.is_float:
        return vec.Vector(call.type, _OPERATIONS[call.function](left.data, right.data), valid)
    return vec.Vector(call.type, _integers(call, left, right, valid), valid)


def _integers(call: Call, left: vec.Vector, right: vec.Vector, valid: vec.Mask | None) -> vec.Array:
    limits = call.type.integer_range
    machine = vec.WIDE not in (left.data.dtype, right.data.dtype)
    if machine:
        fits = inside(
            combined(call.function, type_bounds(call.args[0]), type_bounds(call.args[1])), limits
        )
        fits = fits or inside(
            combined(call.function, bounds(left.data), bounds(right.data)), limits
        )
        target = vec.dtype_of(call.type)
        if fits and target != vec.WIDE:
            a, b = (v.data.astype(target, copy=False) for v in (left, right))
            return _OPERATIONS[call.function](a, b)
    a, b = (v.data if v.data.dtype == vec.WIDE else wide.widen(v.data) for v in (left, right))
    result, lost = _WIDE_OPERATIONS[call.function](a, b)
    even = limits[0] == -limits[1]  # as those of decimals are, but not those of integers
    lost = lost | (wide.out_of_range(result, limits[1]) if even else _outside(result, limits))
    _raise_overflow(call, a, b, lost, valid)
    return narrowed(result, call.type)


def _outside(values: vec.Array, limits: Bounds) -> vec.Mask:
    return wide.less(wide.wide_constant(limits[1]), values) | wide.less(
        values, wide.wide_constant(limits[0])
    )


def narrowed(values: vec.Array, data_type: DataType) -> vec.Array:
    """Return 128-bit values, known to fit, in the form of `data_type`."""
    target = vec.dtype_of(data_type)
    return values if target == vec.WIDE else wide.signed(values["low"]).astype(target)


def _raise_overflow(
    call: Call, left: vec.Array, right: vec.Array, lost: vec.Mask, valid: vec.Mask | None
) -> None:
    lost = lost if valid is None else lost & valid
    if lost.any():
        row = vec.first_row(lost)
        name, sign = NAMES[call.function], SCALAR[call.function].sign
        a, b = (wide.to_int(v if v.ndim == 0 else v[row]) for v in (left, right))
        a_type, b_type = (arg.type for arg in call.args)
        raise OutOfRange(
            f"Overflow in {name} of {call.type} ({shown(a, a_type)} {sign} {shown(b, b_type)}): "
            + room_for(call.type)
        )


def shown(unscaled: int, data_type: DataType) -> str:
    """A value as SQL writes it."""
    if not data_type.is_decimal or data_type.scale == 0:
        return str(unscaled)
    digits = str(abs(unscaled)).rjust(data_type.scale + 1, "0")
    return f"{'-' if unscaled < 0 else ''}{digits[: -data_type.scale]}.{digits[-data_type.scale :]}"


def bounds(data: vec.Array) -> Bounds:
    """Smallest and largest machine integer, values under NULLs included."""
    if data.size == 0:
        return 0, 0
    return int(data.min()), int(data.max())


def negate(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
    (arg,) = args
    if call.type.is_float:
        return vec.Vector(call.type, -arg.data, arg.valid)
    if arg.data.dtype == vec.WIDE:
        return vec.Vector(call.type, wide.negate(arg.data), arg.valid)
    low, high = bounds(arg.data)
    limits = call.type.integer_range
    if not inside((-high, -low), limits):
        wrong = arg.data != 0 if limits[0] == 0 else arg.data == limits[0]
        _raise_where(
            wrong, arg.valid, lambda row: f"Overflow in negation of {vec.at(arg.data, row)}"
        )
    return vec.Vector(call.type, np.negative(arg.data), arg.valid)


def absolute(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
    (arg,) = args
    if arg.data.dtype == vec.WIDE:
        return vec.Vector(call.type, wide.magnitude(arg.data), arg.valid)
    if call.type.is_signed_integer and bounds(arg.data)[0] == call.type.integer_range[0]:
        wrong = arg.data == call.type.integer_range[0]
        _raise_where(wrong, arg.valid, lambda row: f"Overflow on abs({vec.at(arg.data, row)})")
    return vec.Vector(call.type, np.abs(arg.data), arg.valid)


def _raise_where(wrong: vec.Array, valid: vec.Mask | None, words: Callable[[int], str]) -> None:
    wrong = wrong if valid is None else wrong & valid
    if wrong.any():
        raise OutOfRange(f"{words(vec.first_row(wrong))}: cast the argument to a wider type.")


def sign(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
    """-1, 0 or 1; NaN gives 0."""
    (arg,) = args
    if arg.data.dtype == vec.WIDE:
        data = np.where(arg.data["high"] < 0, -1, (arg.data["low"] != 0) | (arg.data["high"] != 0))
    else:
        data = (arg.data > 0).astype(np.int8) - (arg.data < 0)
    return vec.Vector(TINYINT, np.asarray(data).astype(np.int8), arg.valid)


def divide(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
    left, right = args
    return vec.Vector(call.type, left.data / right.data, vec.both_valid(left, right))


def integer_division(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
    """`//`: integers truncate toward zero; floats divide as `/` does, but not by zero."""
    left, right = args
    valid = vec.both_valid(left, right)
    _refuse_zero(call, left, right, valid)
    if call.type.is_float:
        return vec.Vector(call.type, left.data / right.data, valid)
    if left.data.dtype == vec.WIDE:
        return vec.Vector(call.type, _wide_quotient(left.data, right.data), valid)
    divisor = _safe_divisor(call, left, right, valid)
    if call.type.integer_range[0] == 0:
        return vec.Vector(call.type, left.data // divisor, valid)
    whole = left.data - np.fmod(left.data, divisor)
    return vec.Vector(call.type, whole // divisor, valid)


def modulo(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
    """`%`: the result has the sign of the dividend; a float modulo zero is NaN."""
    left, right = args
    valid = vec.both_valid(left, right)
    if call.type.is_float:
        return vec.Vector(call.type, np.fmod(left.data, right.data), valid)
    _refuse_zero(call, left, right, valid)
    if left.data.dtype == vec.WIDE:
        safe = np.where(_is_zero(right.data), wide.wide_constant(1), right.data)
        return vec.Vector(call.type, wide.remainder(left.data, safe), valid)
    # Of a NULL row's zero nothing comes, and what is left by -1 is left by 1, of the smallest integer too
    divisor = np.where((right.data == 0) | (right.data == -1), right.data.dtype.type(1), right.data)
    return vec.Vector(call.type, np.fmod(left.data, divisor), valid)


def modulo_of_decimals(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
    """`%` of decimals that are doubles by now: zero is refused as for decimals."""
    left, right = args
    _refuse_zero(call, left, right, vec.both_valid(left, right))
    return modulo(call, args)


def _is_zero(data: vec.Array) -> vec.Array:
    if data.dtype == vec.WIDE:
        return (data["low"] == 0) & (data["high"] == 0)
    return data == 0


def _refuse_zero(call: Call, left: vec.Vector, right: vec.Vector, valid: vec.Mask | None) -> None:
    zero = _is_zero(right.data)
    zero = zero if valid is None else zero & valid
    if zero.any():
        row = vec.first_row(np.broadcast_to(zero, np.broadcast_shapes(zero.shape, left.data.shape)))
        dividend = left.data if left.data.ndim == 0 else left.data[row]
        number = wide.to_int(dividend) if left.data.dtype == vec.WIDE else dividend.item()
        text = number if isinstance(number, float) else shown(number, left.type)
        sign = "//" if call.function == "int_div" else "%"
        raise ExecutionError(
            f"Division by zero in expression ({text} {sign} 0): "
            "use nullif(divisor, 0) to get NULL for such rows."
        )


def _safe_divisor(
    call: Call, left: vec.Vector, right: vec.Vector, valid: vec.Mask | None
) -> vec.Array:
    """The divisor without the zeros of NULL rows; raises where the smallest integer is divided by -1."""
    limits = call.type.integer_range
    divisor = np.where(right.data == 0, right.data.dtype.type(1), right.data)
    if limits[0] < 0 and not call.type.is_decimal:
        wrong = (left.data == limits[0]) & (divisor == -1)
        if wrong.any():
            _raise_where(wrong, valid, lambda _: f"Overflow in division of {limits[0]} / -1")
            divisor = np.where(wrong, divisor.dtype.type(1), divisor)
    return divisor


def _wide_quotient(left: vec.Array, right: vec.Array) -> vec.Array:
    """DECIMAL(38,0) // DECIMAL(38,0): by machine integers where both fit 64 bits, else by Python's."""
    shape = np.broadcast_shapes(left.shape, right.shape)
    left, right = np.broadcast_to(left, shape), np.broadcast_to(right, shape)
    out = np.empty(shape, vec.WIDE)
    small = wide.fits_int64(left) & wide.fits_int64(right)
    a: npt.NDArray[np.int64] = wide.signed(left["low"])
    b = np.where(small & ~_is_zero(right), wide.signed(right["low"]), np.int64(1))
    small = small & ~((a == np.iinfo(np.int64).min) & (b == -1))
    b = np.where(small, b, np.int64(1))
    out[...] = wide.widen((a - np.fmod(a, b)) // b)
    for row in np.flatnonzero(~small):
        x, y = (wide.to_int(side.reshape(-1)[row]) for side in (left, right))
        quotient = abs(x) // abs(y or 1)
        out.reshape(-1)[row] = vec.wide_limbs(quotient if (x < 0) == (y < 0) else -quotient)
    return out


def _by_divisors(
    call: Call, args: tuple[vec.Vector, ...], function: Callable[..., vec.Array], name: str
) -> vec.Vector:
    """Gcd or lcm, in 64 bits where the arguments prove that they suffice, else by Python's integers."""
    left, right = args
    valid = vec.both_valid(left, right)
    limits = call.type.integer_range
    if left.data.dtype != vec.WIDE:
        (low, high), (other_low, other_high) = bounds(left.data), bounds(right.data)
        largest = max(-low, high, 1) * (max(-other_low, other_high, 1) if name == "lcm" else 1)
        if inside((largest, max(largest, -other_low, other_high)), (0, limits[1])):
            return vec.Vector(call.type, function(left.data, right.data), valid)
    shape = np.broadcast_shapes(left.data.shape, right.data.shape)
    sides = [np.broadcast_to(v.data, shape).reshape(-1) for v in (left, right)]
    rows = np.ones(shape, bool) if valid is None else np.broadcast_to(valid, shape)
    out = np.zeros(shape, vec.dtype_of(call.type))
    for row in np.flatnonzero(rows):
        a, b = (wide.to_int(s[row]) if s.dtype == vec.WIDE else s[row].item() for s in sides)
        value = math.gcd(a, b) if name == "gcd" else math.lcm(a, b)
        if value > limits[1]:
            words = f"Overflow in {name}({a}, {b}), whose result does not fit {call.type}"
            raise OutOfRange(f"{words}: {room_for(call.type)}")
        out.reshape(-1)[row] = vec.wide_limbs(value) if out.dtype == vec.WIDE else value
    return vec.Vector(call.type, out, valid)


KERNELS: dict[str, vec.Kernel] = {
    "add": exact,
    "sub": exact,
    "mul": exact,
    "div": divide,
    "int_div": integer_division,
    "mod": modulo,
    "mod_of_decimals": modulo_of_decimals,
    "neg": negate,
    "abs": absolute,
    "sign": sign,
    "gcd": lambda call, args: _by_divisors(call, args, np.gcd, "gcd"),
    "lcm": lambda call, args: _by_divisors(call, args, np.lcm, "lcm"),
}
