"""Dates and timestamps in kernels: their parts, the beginning of a unit, whole units between two moments.

A date is its day number, a timestamp its microseconds, both from 1970 on.  The calendar is Gregorian throughout, as DuckDB's; its
infinities have none of this, so a column that may hold one is left to the operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...plan.calendar import MICROS_A_DAY, UNIT_MICROS
from ...plan.expr import Call, Cast, Interval, Literal
from ...plan.temporal.ticks import DAY_SECONDS, steps
from ...plan.types import TICKS, DataType, Kind
from ..loop import Apply, Convert, Machine, Number
from ..program_builder import ProgramBuilder
from ..ranges import IntegerRange
from ..typed_values import Value
from .arithmetic import (
    DOUBT_LIMIT,
    Whole,
    add,
    checked,
    convert,
    multiply,
    subtract,
    type_bounds,
)

NARROW_DAYS = 2_000_000_000  # up to which the calendar's formulas fit 32 bits
MONDAY = 3  # of the week that 1970-01-01, a Thursday, is in: days before it

W = TypeVar("W", int, Whole)
Keep = Callable[[W, str], W]  # gives a value that is read often a name


def year_and_days(days: W, keep: Keep[W]) -> tuple[W, W]:
    """Return the year that begins in March and its days so far, of a day's number."""
    shifted = keep(days + 719_468, "shifted")  # from 0000-03-01
    era = keep(shifted // 146_097, "era")
    of_era = keep(shifted - era * 146_097, "day_of_era")
    of_400 = keep(
        (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365, "year_of_era"
    )
    before = of_400 * 365 + of_400 // 4 - of_400 // 100
    return keep(era * 400 + of_400, "march_year"), keep(of_era - before, "march_day")


def civil(days: W, keep: Keep[W]) -> tuple[W, W, W]:
    """Return year, month and day of the month."""
    year, passed = year_and_days(days, keep)
    month = keep((passed * 5 + 2) // 153, "march_month")  # 0 is March
    day = passed - (month * 153 + 2) // 5 + 1
    later = keep(month // 10, "next_year")  # 1 in January and February
    return keep(year + later, "year"), keep(month + 3 - later * 12, "month"), day


def first_day(year: W) -> W:
    """The number of January 1st."""
    before = year - 1
    return year * 365 + before // 4 - before // 100 + before // 400 - 719_527


def year_of(days: int) -> int:
    """The year of a day's number."""
    return civil(days, lambda value, _: value)[0]


# Parts


def part(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value | None:
    """EXTRACT of a date or timestamp."""
    found = _days(expr.args[0].type, args[0], kernel)
    if found is None:
        return None
    days, held = found
    low, high = year_of(held.low), year_of(held.high)
    made, least, most = _part_of(expr.function, days, _keep(kernel))
    if expr.function in ("year", "isoyear"):  # an ISO year may begin and end some days apart
        least, most = (low, high) if expr.function == "year" else (low - 1, high + 1)
    return Value(made.term, args[0].valid, IntegerRange(least, most))


def _part_of(name: str, days: Whole, keep: Keep[Whole]) -> tuple[Whole, int, int]:
    """A part of days, and between which numbers it is, but for years."""
    match name:
        case "dayofweek":
            return (days + 4) % 7, 0, 6
        case "isodow":
            return (days + MONDAY) % 7 + 1, 1, 7
        case "week" | "isoyear":
            thursday = keep(days - (days + MONDAY) % 7 + 3, "thursday")
            year, _, _ = civil(thursday, keep)
            year = keep(year, "iso_year")
            return (
                (year, 0, 0)
                if name == "isoyear"
                else ((thursday - first_day(year)) // 7 + 1, 1, 53)
            )
    year, month, day = civil(days, keep)
    match name:
        case "year":
            return year, 0, 0
        case "quarter":
            return (month + 2) // 3, 1, 4
        case "month":
            return month, 1, 12
        case "day":
            return day, 1, 31
    assert name == "dayofyear", name
    return days - first_day(keep(year, "year")) + 1, 1, 366


CLOCK = {  # what a part is the remainder of, and of what it is counted
    "hour": ("day", "hour"),
    "minute": ("hour", "minute"),
    "second": ("minute", "second"),
    "millisecond": ("minute", "millisecond"),
    "microsecond": ("minute", "microsecond"),
}


def clock(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value | None:
    """The hour of a timestamp, the minute of its hour and so on."""
    if not _is_finite(expr.args[0].type, args[0]):
        return None
    around, unit = (UNIT_MICROS[u] for u in CLOCK[expr.function])
    time = Whole(convert(args[0].term, Machine.I64))
    if expr.function == "hour" and expr.args[0].type.kind is Kind.TIME:  # 24:00:00 is one
        time, around = time // unit, around + unit
    else:
        time = time % around // unit
    return Value(
        Convert(time.term, Machine.I32), args[0].valid, IntegerRange(0, around // unit - 1)
    )


# Units


def truncated(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value | None:
    """date_trunc: the beginning of the unit."""
    (value,) = args
    unit = _unit(expr)
    if not _is_finite(expr.args[1].type, value):
        return None
    assert value.interval is not None
    if unit in UNIT_MICROS and unit != "day":
        length = UNIT_MICROS[unit]
        moment = Whole(kernel.name(convert(value.term, Machine.I64), "moment"))
        low, high = (end - end % length for end in (value.interval.low, value.interval.high))
        return _stepped((moment - moment % length), value, low, high, length)
    found = _days(expr.args[1].type, value, kernel)
    assert found is not None
    days, held = found
    first = _first_of(unit, days, _keep(kernel))
    if first is None:
        return None
    # A day more than a year before: no unit here is longer
    low, high = held.low - (0 if unit == "day" else 7 if unit == "week" else 366), held.high
    if unit == "week":
        low -= (low + MONDAY) % 7
    step = 7 * MICROS_A_DAY if unit == "week" else MICROS_A_DAY
    return _stepped(
        Whole(Convert(first.term, Machine.I64)) * MICROS_A_DAY,
        value,
        low * MICROS_A_DAY,
        high * MICROS_A_DAY,
        step,
    )


def _stepped(moment: Whole, value: Value, low: int, high: int, step: int) -> Value | None:
    held = IntegerRange(low, low + (high - low) // step * step)
    return Value(moment.term, value.valid, held, step=step) if held.fits_i64 else None


def _first_of(unit: str, days: Whole, keep: Keep[Whole]) -> Whole | None:
    """The first day of the unit of days that a day is in; None for decades and what is longer."""
    if unit == "day":
        return days
    if unit == "week":
        return days - (days + MONDAY) % 7
    year, month, day = civil(days, keep)
    if unit == "month":
        return days - day + 1
    if unit not in ("quarter", "year"):
        return None
    year = keep(year, "year")
    first = keep(first_day(year), "new_year")
    if unit == "year":
        return first
    quarter = keep((month + 2) // 3, "quarter")
    leap = first_day(year + 1) - first - 365
    # Quarters have 90 (and a leap day), 91, 92 and 92 days
    behind = (quarter + 2) // 4  # 0 in the first
    inner = quarter // 2 - quarter // 4 * 2  # 1 in the second and the third
    return first + (quarter - 1) * 91 - inner + leap * behind


def difference(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value | None:
    """date_diff: boundaries of the unit between two moments."""
    counted = [
        _count(_unit(expr), t.type, v, kernel) for t, v in zip(expr.args[1:], args, strict=True)
    ]
    start, end = counted
    if start is None or end is None:
        return None
    return checked(subtract(end, start, kernel), expr.type, kernel)


def _count(unit: str, data_type: DataType, value: Value, kernel: ProgramBuilder) -> Value | None:
    """How many of the unit have begun since 1970 or since year 0; None for weeks, decades and what is longer."""
    if not _is_finite(data_type, value):
        return None
    assert value.interval is not None
    if unit in UNIT_MICROS and unit != "day":
        length = UNIT_MICROS[unit]
        number = Whole(convert(value.term, Machine.I64)) // length
        return _counted(number, value, value.interval.low // length, value.interval.high // length)
    found = _days(data_type, value, kernel)
    assert found is not None
    days, held = found
    if unit == "day":
        return _counted(days, value, held.low, held.high)
    a_year = {"year": 1, "quarter": 4, "month": 12}.get(unit)
    years = [year_of(end) for end in (held.low, held.high)]
    if a_year is None or years[0] < 1:  # before, quotients toward zero differ
        return None
    year, month, _ = civil(days, _keep(kernel))
    number = year * a_year + (month - 1) // (12 // a_year)
    return _counted(number, value, years[0] * a_year, years[1] * a_year + a_year - 1)


def _counted(number: Whole, value: Value, low: int, high: int) -> Value:
    held, term = IntegerRange(low, high), number.term
    return Value(convert(term, Machine.I32) if held.fits_i32 else term, value.valid, held)


def moved(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value | None:
    """A timestamp and a constant interval of days and microseconds."""
    by = expr.args[1]
    if not isinstance(by, Literal) or not isinstance(by.value, Interval) or by.value.months:
        return None
    if not _is_finite(expr.args[0].type, args[0]):
        return None
    micros = by.value.days * MICROS_A_DAY + by.value.micros
    held = IntegerRange(micros, micros)
    if not held.fits_i64:
        return None
    constant = kernel.parameter(micros, Machine.I64, f"{by.type} constant")
    operate = add if expr.function == "add_interval" else subtract
    amount = Value(constant, None, held)
    return checked(operate(args[0], amount, kernel), expr.type, kernel)


def from_micros(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value | None:
    """make_timestamp of microseconds; None near the ends of time, and of a year and so on."""
    held = args[0].interval
    if len(expr.args) > 1 or held is None or held.magnitude >= DOUBT_LIMIT:
        return None
    return args[0]


def counted_anew(expr: Cast, value: Value, kernel: ProgramBuilder) -> Value | None:
    """A date or a count of ticks as one of another type: halves round away from zero, dates down; None for what may be infinite."""
    source, target = expr.operand.type, expr.type
    more, fewer = steps(source, target)
    if more == fewer == 1 and target.kind is not Kind.TIME:
        return value
    if not _is_finite(source, value):
        return None
    if target.kind is Kind.DATE:
        found = _days(source, value, kernel)
        assert found is not None
        return Value(found[0].term, value.valid, found[1])
    made: Value | None = value
    if more > 1:
        factor = Value(Number(more, Machine.I64), None, IntegerRange(more, more))
        made = checked(multiply(value, factor, kernel), target, kernel)
    elif fewer > 1:
        made = _rounded(value, fewer, kernel)
    if made is None or target.kind is not Kind.TIME:
        return made
    clock = Whole(convert(made.term, Machine.I64)) % MICROS_A_DAY
    return Value(clock.term, made.valid, IntegerRange(0, MICROS_A_DAY - 1))


def _rounded(value: Value, unit: int, kernel: ProgramBuilder) -> Value | None:
    """The quotient by an even unit, rounded half away from zero; None near the ends of 64 bits."""
    assert value.interval is not None
    low, high = value.interval.low, value.interval.high
    if not IntegerRange(low - unit, high + unit).fits_i64:
        return None
    number = Whole(kernel.name(convert(value.term, Machine.I64), "ticks"))
    half = number + unit // 2
    if low < 0:
        below = Apply("<", (number.term, Number(0, Machine.I64)), Machine.BOOL)
        half = half - Whole(Convert(below, Machine.I64))
    least, most = (low + unit // 2 - 1) // unit, (high + unit // 2) // unit
    return Value((half // unit).term, value.valid, IntegerRange(least, most))


# What all of them need


def _unit(expr: Call) -> str:
    unit = expr.args[0]
    return unit.value if isinstance(unit, Literal) and isinstance(unit.value, str) else ""


def _keep(kernel: ProgramBuilder) -> Keep[Whole]:
    return lambda value, name: Whole(kernel.name(value.term, name))


def _is_finite(data_type: DataType, value: Value) -> bool:
    bounds, held = type_bounds(data_type), value.interval
    return (
        held is not None
        and bounds is not None
        and bounds.low <= held.low
        and held.high <= bounds.high
    )


def _days(
    data_type: DataType, value: Value, kernel: ProgramBuilder
) -> tuple[Whole, IntegerRange] | None:
    """The day numbers of dates or timestamps, in a register that the calendar's formulas fit; None where one may be infinite."""
    if not _is_finite(data_type, value):
        return None
    assert value.interval is not None
    days, held = Whole(value.term), value.interval
    if data_type.is_ticks:
        day = DAY_SECONDS * TICKS[data_type.kind]
        days = Whole(convert(value.term, Machine.I64)) // day
        held = IntegerRange(held.low // day, held.high // day)
    machine = Machine.I32 if held.magnitude <= NARROW_DAYS else Machine.I64
    return Whole(kernel.name(convert(days.term, machine), "days")), held


Rule = Callable[[Call, list[Value], ProgramBuilder], Value | None]
PARTS = ("year", "quarter", "month", "day", "week", "isoyear", "isodow", "dayofweek", "dayofyear")
RULES: dict[str, Rule] = {
    **dict.fromkeys(PARTS, part),
    **dict.fromkeys(CLOCK, clock),
    "date_trunc": truncated,
    "date_diff": difference,
    "add_interval": moved,
    "sub_interval": moved,
    "make_timestamp": from_micros,
}
