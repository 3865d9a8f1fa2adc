"""Aggregates that add: sums and averages, exact for integers and decimals, and the moments of floats.

libcudf's sums wrap.  An int64 sum is safe when the largest value times the number of rows fits; otherwise values are split
into two limbs, which are summed apart and put together in 128 bits.
"""

from __future__ import annotations

import pylibcudf as plc

from ...errors import OutOfRange
from ...plan.expr import AggregateCall
from .columns import (
    BOOL,
    FLOAT64,
    HUGE,
    INT64,
    as_integers,
    binary,
    cast,
    reinterpret,
    scalar,
    select,
)
from .groups import Answer, Argument, Groups
from .kernels_arithmetic import extremes
from .table import count_true, device_type

Op = plc.binaryop.BinaryOperator

LARGEST = 10**38 - 1  # what DECIMAL(38, s) holds
_LOW_BITS = (1 << 32) - 1
_LIMB = 10**19  # of a 128-bit value: both halves of 38 digits


def sum_of(call: AggregateCall, args: list[Argument], groups: Groups) -> Answer:
    (argument,) = args
    if call.type.is_float:
        return groups.ask(_as_double(argument, groups), "sum")
    total = exact_sum(argument, call.args[0].type.integer_range, groups)
    result = device_type(call.type)
    return lambda: reinterpret(cast(total(), HUGE), result)


def avg(call: AggregateCall, args: list[Argument], groups: Groups) -> Answer:
    """The exact sum divided once."""
    (argument,) = args
    argument_type = call.args[0].type
    count = groups.ask_count(argument)
    if argument_type.is_float:
        total = groups.ask(_as_double(argument, groups), "sum")
    else:
        total = exact_sum(argument, argument_type.integer_range, groups)
    unit = scalar(float(10**argument_type.scale), FLOAT64)

    def divide() -> plc.Column:
        divisor = cast(count(), FLOAT64)
        if argument_type.scale:
            divisor = binary(divisor, unit, Op.MUL, FLOAT64)
        return binary(cast(total(), FLOAT64), divisor, Op.DIV, FLOAT64)

    return divide


def product(call: AggregateCall, args: list[Argument], groups: Groups) -> Answer:
    return groups.ask(_as_double(args[0], groups), "product")


def var_samp(call: AggregateCall, args: list[Argument], groups: Groups) -> Answer:
    return _spread(args[0], groups, 1)


def var_pop(call: AggregateCall, args: list[Argument], groups: Groups) -> Answer:
    return _spread(args[0], groups, 0)


def stddev_samp(call: AggregateCall, args: list[Argument], groups: Groups) -> Answer:
    return _root(_spread(args[0], groups, 1))


def stddev_pop(call: AggregateCall, args: list[Argument], groups: Groups) -> Answer:
    return _root(_spread(args[0], groups, 0))


def exact_sum(argument: Argument, value_range: tuple[int, int], groups: Groups) -> Answer:
    """Ask for the sum of integers or unscaled decimals, of which the type says the range.

    The answer is INT64 or HUGE.  Raises `OutOfRange` for a sum of more than 38 digits.
    """
    integers = argument.derive("integers", as_integers(argument.column))
    if integers.column.type().id() == plc.TypeId.DECIMAL128:
        return _sum_of_wide(integers, value_range, groups)
    if _magnitude(value_range) * groups.rows >= 1 << 63:
        low, high = groups.once(("extremes", argument.key), lambda: extremes(integers.column))
        if _magnitude((low, high)) * groups.rows >= 1 << 63:
            return _sum_of_limbs(integers, groups)
    if integers.column.type().id() == plc.TypeId.UINT64:
        integers = integers.derive("signed", reinterpret(integers.column, INT64))
    return groups.ask(integers, "sum")


def _sum_of_limbs(argument: Argument, groups: Groups) -> Answer:
    """Low and high 32 bits apart: each sum of 2^31 of them fits an int64."""
    data_type = argument.column.type()
    is_signed = data_type.id() == plc.TypeId.INT64
    shift = Op.SHIFT_RIGHT if is_signed else Op.SHIFT_RIGHT_UNSIGNED

    def split() -> tuple[plc.Column, plc.Column]:
        mask, width = scalar(_LOW_BITS, data_type), scalar(32, data_type)
        low = binary(argument.column, mask, Op.BITWISE_AND, data_type)
        high = binary(argument.column, width, shift, data_type)
        return reinterpret(low, INT64), reinterpret(high, INT64)

    low_limb, high_limb = groups.once(("limbs", argument.key), split)
    low = groups.ask(argument.derive("low", low_limb), "sum")
    high = groups.ask(argument.derive("high", high_limb), "sum")

    def combine() -> plc.Column:
        upper = binary(cast(high(), HUGE), scalar(1 << 32, HUGE), Op.MUL, HUGE)
        return binary(upper, cast(low(), HUGE), Op.ADD, HUGE)

    return combine


def _sum_of_wide(argument: Argument, value_range: tuple[int, int], groups: Groups) -> Answer:
    """Sums of 128-bit values, plain when neither the sum nor a part of it can pass the limits."""
    values = argument.derive("huge", reinterpret(argument.column, HUGE))
    rows = groups.rows
    if _magnitude(value_range) * rows <= LARGEST:
        return groups.ask(values, "sum")
    extremes = groups.once(("extremes", argument.key), lambda: extremes(values.column))
    bound = _magnitude(extremes) * rows
    if bound <= LARGEST:
        return groups.ask(values, "sum")
    if bound < 1 << 127:
        return _checked(groups.ask(values, "sum"))
    return _sum_of_wide_limbs(values, groups)


def _sum_of_wide_limbs(argument: Argument, groups: Groups) -> Answer:
    """Quotient and remainder by 10^19 apart: both halves have sums of at most 29 digits."""
    limb = scalar(_LIMB, HUGE)

    def split(column: plc.Column) -> tuple[plc.Column, plc.Column]:
        upper = binary(column, limb, Op.DIV, HUGE)
        return upper, binary(column, binary(upper, limb, Op.MUL, HUGE), Op.SUB, HUGE)

    upper, lower = groups.once(("wide limbs", argument.key), lambda: split(argument.column))
    high = groups.ask(argument.derive("upper", upper), "sum")
    low = groups.ask(argument.derive("lower", lower), "sum")

    def combine() -> plc.Column:
        carry, rest = split(low())
        top = binary(high(), carry, Op.ADD, HUGE)
        _refuse_beyond(top, _LIMB)
        return binary(binary(top, limb, Op.MUL, HUGE), rest, Op.ADD, HUGE)

    return _checked(combine)


def _checked(answer: Answer) -> Answer:
    def check() -> plc.Column:
        column = answer()
        _refuse_beyond(column, LARGEST)
        return column

    return check


def _refuse_beyond(column: plc.Column, limit: int) -> None:
    """Raise `OutOfRange` when a HUGE value is above `limit` or below its negative."""
    above = binary(column, scalar(limit, HUGE), Op.GREATER, BOOL)
    below = binary(column, scalar(-limit, HUGE), Op.LESS, BOOL)
    if count_true(binary(above, below, Op.LOGICAL_OR, BOOL)):
        raise OutOfRange("The sum has more than 38 digits: cast the argument to DOUBLE.")


def _magnitude(bounds: tuple[int, int]) -> int:
    return max(abs(bounds[0]), abs(bounds[1]))


def _as_double(argument: Argument, groups: Groups) -> Argument:
    if argument.column.type().id() == plc.TypeId.FLOAT64:
        return argument
    column = groups.once(("double", argument.key), lambda: cast(argument.column, FLOAT64))
    return argument.derive("double", column)


def _spread(argument: Argument, groups: Groups, ddof: int) -> Answer:
    """The variance with `count - ddof` in the denominator; NULL where that is not positive."""
    values = _as_double(argument, groups)
    count = groups.ask_count(argument)
    variance = groups.ask(values, "variance", ddof)

    def settle() -> plc.Column:
        enough = binary(count(), scalar(ddof, INT64), Op.GREATER, BOOL)
        return select(enough, variance(), scalar(None, FLOAT64))

    return settle


def _root(answer: Answer) -> Answer:
    return lambda: plc.unary.unary_operation(answer(), plc.unary.UnaryOperator.SQRT)
