"""Rounding and floating-point functions."""

from __future__ import annotations

import math
from collections.abc import Callable

import pylibcudf as plc

from ....plan.expr import Call, Literal
from ....plan.functions import SCALAR
from ....plan.types import MAX_DECIMAL_DIGITS
from .. import columns as col
from ..table import device_type
from .kernels_casts import divided, half_away, is_infinite, with_sign_of
from .values import Constant, Kernel, RowScope, Value, as_column, binary, integer_type, integers

Op = plc.binaryop.BinaryOperator
Unary = plc.unary.UnaryOperator

_LARGEST_POWER = 308  # of ten, in a double
_MODES = {"round": "half_away", "trunc": "truncate", "ceil": "ceil", "floor": "floor"}


def rounding(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    """Round and trunc, with a literal number of digits or without, and ceil and floor."""
    column = as_column(args[0], scope.rows)
    digits = _digits(call)
    if digits is None:
        return col.constant(None, device_type(call.type), scope.rows)
    if call.args[0].type.is_decimal:
        return _round_decimals(call, column, digits)
    if not call.args[0].type.is_float:
        return column
    data_type = column.type()
    if digits == 0:
        return _whole(call.function, column)
    # As DuckDB: by a power of ten, and unchanged (or 0 where round gives tens) where that overflows.
    factor = Constant(10.0 ** abs(digits) if abs(digits) <= _LARGEST_POWER else math.inf, data_type)
    there, back = (Op.MUL, Op.DIV) if digits > 0 else (Op.DIV, Op.MUL)
    product = binary(column, factor, there, data_type)
    scaled = _whole(call.function, product)
    if call.function == "round" and digits > 0 and data_type.id() == col.FLOAT64.id():
        below = _is_below_half(column, factor.value, product)
        scaled = col.select(below, _whole("trunc", product), scaled)
    rounded = binary(scaled, factor, back, data_type)
    difference = binary(rounded, rounded, Op.SUB, data_type)
    finite = col.negate(plc.unary.is_nan(difference))
    unchanged = digits > 0 or call.function == "trunc"
    other = column if unchanged else col.constant(0.0, data_type, scope.rows)
    return col.select(finite, rounded, other)


def _is_below_half(column: plc.Column, factor: float, product: plc.Column) -> plc.Column:
    """Return where a product of doubles ends in .5 that is less than that before it is rounded, by its rounding error (Dekker, 1971)."""

    def apply(left: Value, right: Value, operator: plc.binaryop.BinaryOperator) -> plc.Column:
        return binary(left, right, operator, col.FLOAT64)

    split = float((1 << 27) + 1)
    far = apply(column, Constant(split, col.FLOAT64), Op.MUL)
    high = apply(far, apply(far, column, Op.SUB), Op.SUB)
    low = apply(column, high, Op.SUB)
    above = factor * split - (factor * split - factor)
    error = apply(apply(high, Constant(above, col.FLOAT64), Op.MUL), product, Op.SUB)
    for part, size in ((high, factor - above), (low, above), (low, factor - above)):
        error = apply(error, apply(part, Constant(size, col.FLOAT64), Op.MUL), Op.ADD)
    zero = Constant(0.0, col.FLOAT64)
    rest = apply(product, _whole("trunc", product), Op.SUB)
    size = plc.unary.unary_operation(rest, Unary.ABS)
    half = binary(size, Constant(0.5, col.FLOAT64), Op.EQUAL, col.BOOL)
    less = binary(apply(error, product, Op.MUL), zero, Op.LESS, col.BOOL)
    return col.true_mask(binary(half, less, Op.LOGICAL_AND, col.BOOL))


def _digits(call: Call) -> int | None:
    if len(call.args) == 1:
        return 0
    digits = call.args[1]
    assert isinstance(digits, Literal)
    return digits.value if digits.value is None else int(digits.value)  # type: ignore[arg-type]


def _whole(function: str, column: plc.Column) -> plc.Column:
    match function:
        case "ceil":
            return plc.unary.unary_operation(column, Unary.CEIL)
        case "floor":
            return plc.unary.unary_operation(column, Unary.FLOOR)
        case "trunc":
            size = plc.unary.unary_operation(column, Unary.ABS)
            return with_sign_of(plc.unary.unary_operation(size, Unary.FLOOR), column)
    return half_away(column)


def _round_decimals(call: Call, column: plc.Column, digits: int) -> plc.Column:
    source, target = call.args[0].type, call.type
    width = integer_type(device_type(target))
    values = integers(column)
    if digits >= source.scale:
        return col.reinterpret(col.cast(values, width), device_type(target))
    if source.scale - digits > source.precision:
        zero = col.cast(binary(values, values, Op.SUB, values.type()), width)
        return col.reinterpret(zero, device_type(target))
    dropped = divided(values, source.scale - digits, _MODES[call.function])
    result = col.cast(dropped, width)
    if target.scale > digits:
        unit = Constant(10 ** (target.scale - digits), width)
        result = binary(result, unit, Op.MUL, width)
    return col.reinterpret(result, device_type(target))


def _operator(name: str) -> Kernel:
    """Return the kernel of one of libcudf's operators."""

    def kernel(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
        first, *others = args
        if not others:
            return plc.unary.unary_operation(as_column(first, scope.rows), getattr(Unary, name))
        return binary(first, others[0], getattr(Op, name), device_type(call.type))

    return kernel


def _logarithm(base: float) -> Kernel:
    def kernel(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
        column = as_column(args[0], scope.rows)
        return binary(column, Constant(base, col.FLOAT64), Op.LOG_BASE, col.FLOAT64)

    return kernel


def _times(factor: float) -> Kernel:
    def kernel(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
        return binary(
            as_column(args[0], scope.rows), Constant(factor, col.FLOAT64), Op.MUL, col.FLOAT64
        )

    return kernel


def is_nan(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    return _test(as_column(args[0], scope.rows), plc.unary.is_nan)


def is_inf(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    return is_infinite(as_column(args[0], scope.rows))


def is_finite(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    column = as_column(args[0], scope.rows)
    difference = binary(column, column, Op.SUB, column.type())
    return binary(difference, Constant(0.0, column.type()), Op.EQUAL, col.BOOL)


def _test(column: plc.Column, test: Callable[[plc.Column], plc.Column]) -> plc.Column:
    """NULL stays NULL, which libcudf's tests call FALSE."""
    found = test(column)
    if not column.null_count():
        return found
    return col.select(
        plc.unary.is_valid(column), found, col.constant(None, col.BOOL, column.size())
    )


def _round_refusal(call: Call) -> str | None:
    """A column of digits, integers, which have digits only before the point, and decimals that cannot become longer but may."""
    source = call.args[0].type
    if len(call.args) > 1 and not isinstance(call.args[1], Literal):
        return f"{call.function}() with a column of digits"
    if source.is_integer and len(call.args) > 1:
        return f"{call.function}() of {source} to tens"
    to_tens = call.function == "round" and (_digits(call) or 0) < 0
    if source.precision == MAX_DECIMAL_DIGITS and to_tens:
        return f"{call.function}() of {source} to tens, which may have a digit more"
    return None


KERNELS: dict[str, Kernel] = {
    **{row.name: _operator(row.libcudf) for row in SCALAR.values() if row.libcudf},
    **dict.fromkeys(_MODES, rounding),
    "log10": _logarithm(10.0),
    "log2": _logarithm(2.0),
    "degrees": _times(180 / math.pi),
    "radians": _times(math.pi / 180),
    "is_nan": is_nan,
    "is_inf": is_inf,
    "is_finite": is_finite,
}
REFUSALS = {"round": _round_refusal, "trunc": _round_refusal}
