"""Functions of dates and timestamps: parts, truncation, differences, and intervals that are constants."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pylibcudf as plc

from ....errors import OutOfRange
from ....plan.arrow.arrow_arrays import array_from
from ....plan.calendar import INFINITE_DAY, INFINITE_MICROS, MICROS_A_DAY, UNIT_MICROS
from ....plan.expr import Call, Interval, Literal
from ....plan.functions.strptime import DAY_NAMES, MONTH_NAMES
from ....plan.types import Kind
from ...integer_bounds import INT64_RANGE, inside
from ..columns import (
    BOOL,
    INT32,
    INT64,
    both,
    cast,
    negate,
    reinterpret,
    scalar,
    select,
    true_mask,
    where_true,
    without_nulls,
)
from ..table import device_type
from . import values as val
from .kernels_arithmetic import extremes
from .kernels_print import between, in_days, in_four_digit_years

Op = plc.binaryop.BinaryOperator
Component = plc.datetime.DatetimeComponent

DAYS = plc.DataType(plc.TypeId.TIMESTAMP_DAYS)
MICROS = plc.DataType(plc.TypeId.TIMESTAMP_MICROSECONDS)
_COMPONENTS = {
    "year": Component.YEAR,
    "month": Component.MONTH,
    "day": Component.DAY,
    "isodow": Component.WEEKDAY,
    "dayofweek": Component.WEEKDAY,
    "hour": Component.HOUR,
    "minute": Component.MINUTE,
    "second": Component.SECOND,
}
_CLOCK = ("hour", "minute", "second", "millisecond", "microsecond")
_YEARS = {"century": 100, "millennium": 1000}
_SHORT_YEARS = (-12_687_428, 11_248_737)  # days from 1970 to the years -32767 and 32767
UNKNOWN_NAME = -(1 << 31)  # a place of no name, which NULL has
_TRUNCATED = ("week", "month", "quarter", "year")
_COUNTED = ("month", "quarter", "year")
_DAYS_OR_MICROS = (Kind.DATE, Kind.TIMESTAMP)  # not TIME, which is never infinite


def part(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """One part of EXTRACT."""
    column = val.as_column(args[0], scope.rows)
    if call.function == "hour" and call.args[0].type.kind is Kind.TIME:  # 24:00:00 is one
        return val.binary(
            val.integers(column), val.Constant(UNIT_MICROS["hour"], INT64), Op.DIV, INT64
        )
    found = _part(call.function, column)
    if call.function in _CLOCK:
        return found
    return val.settled(call, scope, column, found, _in_short_years(column))


def _part(function: str, column: plc.Column) -> plc.Column:
    match function:
        case "quarter":
            return cast(plc.datetime.extract_quarter(column), INT64)
        case "dayofyear":
            return cast(plc.datetime.day_of_year(column), INT64)
        case "millisecond" | "microsecond":
            return _fraction(column, UNIT_MICROS[function])
        case "week" | "isoyear":
            thursday = _thursday(column)
            if function == "isoyear":
                return _component(thursday, Component.YEAR)
            gone = cast(plc.datetime.day_of_year(thursday), INT64)
            full = val.binary(
                val.binary(gone, val.Constant(1, INT64), Op.SUB, INT64),
                val.Constant(7, INT64),
                Op.DIV,
                INT64,
            )
            return val.binary(full, val.Constant(1, INT64), Op.ADD, INT64)
        case "decade":
            year = _component(column, Component.YEAR)
            return val.binary(year, val.Constant(10, INT64), Op.DIV, INT64)
        case "century" | "millennium":
            return _period(_component(column, Component.YEAR), _YEARS[function])
    found = _component(column, _COMPONENTS[function])
    if function == "dayofweek":  # Sunday is 7 to libcudf and 0 to DuckDB
        return val.binary(found, val.Constant(7, INT64), Op.MOD, INT64)
    return found


def _thursday(column: plc.Column) -> plc.Column:
    """Return the Thursday of each ISO week, whose year is the week's."""
    days = _days(column)
    number = val.as_column(val.integers(days), days.size())
    behind = val.binary(val.Constant(4, INT64), _component(days, Component.WEEKDAY), Op.SUB, INT64)
    return reinterpret(val.binary(number, cast(behind, INT32), Op.ADD, INT32), DAYS)


def _period(year: plc.Column, length: int) -> plc.Column:
    """Centuries and millennia count from 1, and from -1 downwards."""
    unit, one = val.Constant(length, INT64), val.Constant(1, INT64)
    after = val.binary(val.binary(year, one, Op.SUB, INT64), unit, Op.DIV, INT64)
    after = val.binary(after, one, Op.ADD, INT64)
    before = val.binary(val.binary(year, unit, Op.DIV, INT64), one, Op.SUB, INT64)
    positive = val.binary(year, val.Constant(0, INT64), Op.GREATER, BOOL)
    return select(true_mask(positive), after, before)


def _in_short_years(column: plc.Column) -> plc.Column | None:
    """Return for each date or timestamp whether its year fits the 16 bits that libcudf gives it; None where all do."""
    return in_days(column, *_SHORT_YEARS)


def name(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """The English name of the month or the weekday."""
    column = val.as_column(args[0], scope.rows)
    names: tuple[str, ...]
    if call.function == "monthname":
        places, names = _component(column, Component.MONTH), MONTH_NAMES
    else:
        places, names = _component(column, Component.WEEKDAY), (*DAY_NAMES[1:], *DAY_NAMES[:1])
    texts = plc.Table([plc.Column.from_arrow(array_from(names))])
    rows = cast(val.binary(places, val.Constant(1, INT64), Op.SUB, INT64), INT32)
    policy = plc.copying.OutOfBoundsPolicy.NULLIFY
    found = plc.copying.gather(texts, without_nulls(rows, UNKNOWN_NAME), policy).columns()[0]
    return val.settled(call, scope, column, found, _in_short_years(column))


def _component(column: plc.Column, component: plc.datetime.DatetimeComponent) -> plc.Column:
    return cast(plc.datetime.extract_datetime_component(column, component), INT64)


def _fraction(column: plc.Column, unit: int) -> plc.Column:
    """Microseconds of the minute, in units."""
    micros = val.as_column(val.integers(column), column.size())
    whole = floored(micros, UNIT_MICROS["minute"])
    rest = val.binary(micros, whole, Op.SUB, INT64)
    return rest if unit == 1 else val.binary(rest, val.Constant(unit, INT64), Op.DIV, INT64)


def floored(micros: plc.Column, length: int) -> plc.Column:
    """Return the multiple of `length` at or below each INT64 value."""
    unit = val.Constant(length, INT64)
    rest = val.binary(micros, unit, Op.PYMOD, INT64)
    return val.binary(micros, rest, Op.SUB, INT64)


def epoch(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """Seconds since 1970, with their fraction."""
    double = device_type(call.type)
    micros = cast(val.as_column(val.integers(args[0]), scope.rows), double)
    return val.binary(micros, val.Constant(1e6, double), Op.DIV, double)


def date_trunc(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    unit = _unit(call)
    column = val.as_column(args[1], scope.rows)
    if unit in UNIT_MICROS:
        micros = val.as_column(val.integers(column), scope.rows)
        return reinterpret(floored(micros, UNIT_MICROS[unit]), MICROS)
    days = _days(column)
    number = val.as_column(val.integers(days), scope.rows)
    match unit:
        case "week":
            gone = _component(days, Component.WEEKDAY)
        case "year":
            gone = cast(plc.datetime.day_of_year(days), INT64)
        case _:
            gone = _component(days, Component.DAY)
    first = val.binary(number, cast(gone, INT32), Op.SUB, INT32)
    first = reinterpret(val.binary(first, val.Constant(1, INT32), Op.ADD, INT32), DAYS)
    if unit == "quarter":
        month = _component(first, Component.MONTH)
        behind = val.binary(month, val.Constant(1, INT64), Op.SUB, INT64)
        behind = val.binary(behind, val.Constant(3, INT64), Op.MOD, INT64)
        back = val.binary(val.Constant(0, INT32), cast(behind, INT32), Op.SUB, INT32)
        first = plc.datetime.add_calendrical_months(first, back)
    return plc.unary.cast(first, MICROS)


def _days(column: plc.Column) -> plc.Column:
    """Return the DATE of each timestamp."""
    if column.type().id() == plc.TypeId.TIMESTAMP_DAYS:
        return column
    frequency = plc.datetime.RoundingFrequency.DAY
    return plc.unary.cast(plc.datetime.floor_datetimes(column, frequency), DAYS)


def date_diff(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """Boundaries of the unit between two timestamps."""
    unit = _unit(call)
    first, last = (_place(val.as_column(a, scope.rows), unit) for a in args[1:])
    return _difference(last, first, scope)


def _place(column: plc.Column, unit: str) -> plc.Column:
    """Return the number of the unit that a timestamp is in, counted from 1970 or from year 0."""
    if unit in UNIT_MICROS:
        micros = val.as_column(val.integers(column), column.size())
        length = val.Constant(UNIT_MICROS[unit], INT64)
        return val.binary(floored(micros, UNIT_MICROS[unit]), length, Op.DIV, INT64)
    year = _component(column, Component.YEAR)
    if unit == "year":
        return year
    months = val.binary(year, val.Constant(12, INT64), Op.MUL, INT64)
    months = val.binary(months, _component(column, Component.MONTH), Op.ADD, INT64)
    months = val.binary(months, val.Constant(1, INT64), Op.SUB, INT64)
    return months if unit == "month" else val.binary(months, val.Constant(3, INT64), Op.DIV, INT64)


def date_sub(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """Whole units of a fixed length between two timestamps."""
    first, last = (
        val.as_column(val.integers(val.as_column(a, scope.rows)), scope.rows) for a in args[1:]
    )
    length = val.Constant(UNIT_MICROS[_unit(call)], INT64)
    return val.binary(_difference(last, first, scope), length, Op.DIV, INT64)


def _difference(last: plc.Column, first: plc.Column, scope: val.RowScope) -> plc.Column:
    """Return the difference of two columns; raises `OutOfRange` where it leaves 64 bits, and so has the other sign."""
    found = val.binary(last, first, Op.SUB, INT64)
    (low, high), (other_low, other_high) = extremes(last), extremes(first)
    if not inside((low - other_high, high - other_low), INT64_RANGE):
        apart = val.binary(last, first, Op.BITWISE_XOR, INT64)
        turned = val.binary(last, found, Op.BITWISE_XOR, INT64)
        both = val.binary(apart, turned, Op.BITWISE_AND, INT64)
        if scope.any(val.binary(both, val.Constant(0, INT64), Op.LESS, BOOL)):
            raise OutOfRange(
                "The difference of these timestamps does not fit 64 bits of microseconds."
            )
    return found


def last_day(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    days = _days(val.as_column(args[0], scope.rows))
    return cast(plc.datetime.last_day_of_month(days), DAYS)


def add_interval(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """Months first, clipped to the month's end, then days and microseconds; the host does what may leave the calendar."""
    interval = _interval(call)
    column = val.as_column(args[0], scope.rows)
    turn = 1 if call.function == "add_interval" else -1
    moved = column
    if interval.months:
        months = scalar(turn * interval.months, INT32)
        moved = plc.datetime.add_calendrical_months(column, months)
    micros = turn * (interval.days * MICROS_A_DAY + interval.micros)
    if micros:
        sums = val.binary(val.integers(moved), val.Constant(micros, INT64), Op.ADD, INT64)
        moved = reinterpret(sums, MICROS)
    low, high = extremes(column)
    reach = _reach(interval)
    if inside((low - reach, high + reach), INT64_RANGE):
        return moved
    return val.settled(call, scope, column, moved, in_four_digit_years(column))


def _reach(interval: Interval) -> int:
    """Return the most microseconds by which an interval moves a timestamp."""
    days = (abs(interval.months) + 1) * 31 + abs(interval.days)
    return days * MICROS_A_DAY + abs(interval.micros)


def add_days(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """DATE plus or minus a number of days."""
    operator = Op.ADD if call.function == "add_days" else Op.SUB
    left, right = (val.integers(a, INT64) for a in args)
    moved = val.binary(left, right, operator, INT64)
    low, high = extremes(moved)
    if not inside((low, high), (-(2**31) + 2, 2**31 - 2)):
        above = val.binary(moved, val.Constant(2**31 - 2, INT64), Op.GREATER, BOOL)
        below = val.binary(moved, val.Constant(-(2**31) + 2, INT64), Op.LESS, BOOL)
        if scope.any(val.binary(above, below, Op.LOGICAL_OR, BOOL)):
            raise OutOfRange("Date out of range: add fewer days.")
    return reinterpret(cast(moved, INT32), DAYS)


def date_minus_date(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    left, right = (val.integers(a, INT64) for a in args)
    return val.binary(left, right, Op.SUB, INT64)


def _unit(call: Call) -> str:
    literal = call.args[0]
    assert isinstance(literal, Literal)
    return str(literal.value)


def _interval(call: Call) -> Interval:
    literal = call.args[1]
    assert isinstance(literal, Literal)
    assert isinstance(literal.value, Interval)
    return literal.value


def _part_refusal(call: Call) -> str | None:
    if call.args[0].type.kind is Kind.INTERVAL:
        return f"{call.function}() of INTERVAL"
    return None


def _shift_refusal(call: Call) -> str | None:
    """Refuse what may move even a year of four digits out of the calendar."""
    literal = call.args[1]
    if not isinstance(literal, Literal) or not isinstance(literal.value, Interval):
        return None
    return None if _reach(literal.value) < 1 << 62 else f"{call.function}() by so much"


def _unit_refusal(units: tuple[str, ...]) -> Callable[[Call], str | None]:
    def check(call: Call) -> str | None:
        known = isinstance(call.args[0], Literal) and _unit(call) in (*UNIT_MICROS, *units)
        return None if known else f"{call.function}() by this unit"

    return check


def _beside_infinities(kernel: val.Kernel) -> val.Kernel:
    """Compute finite moments alone, as NULL stands for the others; the host says what comes of those."""

    def compute(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
        columns = {
            place: val.as_column(args[place], scope.rows)
            for place, arg in enumerate(call.args)
            if arg.type.is_temporal or not isinstance(arg, Literal)
        }
        given, finite = list(args), []
        for place, column in columns.items():
            kind = call.args[place].type.kind
            end = INFINITE_DAY if kind is Kind.DATE else INFINITE_MICROS
            is_finite = between(column, 1 - end, end - 1) if kind in _DAYS_OR_MICROS else None
            if is_finite is not None:
                given[place] = where_true(column, is_finite)
                finite.append(is_finite)
        found = kernel(call, scope, tuple(given))
        if not finite:
            return found
        odd = negate(reduce(both, finite))
        if scope.active is not None:
            odd = both(odd, scope.active())
        return val.recomputed(call, columns, val.as_column(found, scope.rows), odd)

    return compute


KERNELS: dict[str, val.Kernel] = {
    # Of which the host settles what lies far away, so that infinite moments are among them
    **dict.fromkeys(_COMPONENTS, part),
    **dict.fromkeys(("quarter", "dayofyear", "millisecond", "microsecond"), part),
    **dict.fromkeys(("week", "isoyear", "decade", "century", "millennium"), part),
    "monthname": name,
    "dayname": name,
    "add_interval": add_interval,
    "sub_interval": add_interval,
    "date_minus_date": date_minus_date,
    **{
        function: _beside_infinities(kernel)
        for function, kernel in {
            **dict.fromkeys(_CLOCK, part),
            "date_sub": date_sub,
            "epoch": epoch,
            "date_trunc": date_trunc,
            "date_diff": date_diff,
            "last_day": last_day,
            "add_days": add_days,
            "sub_days": add_days,
        }.items()
    },
}
REFUSALS = {
    **dict.fromkeys(
        (*_COMPONENTS, *_YEARS, "quarter", "decade", "epoch", "millisecond", "microsecond"),
        _part_refusal,
    ),
    "add_interval": _shift_refusal,
    "sub_interval": _shift_refusal,
    "date_sub": _unit_refusal(()),
    "date_trunc": _unit_refusal(_TRUNCATED),
    "date_diff": _unit_refusal(_COUNTED),
}
