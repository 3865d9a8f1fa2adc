"""CAST and TRY_CAST between numbers, truth values, dates and timestamps, by DuckDB's rules of rounding and of what fits.

Text is read in `kernels_parse` and written in `kernels_print`; that of floats is the CPU's.
"""

from __future__ import annotations

import pylibcudf as plc

from ....errors import ConversionError
from ....plan.calendar import MICROS_A_DAY
from ....plan.expr import Cast
from ....plan.temporal import ticks
from ....plan.types import BIT, JSON, DataType, Kind
from ...integer_bounds import inside
from .. import columns
from ..table import device_type
from .kernels_arithmetic import bounds, proven
from .kernels_dates import floored
from .kernels_formats import parsed
from .kernels_print import between, printed
from .values import Constant, RowScope, binary, integer_type, integers, settled

Op = plc.binaryop.BinaryOperator
Unary = plc.unary.UnaryOperator


def cast_refusal(source: DataType, target: DataType) -> str | None:
    """Return why the GPU does not cast between two types, or None."""
    if source == target or Kind.NULL in (source.kind, target.kind):
        return None
    words = f"CAST of {source} to {target}"
    if Kind.INTERVAL in (source.kind, target.kind) or {JSON, BIT} & {source, target}:
        return words
    if source.kind is Kind.VARCHAR:
        return words if target.kind is Kind.TIME else None
    if target.kind is Kind.VARCHAR:
        # DuckDB writes no 0 before the point of a decimal that has no digits there.
        only_fraction = source.is_decimal and source.precision == source.scale
        return words if source.is_float or only_fraction else None
    if source.is_temporal != target.is_temporal or (source.is_float and target.is_wide_decimal):
        return words
    return None


def cast(expr: Cast, scope: RowScope, column: plc.Column) -> plc.Column:
    """Return values in another type; where there is none: NULL for TRY_CAST, else `ConversionError`."""
    source, target = expr.operand.type, expr.type
    if source == target:
        return column
    if Kind.NULL in (source.kind, target.kind):
        return columns.null_column(column.size(), device_type(target))
    if source.kind is Kind.VARCHAR:
        return parsed(expr, scope, column)
    if target.kind is Kind.VARCHAR:
        return printed(expr, scope, column)
    if target.kind is Kind.BOOLEAN:
        return _truth(column)
    if target.is_temporal:
        return _temporal(expr, scope, column)
    if source.kind is Kind.BOOLEAN:
        return _scaled(columns.cast(column, columns.INT64), target)
    if source.is_float:
        return _from_float(expr, scope, column)
    if target.is_float:
        return _to_float(column, source, target)
    return _exact(expr, scope, column)


def _truth(column: plc.Column) -> plc.Column:
    values = column if columns.is_float(column) else integers(column)
    zero = Constant(0.0 if columns.is_float(column) else 0, values.type())
    return binary(values, zero, Op.NOT_EQUAL, columns.BOOL)


def _temporal(expr: Cast, scope: RowScope, column: plc.Column) -> plc.Column:
    """Dates and counts of ticks as those of another unit; infinite ones, and those that leave 64 bits, are the host's."""
    source, target = expr.operand.type, expr.type
    result = device_type(target)
    more, fewer = ticks.steps(source, target)
    if more == fewer == 1 and target.kind is not Kind.TIME:
        return columns.reinterpret(column, result)
    most = ticks.most_converted(source, target)
    usual = between(column, -most, most)
    found = columns.cast(columns.as_integers(column), columns.INT64)
    if more > 1:
        found = binary(found, Constant(more, columns.INT64), Op.MUL, columns.INT64)
    elif target.kind is Kind.DATE:
        found = binary(floored(found, fewer), Constant(fewer, columns.INT64), Op.DIV, columns.INT64)
    elif fewer > 1:
        found = divided(found, len(str(fewer)) - 1)
    if target.kind is Kind.TIME:
        found = binary(found, Constant(MICROS_A_DAY, columns.INT64), Op.PYMOD, columns.INT64)
    found = columns.cast(found, integer_type(result))
    return settled(expr, scope, column, columns.reinterpret(found, result), usual)


def _scaled(integer_column: plc.Column, target: DataType) -> plc.Column:
    """0 and 1 as numbers."""
    if target.is_float:
        return columns.cast(integer_column, device_type(target))
    width = integer_type(device_type(target))
    number = columns.cast(integer_column, width)
    if target.scale:
        number = binary(number, Constant(10**target.scale, width), Op.MUL, width)
    return columns.reinterpret(number, device_type(target))


def _to_float(column: plc.Column, source: DataType, target: DataType) -> plc.Column:
    values = columns.cast(integers(column), columns.FLOAT64)
    if source.scale:
        values = binary(
            values, Constant(10.0**source.scale, columns.FLOAT64), Op.DIV, columns.FLOAT64
        )
    return columns.cast(values, device_type(target))


def _from_float(expr: Cast, scope: RowScope, column: plc.Column) -> plc.Column:
    target = expr.type
    if target.is_float:
        result = columns.cast(column, device_type(target))
        lost = binary(
            is_infinite(result), columns.negate(is_infinite(column)), Op.LOGICAL_AND, columns.BOOL
        )
        return _refused(expr, scope, result, lost)
    values = columns.cast(column, columns.FLOAT64)
    if target.is_decimal:
        shifted = binary(
            values, Constant(10.0**target.scale, columns.FLOAT64), Op.MUL, columns.FLOAT64
        )
        values = half_away(shifted)
        low, high = -(10.0**target.precision), 10.0**target.precision
        fits_low = binary(values, Constant(low, columns.FLOAT64), Op.GREATER, columns.BOOL)
    else:
        values = plc.unary.unary_operation(values, Unary.RINT)
        low, high = (float(v) for v in target.integer_range)
        fits_low = binary(values, Constant(low, columns.FLOAT64), Op.GREATER_EQUAL, columns.BOOL)
        high = float(target.integer_range[1] + 1)
    fits_high = binary(values, Constant(high, columns.FLOAT64), Op.LESS, columns.BOOL)
    wrong = columns.negate(binary(fits_low, fits_high, Op.LOGICAL_AND, columns.BOOL))
    width = integer_type(device_type(target))
    whole = columns.reinterpret(columns.cast(values, width), device_type(target))
    return _refused(expr, scope, whole, wrong)


def is_infinite(column: plc.Column) -> plc.Column:
    """Return whether each value is infinity or its negative."""
    size = plc.unary.unary_operation(column, Unary.ABS)
    return binary(size, Constant(float("inf"), column.type()), Op.EQUAL, columns.BOOL)


def half_away(values: plc.Column) -> plc.Column:
    """Round FLOAT values half away from zero; adding a half first would turn 0.49999999999999994 into 1."""
    data_type = values.type()
    size = plc.unary.unary_operation(values, Unary.ABS)
    whole = plc.unary.unary_operation(size, Unary.FLOOR)
    rest = binary(size, whole, Op.SUB, data_type)
    up = binary(rest, Constant(0.5, data_type), Op.GREATER_EQUAL, columns.BOOL)
    rounded = binary(whole, columns.cast(up, data_type), Op.ADD, data_type)
    return with_sign_of(rounded, values)


def with_sign_of(sizes: plc.Column, values: plc.Column) -> plc.Column:
    negative = columns.true_mask(
        binary(values, Constant(0.0, values.type()), Op.LESS, columns.BOOL)
    )
    return columns.select(negative, plc.unary.unary_operation(sizes, Unary.NEGATE), sizes)


def _exact(expr: Cast, scope: RowScope, column: plc.Column) -> plc.Column:
    """Integers and decimals: rescaled, rounded half away from zero, and checked unless the types or values prove the fit."""
    source, target = expr.operand.type, expr.type
    shift = target.scale - source.scale
    found = _after(source.integer_range, shift)
    if not inside(found, target.integer_range):
        found = _after(proven(expr.operand, scope.table.columns), shift)
    if not inside(found, target.integer_range):
        found = _after(bounds(expr.operand, scope), shift)
    fits = inside(found, target.integer_range)
    result_type = device_type(target)
    width = integer_type(result_type)
    values = integers(column)
    if fits and shift >= 0:
        return columns.reinterpret(_multiplied(columns.cast(values, width), shift), result_type)
    work = (
        values if shift < 0 and source.kind is Kind.DECIMAL else columns.cast(values, columns.HUGE)
    )
    if shift >= 0:
        wrong = beyond(work, _before(target.integer_range, shift))
        if width.id() == columns.HUGE.id():
            work = _multiplied(work, shift)
            return _refused(expr, scope, columns.reinterpret(work, result_type), wrong)
        # Values that do not fit wrap in the narrow type, and are NULL or have raised.
        narrow = _multiplied(columns.cast(work, width), shift)
        return _refused(expr, scope, columns.reinterpret(narrow, result_type), wrong)
    rounded = divided(work, -shift)
    result = columns.reinterpret(columns.cast(rounded, width), result_type)
    if fits:
        return result
    return _refused(expr, scope, result, beyond(rounded, target.integer_range))


def _after(found: tuple[int, int], shift: int) -> tuple[int, int]:
    if shift >= 0:
        return found[0] * 10**shift, found[1] * 10**shift
    unit: int = 10**-shift
    return -(-found[0] // unit) - 1, found[1] // unit + 1


def _before(limits: tuple[int, int], shift: int) -> tuple[int, int]:
    """The values that times 10^shift lie within some limits."""
    unit: int = 10**shift
    return -(-limits[0] // unit), limits[1] // unit


def beyond(values: plc.Column, limits: tuple[int, int]) -> plc.Column:
    """Return whether each integer is outside of limits, of which those beyond its type never matter."""
    huge = columns.cast(values, columns.HUGE)
    above = binary(huge, Constant(limits[1], columns.HUGE), Op.GREATER, columns.BOOL)
    below = binary(huge, Constant(limits[0], columns.HUGE), Op.LESS, columns.BOOL)
    return binary(above, below, Op.LOGICAL_OR, columns.BOOL)


def _multiplied(values: plc.Column, digits: int) -> plc.Column:
    if not digits:
        return values
    return binary(values, Constant(10**digits, values.type()), Op.MUL, values.type())


def divided(values: plc.Column, digits: int, mode: str = "half_away") -> plc.Column:
    """Drop decimal places of INT64 or HUGE integers: rounded half away from zero, or "truncate", "floor", "ceil"."""
    width = values.type()
    unit = Constant(10**digits, width)
    whole = binary(values, unit, Op.DIV, width)
    if mode == "truncate":
        return whole
    rest = binary(values, binary(whole, unit, Op.MUL, width), Op.SUB, width)
    limit = 5 * 10 ** (digits - 1)
    up = None if mode == "floor" else Constant(limit if mode == "half_away" else 1, width)
    down = None if mode == "ceil" else Constant(-limit if mode == "half_away" else -1, width)
    if up is not None:
        whole = binary(
            whole,
            _as_number(binary(rest, up, Op.GREATER_EQUAL, columns.BOOL), width),
            Op.ADD,
            width,
        )
    if down is not None:
        whole = binary(
            whole, _as_number(binary(rest, down, Op.LESS_EQUAL, columns.BOOL), width), Op.SUB, width
        )
    return whole


def _as_number(flags: plc.Column, width: plc.DataType) -> plc.Column:
    return columns.cast(columns.cast(flags, columns.INT64), width)


def _refused(expr: Cast, scope: RowScope, result: plc.Column, wrong: plc.Column) -> plc.Column:
    """Raise for values that are wrong in an active row, or make them NULL for TRY_CAST."""
    if expr.safe:
        return columns.where_true(result, columns.negate(columns.true_mask(wrong)))
    if scope.any(wrong):
        raise ConversionError(
            f"A {expr.operand.type} value is out of range for {expr.type}: "
            "cast to a wider type, or use TRY_CAST to get NULL for such values."
        )
    return result
