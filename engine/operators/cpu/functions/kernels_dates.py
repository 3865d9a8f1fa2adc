"""Functions of dates and timestamps: parts, truncation, differences, construction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....errors import ConversionError, ExecutionError, OutOfRange
from ....plan.arrow.arrow_arrays import array_from, from_numpy, null_as
from ....plan.calendar import INFINITE_MICROS, MICROS_A_DAY, UNIT_MICROS
from ....plan.expr import Call
from ....plan.functions.strptime import DAY_NAMES, MONTH_NAMES
from ....plan.temporal import zones
from ....plan.temporal.zones import Zone, parse_timestamptz
from ....plan.text.interval_reading import MONTHS
from ....plan.types import BIGINT, DATE, TIMESTAMP, Kind
from .. import table as tables
from . import kernels_calendar as calendar
from .kernels_calendar import toward_zero
from .kernels_intervals import INTERVAL_PARTS, interval_epoch
from .kernels_print import chosen, joined, printed
from .vectors import Array, Kernel, Mask, Vector, at, both_valid, first_row, null_constant

LENGTHS = {**UNIT_MICROS, "week": 7 * MICROS_A_DAY}  # in microseconds
FARTHEST_YEAR = 5_881_580  # that 32 bits of days reach, in one direction at least
_DAY_PARTS: dict[str, Callable[[Array], Array]] = {
    "year": calendar.year,
    "quarter": calendar.quarter,
    "month": calendar.month,
    "day": calendar.day,
    "decade": calendar.decade,
    "century": calendar.century,
    "millennium": calendar.millennium,
    "week": calendar.iso_week,
    "isodow": calendar.iso_day_of_week,
    "dayofweek": calendar.day_of_week,
    "dayofyear": calendar.day_of_year,
    "isoyear": calendar.iso_year,
}
_MINUTE = LENGTHS["minute"]
_CLOCK_PARTS: dict[str, Callable[[Array], Array]] = {
    "hour": lambda t: t % MICROS_A_DAY // LENGTHS["hour"],
    "minute": lambda t: t % LENGTHS["hour"] // _MINUTE,
    "second": lambda t: t % _MINUTE // 1_000_000,
    "millisecond": lambda t: t % _MINUTE // 1000,
    "microsecond": lambda t: t % _MINUTE,
}


def days_of(vector: Vector) -> Array:
    """Days since 1970 of a DATE or TIMESTAMP."""
    if vector.type.kind is Kind.DATE:
        return vector.data
    return vector.data // MICROS_A_DAY


def part(call: Call, args: tuple[Vector, ...]) -> Vector:
    """One part of EXTRACT, of a DATE, TIMESTAMP or INTERVAL."""
    (arg,) = args
    if arg.type.kind is Kind.INTERVAL:
        return Vector(BIGINT, INTERVAL_PARTS[call.function](arg.data), arg.valid)
    if call.function == "hour" and arg.type.kind is Kind.TIME:  # 24:00:00 is one
        return Vector(BIGINT, arg.data // LENGTHS["hour"], arg.valid)
    if call.function in _CLOCK_PARTS:
        return Vector(BIGINT, _CLOCK_PARTS[call.function](arg.data), arg.valid)
    data = calendar.by_day(_DAY_PARTS[call.function], days_of(arg))
    return Vector(BIGINT, np.asarray(data).astype(np.int64, copy=False), arg.valid)


def epoch(call: Call, args: tuple[Vector, ...]) -> Vector:
    (arg,) = args
    if arg.type.kind is Kind.INTERVAL:
        return Vector(call.type, interval_epoch(arg.data), arg.valid)
    return Vector(call.type, arg.data / 1e6, arg.valid)


def unit_of(vector: Vector) -> str:
    unit = vector.data
    if not isinstance(unit, str) or (unit not in LENGTHS and unit not in MONTHS):
        raise ExecutionError(
            f"The unit {unit!r} is not known: use one of {', '.join([*LENGTHS, *MONTHS])}."
        )
    return unit


def date_trunc(call: Call, args: tuple[Vector, ...]) -> Vector:
    unit, arg = unit_of(args[0]), args[1]
    if unit in LENGTHS and unit != "week":
        length = LENGTHS[unit]
        return Vector(TIMESTAMP, arg.data - arg.data % length, arg.valid)
    days = calendar.by_day(lambda days: truncated_days(unit, days), days_of(arg))
    return Vector(TIMESTAMP, calendar.timestamps(days, days * 0, arg.valid), arg.valid)


def truncated_days(unit: str, days: Array) -> Array:
    """The first day of the unit; decades and longer cut years toward zero, as DuckDB does."""
    if unit == "week":
        return days - calendar.iso_day_of_week(days) + 1
    year, month, _ = calendar.civil(days)
    one = np.ones_like(year)
    match unit:
        case "month":
            return calendar.days_from_civil(year, month, one)
        case "quarter":
            return calendar.days_from_civil(year, (month - 1) // 3 * 3 + 1, one)
    years = MONTHS[unit] // 12
    return calendar.first_of_year(toward_zero(year, years) * years)


def date_diff(call: Call, args: tuple[Vector, ...]) -> Vector:
    """Boundaries of the unit between two timestamps; weeks are seven days between the dates."""
    unit, start, end = unit_of(args[0]), args[1], args[2]
    valid = both_valid(start, end)
    if unit == "week":
        return Vector(BIGINT, toward_zero(days_of(end) - days_of(start), 7), valid)
    if unit == "microsecond":
        return Vector(BIGINT, calendar.difference(end.data, start.data, valid), valid)
    if unit in LENGTHS:
        length = LENGTHS[unit]
        return Vector(BIGINT, end.data // length - start.data // length, valid)
    places = [calendar.by_day(lambda days: _place(unit, days), days_of(v)) for v in (start, end)]
    return Vector(BIGINT, places[1] - places[0], valid)


def _place(unit: str, days: Array) -> Array:
    """The number of the unit that a day is in, counted from year 0."""
    year, month, _ = calendar.civil(days)
    if MONTHS[unit] >= 12:
        return toward_zero(year, MONTHS[unit] // 12)
    return toward_zero(year * 12 + month - 1, MONTHS[unit])


def date_sub(call: Call, args: tuple[Vector, ...]) -> Vector:
    """Whole units between two timestamps."""
    unit, start, end = unit_of(args[0]), args[1], args[2]
    valid = both_valid(start, end)
    if unit == "microsecond":
        return Vector(BIGINT, calendar.difference(end.data, start.data, valid), valid)
    if unit in LENGTHS:
        return Vector(BIGINT, calendar.whole_units(start.data, end.data, LENGTHS[unit]), valid)
    swapped = start.data > end.data
    first, last = np.minimum(start.data, end.data), np.maximum(start.data, end.data)
    months = toward_zero(_whole_months(first, last), MONTHS[unit])
    return Vector(BIGINT, np.where(swapped, -months, months), valid)


def _whole_months(first: Array, last: Array) -> Array:
    """Whole months from `first` to `last`, which is not earlier.

    The end of a short month completes a month that began on a later day.
    """
    year, month, day = calendar.civil(last // MICROS_A_DAY)
    first_year, first_month, first_day = calendar.civil(first // MICROS_A_DAY)
    length = calendar.month_days(year, month)
    first_day = np.where(day == length, np.minimum(first_day, length), first_day)
    late = (day, last % MICROS_A_DAY)
    early = (first_day, first % MICROS_A_DAY)
    incomplete = (late[0] < early[0]) | ((late[0] == early[0]) & (late[1] < early[1]))
    return (year - first_year) * 12 + month - first_month - incomplete


def last_day(call: Call, args: tuple[Vector, ...]) -> Vector:
    def last(days: Array) -> Array:
        year, month, _ = calendar.civil(days)
        return calendar.days_from_civil(year, month, calendar.month_days(year, month))

    days = calendar.by_day(last, days_of(args[0]))
    return Vector(DATE, np.asarray(days).astype(np.int32), args[0].valid)


def make_date(call: Call, args: tuple[Vector, ...]) -> Vector:
    valid = both_valid(*args)
    days = _checked_days(args[0].data, args[1].data, args[2].data, valid)
    return Vector(DATE, days.astype(np.int32), valid)


def _checked_days(year: Array, month: Array, day: Array, valid: Mask | None) -> Array:
    wrong = (
        (month < 1) | (month > 12) | (day < 1) | (year > FARTHEST_YEAR) | (year < -FARTHEST_YEAR)
    )
    year = np.clip(year, -FARTHEST_YEAR, FARTHEST_YEAR)
    wrong = wrong | (day > calendar.month_days(year, month))
    days = np.asarray(calendar.days_from_civil(year, np.clip(month, 1, 12), np.clip(day, 1, 31)))
    wrong = wrong | (abs(days) >= 2**31 - 1)
    wrong = wrong if valid is None else wrong & valid
    if wrong.any():
        row = first_row(wrong)
        text = "-".join(
            str(at(np.asarray(np.broadcast_to(v, wrong.shape)), row)) for v in (year, month, day)
        )
        raise ConversionError(f"Date out of range: {text} is no day of the calendar.")
    return days


def make_timestamp(call: Call, args: tuple[Vector, ...]) -> Vector:
    """From year to second, or from microseconds since 1970."""
    valid = both_valid(*args)
    if len(args) == 1:
        micros = args[0].data
        days, time = micros // MICROS_A_DAY, micros % MICROS_A_DAY
        return Vector(TIMESTAMP, calendar.timestamps(days, time, valid), valid)
    year, month, day, hour, minute, second = (a.data for a in args)
    days = _checked_days(year, month, day, valid)
    micros = np.rint(second * 1e6)
    wrong = (
        (hour < 0) | (hour > 24) | (minute < 0) | (minute > 59) | ~((micros >= 0) & (micros <= 6e7))
    )
    wrong = wrong | ((hour == 24) & ((minute != 0) | (micros != 0)))
    wrong = wrong if valid is None else wrong & valid
    if wrong.any():
        row = first_row(wrong)
        clock = ":".join(
            str(at(np.asarray(np.broadcast_to(v, wrong.shape)), row))
            for v in (hour, minute, second)
        )
        raise ConversionError(f"Time out of range: {clock} is no time of the day.")
    time = hour * LENGTHS["hour"] + minute * _MINUTE + np.where(wrong, 0, micros).astype(np.int64)
    return Vector(
        TIMESTAMP,
        calendar.timestamps(days + time // MICROS_A_DAY, time % MICROS_A_DAY, valid),
        valid,
    )


def _names(names: tuple[str, ...], place: Callable[[Array], Array]) -> Kernel:
    def kernel(call: Call, args: tuple[Vector, ...]) -> Vector:
        (arg,) = args
        places = np.atleast_1d(np.asarray(calendar.by_day(place, days_of(arg)), np.int64))
        chosen = from_numpy(places, arg.valid)
        result = Vector(call.type, array_from(names, pa.string()).take(chosen))
        return result.first() if arg.is_constant else result

    return kernel


def add_days(call: Call, args: tuple[Vector, ...]) -> Vector:
    start, count = args
    shift = count.data.astype(np.int64)
    days = start.data.astype(np.int64) + (-shift if call.function == "sub_days" else shift)
    valid = both_valid(start, count)
    wrong = abs(days) >= 2**31 - 1
    wrong = wrong if valid is None else wrong & valid
    if wrong.any():
        raise OutOfRange(
            "Date out of range: the sum of a date and a number of days leaves the calendar."
        )
    return Vector(DATE, days.astype(np.int32), valid)


def date_minus_date(call: Call, args: tuple[Vector, ...]) -> Vector:
    left, right = args
    return Vector(BIGINT, left.data.astype(np.int64) - right.data, both_valid(left, right))


def _of_each(zone: Vector, compute: Callable[[Zone, Any], Any], moments: Vector) -> Array:
    """Compute in the zone that each row names."""
    if zone.is_constant:
        return np.asarray(compute(zones.zone(zone.data), moments.data))
    names = pc.dictionary_encode(zone.data)
    codes = tables.to_numpy(null_as(names.indices, -1))
    found = np.zeros(len(codes), np.int64)
    data = np.broadcast_to(moments.data, codes.shape)
    for code, name in enumerate(names.dictionary.to_pylist()):
        rows = codes == code
        found[rows] = compute(zones.zone(name), data[rows])
    return found


def timezone(call: Call, args: tuple[Vector, ...]) -> Vector:
    zone, moments = args
    valid = both_valid(zone, moments)
    if zone.is_null:
        return null_constant(call.type)
    compute = Zone.utc if call.type.kind is Kind.TIMESTAMPTZ else Zone.local
    return Vector(call.type, _of_each(zone, compute, moments), valid)


def timestamptz(call: Call, args: tuple[Vector, ...]) -> Vector:
    """Text as a moment, of which clocks of the session's zone show what has no zone of its own."""
    own, text = args
    if text.is_null:
        return null_constant(call.type)
    texts = [text.data] if text.is_constant else text.data
    encoded = pc.dictionary_encode(array_from(texts, pa.string()) if text.is_constant else texts)
    different = encoded.dictionary.to_pylist()
    values = np.zeros(len(different) + 1, np.int64)
    wrong = np.zeros(len(different) + 1, bool)
    for place, written in enumerate(different):
        moment = parse_timestamptz(written, own.data)
        wrong[place] = moment is None
        values[place] = moment or 0
    if wrong.any() and call.function == "timestamptz":
        shown = different[int(np.argmax(wrong))]
        raise ConversionError(
            f"Could not convert string '{shown}' to {call.type}: use TRY_CAST to get NULL for such values."
        )
    codes = tables.to_numpy(null_as(encoded.indices, len(different)))
    valid = tables.to_numpy(encoded.is_valid()) & ~wrong[codes]
    found = Vector(call.type, values[codes], valid)
    return found.first() if text.is_constant else found


def timestamptz_text(call: Call, args: tuple[Vector, ...]) -> Vector:
    own, moments = args
    if moments.is_null:
        return null_constant(call.type)
    zone = zones.zone(own.data)
    data, valid = np.atleast_1d(moments.data), moments.valid
    local = zone.local(data)
    behind, places = np.unique(local - data, return_inverse=True)
    finite = np.abs(data) != INFINITE_MICROS
    ends = [*map(zones.offset_text, behind.tolist()), ""]
    suffix = chosen(ends, np.where(finite, places.reshape(-1), len(behind)), valid)
    text = joined(printed(Vector(TIMESTAMP, local, valid)), suffix)
    return Vector(call.type, text).first() if moments.is_constant else Vector(call.type, text)


KERNELS: dict[str, Kernel] = {
    "timezone": timezone,
    "timestamptz": timestamptz,
    "try_timestamptz": timestamptz,
    "timestamptz_text": timestamptz_text,
    **dict.fromkeys((*_DAY_PARTS, *_CLOCK_PARTS), part),
    "epoch": epoch,
    "date_trunc": date_trunc,
    "date_diff": date_diff,
    "date_sub": date_sub,
    "last_day": last_day,
    "make_date": make_date,
    "make_timestamp": make_timestamp,
    "monthname": _names(MONTH_NAMES, lambda days: calendar.month(days) - 1),
    "dayname": _names(DAY_NAMES, calendar.day_of_week),
    "add_days": add_days,
    "sub_days": add_days,
    "date_minus_date": date_minus_date,
}
