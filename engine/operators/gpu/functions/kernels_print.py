"""Values as text, as DuckDB writes them; dates with a year of less or more than four digits by the host."""

from __future__ import annotations

import pylibcudf as plc

from ....plan.expr import Expr
from ....plan.temporal.ticks import DAY_SECONDS
from ....plan.types import TICKS, DataType, Kind
from ....storage.columns.device_encode import TIMESTAMPS
from .. import columns as col
from .kernels_arithmetic import extremes
from .values import RowScope, settled

Op = plc.binaryop.BinaryOperator

_FOUR_DIGITS = (
    -719_162,
    2_932_896,
)  # days from 1970 to the first of the year 1 and the last of 9999


def printed(expr: Expr, scope: RowScope, column: plc.Column) -> plc.Column:
    """Return the text of values; `expr` is the cast that asks for it."""
    source = expr.children[0].type
    if source.kind is Kind.BOOLEAN:
        words = col.select(
            col.true_mask(column), col.scalar("true", col.TEXT), col.scalar("false", col.TEXT)
        )
        return col.where_true(words, plc.unary.is_valid(column)) if column.null_count() else words
    if source.is_decimal:
        return plc.strings.convert.convert_fixed_point.from_fixed_point(column)
    if not source.is_temporal:
        return plc.strings.convert.convert_integers.from_integers(column)
    usual = in_days(column, 0, 0) if source.kind is Kind.TIME else in_four_digit_years(column)
    return settled(expr, scope, column, _moments(column, source), usual)


def _moments(column: plc.Column, source: DataType) -> plc.Column:
    convert = plc.strings.convert.convert_datetime
    if source.kind is Kind.DATE:
        return convert.from_timestamps(column, "%Y-%m-%d", col.empty(col.TEXT))
    day = "" if source.kind is Kind.TIME else "%Y-%m-%d "
    digits = len(str(TICKS[source.kind])) - 1
    if not digits:
        return convert.from_timestamps(column, f"{day}%H:%M:%S", col.empty(col.TEXT))
    text = convert.from_timestamps(column, f"{day}%H:%M:%S.%{digits}f", col.empty(col.TEXT))
    # A fraction ends with a digit that is not 0, and no fraction takes its point along.
    strip, right = plc.strings.strip.strip, plc.strings.side_type.SideType.RIGHT
    return strip(strip(text, right, col.scalar("0", col.TEXT)), right, col.scalar(".", col.TEXT))


def in_four_digit_years(column: plc.Column) -> plc.Column | None:
    """Return for each date or timestamp whether libcudf writes its year as everyone does; None where all are so."""
    return in_days(column, *_FOUR_DIGITS)


def in_days(column: plc.Column, first: int, last: int) -> plc.Column | None:
    """Return for each date or timestamp whether it is on one of some days, counted from 1970; None where all are."""
    for ticks, kind in TIMESTAMPS.items():
        if column.type().id() == kind:
            first, last = first * DAY_SECONDS * ticks, (last + 1) * DAY_SECONDS * ticks - 1
    return between(column, first, last)


def between(column: plc.Column, first: int, last: int) -> plc.Column | None:
    """Return for each of the integers behind a column whether it is within bounds; None where all are."""
    low, high = extremes(column)
    if first <= low and high <= last:
        return None
    numbers = col.as_integers(column)
    late = col.binary(numbers, col.scalar(last, numbers.type()), Op.LESS_EQUAL, col.BOOL)
    early = col.binary(numbers, col.scalar(first, numbers.type()), Op.GREATER_EQUAL, col.BOOL)
    return col.both(col.true_mask(late), col.true_mask(early))
