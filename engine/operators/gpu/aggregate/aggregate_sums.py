"""Aggregates that add: sums and averages, exact for integers and decimals.

libcudf's sums wrap.  An int64 sum is safe when the largest value times the number of rows fits; otherwise values are split
into two limbs, which are summed apart and put together in 128 bits.  128-bit values are summed in 64 bits wherever they fit:
groups add 64-bit numbers with one atomic instruction, and 128-bit ones in a loop that repeats whenever another thread was faster
(24 ms of 36 ms for TPC-H Q9 at SF10 on an H200: 3.2 million rows in 175 groups).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pylibcudf as plc

from ....errors import OutOfRange
from ....plan.expr import AggregateCall
from ....plan.types import LARGEST_DECIMAL
from ....records import dataclass
from .. import columns as col
from ..functions.kernels_arithmetic import extremes, extremes_of
from ..late_materialization import Bounds
from ..pipeline.finish import late_integers
from ..table import count_true, device_type
from .groups import Answer, GroupedArgument, Groups

Op = plc.binaryop.BinaryOperator

_LOW_BITS = (1 << 32) - 1
_LIMB = 10**19  # of a 128-bit value: both halves of 38 digits
# Below this many rows two reductions for the extremes cost more than 128-bit sums do.
NARROWED_ROWS = 1 << 16
# Of a float as integers: 31 bits, so that 2^31 of them fit an int64; three of them go 93 bits down from the largest value.
_LIMB_BITS = 31
_LIMBS = 3
_SMALLEST_EXPONENT = -1074  # of a double


def sum_of(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    (argument,) = args
    if call.type.is_float:
        return float_sum(argument, groups)
    total = exact_sum(argument, call.args[0].type.integer_range, groups)
    bounds, result = total.bounds, device_type(call.type)
    if groups.of_kernel and bounds is not None:
        return lambda: late_integers(
            col.cast(total.answer(), col.INT64), call.type, bounds, loose=True
        )
    return lambda: col.reinterpret(col.cast(total.answer(), col.HUGE), result)


def avg(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    """The exact sum divided once."""
    (argument,) = args
    argument_type = call.args[0].type
    count = groups.ask_count(argument)
    if argument_type.is_float:
        total = float_sum(argument, groups)
    else:
        total = exact_sum(argument, argument_type.integer_range, groups).answer
    return lambda: col.mean(total(), count(), 10**argument_type.scale)


def product(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    return groups.ask(as_double(args[0], groups), "product")


@dataclass(frozen=True)
class Sum:
    """A sum that was asked for, INT64 or HUGE; `bounds` hold all sums where they are INT64."""

    answer: Answer
    bounds: Bounds | None = None


def exact_sum(argument: GroupedArgument, value_range: Bounds, groups: Groups) -> Sum:
    """Ask for the sum of integers or unscaled decimals, of which the type says the range.

    Nothing is measured where that, or what is known of the argument, proves that 64 bits hold it.  Raises `OutOfRange` for a sum
    of more than 38 digits.
    """
    integers = argument.derive("integers", col.as_integers(argument.column))
    found = argument.bounds or value_range
    if is_measured(argument, value_range, groups):
        found = groups.once(("extremes", argument.key), lambda: extremes(integers.column))
    if integers.column.type().id() == plc.TypeId.DECIMAL128:
        return _sum_of_wide(integers, found, groups)
    return _sum_of_narrow(integers, found, groups)


def is_measured(argument: GroupedArgument, value_range: Bounds, groups: Groups) -> bool:
    """Whether the extremes of an argument are looked for, since less is known of it than its sum takes."""
    rows, known = groups.rows, _magnitude(argument.bounds or value_range)
    if known * rows < 1 << 63:
        return False
    if argument.column.type().id() != plc.TypeId.DECIMAL128:
        return True
    is_small = not groups.keys or rows < NARROWED_ROWS
    return not (is_small and known * rows <= LARGEST_DECIMAL)


def measure(arguments: Sequence[tuple[GroupedArgument, Bounds]], groups: Groups) -> None:
    """Find the extremes of all arguments of which they are needed, given with the ranges of their types, with one wait."""
    wanted = {a.key: a.column for a, of_type in arguments if is_measured(a, of_type, groups)}
    for key, found in zip(wanted, extremes_of(list(wanted.values())), strict=True):
        groups.remember(("extremes", key), found)


def _sum_of_narrow(integers: GroupedArgument, bounds: Bounds, groups: Groups) -> Sum:
    """The sum of integers of at most 64 bits that lie within bounds."""
    low, high = bounds
    if _magnitude(bounds) * groups.rows >= 1 << 63:
        return Sum(_sum_of_limbs(integers, groups))
    if integers.column.type().id() == plc.TypeId.UINT64:
        integers = integers.derive("signed", col.reinterpret(integers.column, col.INT64))
    of_all = min(low, low * groups.rows), max(high, high * groups.rows)
    return Sum(groups.ask(integers, "sum"), of_all)


def _sum_of_limbs(argument: GroupedArgument, groups: Groups) -> Answer:
    """Low and high 32 bits apart: each sum of 2^31 of them fits an int64."""
    data_type = argument.column.type()
    is_signed = data_type.id() == plc.TypeId.INT64
    shift = Op.SHIFT_RIGHT if is_signed else Op.SHIFT_RIGHT_UNSIGNED

    def split() -> tuple[plc.Column, plc.Column]:
        mask, width = col.scalar(_LOW_BITS, data_type), col.scalar(32, data_type)
        low = col.binary(argument.column, mask, Op.BITWISE_AND, data_type)
        high = col.binary(argument.column, width, shift, data_type)
        return col.reinterpret(low, col.INT64), col.reinterpret(high, col.INT64)

    low_limb, high_limb = groups.once(("limbs", argument.key), split)
    low = groups.ask(argument.derive("low", low_limb), "sum")
    high = groups.ask(argument.derive("high", high_limb), "sum")

    def combine() -> plc.Column:
        upper = col.binary(
            col.cast(high(), col.HUGE), col.scalar(1 << 32, col.HUGE), Op.MUL, col.HUGE
        )
        return col.binary(upper, col.cast(low(), col.HUGE), Op.ADD, col.HUGE)

    return combine


def _sum_of_wide(argument: GroupedArgument, found: Bounds, groups: Groups) -> Sum:
    """Sums of 128-bit values within bounds, plain when neither the sum nor a part of it can pass the limits."""
    values = argument.derive("huge", col.reinterpret(argument.column, col.HUGE))
    if (groups.keys or groups.of_kernel) and _magnitude(found) < 1 << 63:
        narrow = groups.once(("narrow", argument.key), lambda: col.cast(values.column, col.INT64))
        return _sum_of_narrow(argument.derive("narrow", narrow), found, groups)
    bound = _magnitude(found) * groups.rows
    if bound <= LARGEST_DECIMAL:
        return Sum(groups.ask(values, "sum"))
    if bound < 1 << 127:
        return Sum(_checked(groups.ask(values, "sum")))
    return Sum(_sum_of_wide_limbs(values, groups))


def _sum_of_wide_limbs(argument: GroupedArgument, groups: Groups) -> Answer:
    """Quotient and remainder by 10^19 apart: both halves have sums of at most 29 digits."""
    limb = col.scalar(_LIMB, col.HUGE)

    def split(column: plc.Column) -> tuple[plc.Column, plc.Column]:
        upper = col.binary(column, limb, Op.DIV, col.HUGE)
        return upper, col.binary(
            column, col.binary(upper, limb, Op.MUL, col.HUGE), Op.SUB, col.HUGE
        )

    upper, lower = groups.once(("wide limbs", argument.key), lambda: split(argument.column))
    high = groups.ask(argument.derive("upper", upper), "sum")
    low = groups.ask(argument.derive("lower", lower), "sum")

    def combine() -> plc.Column:
        carry, rest = split(low())
        top = col.binary(high(), carry, Op.ADD, col.HUGE)
        _refuse_beyond(top, _LIMB)
        return col.binary(col.binary(top, limb, Op.MUL, col.HUGE), rest, Op.ADD, col.HUGE)

    return _checked(combine)


def _checked(answer: Answer) -> Answer:
    def check() -> plc.Column:
        column = answer()
        _refuse_beyond(column, LARGEST_DECIMAL)
        return column

    return check


def _refuse_beyond(column: plc.Column, limit: int) -> None:
    """Raise `OutOfRange` when a HUGE value is above `limit` or below its negative."""
    above = col.binary(column, col.scalar(limit, col.HUGE), Op.GREATER, col.BOOL)
    below = col.binary(column, col.scalar(-limit, col.HUGE), Op.LESS, col.BOOL)
    if count_true(col.binary(above, below, Op.LOGICAL_OR, col.BOOL)):
        raise OutOfRange("The sum has more than 38 digits: cast the argument to DOUBLE.")


def _magnitude(bounds: Bounds) -> int:
    return max(abs(bounds[0]), abs(bounds[1]))


def as_double(argument: GroupedArgument, groups: Groups) -> GroupedArgument:
    """Return an argument as FLOAT64."""
    if argument.column.type().id() == plc.TypeId.FLOAT64:
        return argument
    column = groups.once(("double", argument.key), lambda: col.cast(argument.column, col.FLOAT64))
    return argument.derive("double", column)


def float_sum(argument: GroupedArgument, groups: Groups) -> Answer:
    """Ask for the sum of floats as FLOAT64; where it must be repeatable, from sums of integers."""
    values = as_double(argument, groups)
    if not groups.deterministic:
        return groups.ask(values, "sum")
    finite, others = groups.once(
        ("finite", values.key), lambda: _split_off_infinities(values.column)
    )
    total = _sum_of_float_limbs(values.derive("finite", finite), groups)
    if others is None:
        return total
    # Infinities and NaN of a group decide its sum, in whatever order they come.
    special = groups.ask(values.derive("others", others), "sum")
    return lambda: plc.replace.replace_nulls(special(), total())


def _split_off_infinities(column: plc.Column) -> tuple[plc.Column, plc.Column | None]:
    """Return the finite values and the infinities and NaNs, each NULL in the rows of the others; None for none."""
    difference = col.binary(column, column, Op.SUB, col.FLOAT64)
    finite = col.true_mask(col.binary(difference, col.scalar(0.0, col.FLOAT64), Op.EQUAL, col.BOOL))
    if count_true(finite) == column.size() - column.null_count():
        return column, None
    return col.where_true(column, finite), col.where_true(column, col.negate(finite))


def _sum_of_float_limbs(argument: GroupedArgument, groups: Groups) -> Answer:
    """Each value is cut into integers that count powers of two; integers add up to the same in any order."""
    exponent, limbs = groups.once(("limbs", argument.key), lambda: _float_limbs(argument.column))
    sums = [groups.ask(argument.derive(f"limb {i}", limb), "sum") for i, limb in enumerate(limbs)]

    def combine() -> plc.Column:
        total = None
        for i, limb_sum in reversed(list(enumerate(sums, 1))):
            unit = col.scalar(_unit(exponent, i), col.FLOAT64)
            part = col.binary(col.cast(limb_sum(), col.FLOAT64), unit, Op.MUL, col.FLOAT64)
            total = part if total is None else col.binary(total, part, Op.ADD, col.FLOAT64)
        return total

    return combine


def _float_limbs(column: plc.Column) -> tuple[int, list[plc.Column]]:
    """Return the power of two that is above all values, and the limbs, each of which takes what the ones before have left.

    Every step but the last cut is exact.
    """
    size = plc.unary.unary_operation(column, plc.unary.UnaryOperator.ABS)
    largest = (
        plc.reduce.reduce(size, plc.aggregation.max(), col.FLOAT64).to_py() if size.size() else 0
    )
    exponent = math.frexp(largest or 0.0)[1]
    limbs, rest = [], column
    for i in range(1, _LIMBS + 1):
        unit = col.scalar(_unit(exponent, i), col.FLOAT64)
        limb = col.cast(col.binary(rest, unit, Op.DIV, col.FLOAT64), col.INT64)
        limbs.append(limb)
        if _unit(exponent, i) == _unit(exponent, i + 1):
            break
        taken = col.binary(col.cast(limb, col.FLOAT64), unit, Op.MUL, col.FLOAT64)
        rest = col.binary(rest, taken, Op.SUB, col.FLOAT64)
    return exponent, limbs


def _unit(exponent: int, limb: int) -> float:
    return math.ldexp(1.0, max(exponent - limb * _LIMB_BITS, _SMALLEST_EXPONENT))
