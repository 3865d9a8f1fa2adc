"""Dates, timestamps and intervals.

DATE widens to TIMESTAMP wherever a function has no DATE form of its own, so kernels see the types named here.  The unit of date_trunc,
date_diff and date_sub is a VARCHAR Literal, one of `UNITS`, in its canonical spelling.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    DataType,
    Kind,
)
from .row import FunctionRow, Resolve, Resolved, any_of, fixed, operator, overloads
from .value_bounds import calendar_years, units_between, within

UNITS = (
    "microsecond",
    "millisecond",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
    "decade",
    "century",
    "millennium",
)
CLOCK_UNITS = UNITS[:5]  # of which a TIME has some

# Parts of EXTRACT and date_part, and other spellings of units, to function names.
# Of which a BIGINT is an INTERVAL
WHOLE_UNITS = ("millennia", "centuries", "decades", "years", "quarters", "months", "weeks", "days", "hours", "minutes", "microseconds")  # fmt: skip
PARTS: dict[str, str] = {
    **{unit: unit for unit in UNITS},
    **{f"{unit}s": unit for unit in UNITS if unit not in ("century", "millennium")},
    **dict.fromkeys(("us", "usec", "usecs", "usecond", "useconds"), "microsecond"),
    **dict.fromkeys(("ms", "msec", "msecs"), "millisecond"),
    **dict.fromkeys(("s", "sec", "secs"), "second"),
    **dict.fromkeys(("m", "min", "mins"), "minute"),
    **dict.fromkeys(("h", "hr", "hrs"), "hour"),
    **dict.fromkeys(("d", "dayofmonth"), "day"),
    **dict.fromkeys(("w", "weekofyear"), "week"),
    **dict.fromkeys(("mon", "mons"), "month"),
    **dict.fromkeys(("y", "yr", "yrs"), "year"),
    **dict.fromkeys(("dec", "decs"), "decade"),
    **dict.fromkeys(("c", "cent", "centuries"), "century"),
    **dict.fromkeys(("mil", "millenniums", "millennia"), "millennium"),
    **dict.fromkeys(("dow", "weekday", "dayofweek"), "dayofweek"),
    **dict.fromkeys(("doy", "dayofyear"), "dayofyear"),
    "isodow": "isodow",
    "isoyear": "isoyear",
    "epoch": "epoch",
}

_MOMENT = any_of(Kind.DATE, Kind.TIMESTAMP, result=BIGINT, null=TIMESTAMP)
_CALENDAR = overloads(_MOMENT, fixed(TIMESTAMP, result=BIGINT))
_CALENDAR_OR_INTERVAL = overloads(_CALENDAR, fixed(INTERVAL, result=BIGINT))


def _clock(result: DataType) -> Resolve:
    """TIMESTAMP (a DATE is cast), TIME or INTERVAL."""
    return overloads(*(fixed(t, result=result) for t in (TIMESTAMP, TIME, INTERVAL)))


def _unit(name: str) -> FunctionRow:
    """(unit Literal, TIMESTAMP, TIMESTAMP) -> BIGINT."""
    return FunctionRow(
        name,
        fixed(VARCHAR, TIMESTAMP, TIMESTAMP, result=BIGINT),
        f"{name}(unit, TIMESTAMP, TIMESTAMP)",
        {"date_diff": ("datediff",), "date_sub": ("datesub",)}[name],
        bounds=units_between,
        infinite="null",
    )


PART_FUNCTIONS = (
    # DATE or TIMESTAMP or INTERVAL -> BIGINT.
    *(
        FunctionRow(
            name,
            _CALENDAR_OR_INTERVAL,
            f"{name}(DATE | TIMESTAMP | INTERVAL)",
            aliases,
            bounds=bounds,
            infinite="null",
        )
        for name, aliases, bounds in (
            ("year", (), calendar_years(1)),
            ("quarter", (), within(1, 4)),
            ("month", (), within(1, 12)),
            ("day", ("dayofmonth",), within(1, 31)),
            ("decade", (), calendar_years(10, 0)),
            ("century", (), calendar_years(100)),
            ("millennium", (), calendar_years(1000)),
        )
    ),
    # DATE or TIMESTAMP -> BIGINT.  week is ISO's; dayofweek has Sunday 0, isodow Monday 1 to Sunday 7.
    *(
        FunctionRow(
            name, _CALENDAR, f"{name}(DATE | TIMESTAMP)", aliases, bounds=bounds, infinite="null"
        )
        for name, aliases, bounds in (
            ("week", ("weekofyear",), within(1, 53)),
            ("isodow", (), within(1, 7)),
            ("dayofweek", ("weekday",), within(0, 6)),
            ("dayofyear", (), within(1, 366)),
            ("isoyear", (), calendar_years(1)),
        )
    ),
    # TIMESTAMP, TIME or INTERVAL -> BIGINT.  millisecond and microsecond include the seconds of the minute (12.345 s is 12345).
    *(
        FunctionRow(
            name,
            _clock(BIGINT),
            f"{name}(TIMESTAMP | TIME | INTERVAL)",
            bounds=bounds,
            infinite="null",
        )
        for name, bounds in (
            ("hour", within(0, 23)),
            ("minute", within(0, 59)),
            ("second", within(0, 59)),
            ("millisecond", None),
            ("microsecond", None),
        )
    ),
    # Seconds with their fraction.
    FunctionRow("epoch", _clock(DOUBLE), "epoch(TIMESTAMP | TIME | INTERVAL)", infinite="null"),
)

CALENDAR = (
    FunctionRow(
        "date_trunc",
        fixed(VARCHAR, TIMESTAMP, result=TIMESTAMP),
        "date_trunc(unit, TIMESTAMP)",
        ("datetrunc",),
        infinite="kept",
    ),
    _unit("date_diff"),  # boundaries of the unit between a and b
    _unit("date_sub"),  # whole units between a and b
    # Years, months and days between two moments, and the time that is left.
    FunctionRow(
        "age",
        fixed(TIMESTAMP, TIMESTAMP, result=INTERVAL),
        "age(TIMESTAMP, TIMESTAMP)",
        infinite="null",
    ),
    # The begin of the bucket of a width, of months or else of time; buckets begin at 2000-01-03, of months at 2000-01-01, or at the origin.
    FunctionRow(
        "time_bucket",
        fixed(INTERVAL, TIMESTAMP, TIMESTAMP, result=TIMESTAMP, optional=1),
        "time_bucket(INTERVAL, TIMESTAMP[, TIMESTAMP])",
        infinite="kept",
    ),
    FunctionRow("julian", fixed(TIMESTAMP, result=DOUBLE), "julian(TIMESTAMP)", infinite="null"),
    # Time beyond a day as days, days beyond 30 as months.
    FunctionRow(
        "normalized_interval", fixed(INTERVAL, result=INTERVAL), "normalized_interval(INTERVAL)"
    ),
    # date_trunc of an INTERVAL: what is less than the unit is left out.
    FunctionRow(
        "interval_trunc",
        fixed(VARCHAR, INTERVAL, result=INTERVAL),
        "date_trunc(unit, INTERVAL)",
    ),
    FunctionRow("last_day", fixed(TIMESTAMP, result=DATE), "last_day(DATE)", infinite="null"),
    # Invalid parts: ConversionError.
    FunctionRow(
        "make_date", fixed(BIGINT, BIGINT, BIGINT, result=DATE), "make_date(BIGINT, BIGINT, BIGINT)"
    ),
    # (year, month, day, hour, minute, seconds DOUBLE), or microseconds since 1970.
    FunctionRow(
        "make_timestamp",
        overloads(
            fixed(BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, DOUBLE, result=TIMESTAMP),
            fixed(BIGINT, result=TIMESTAMP),
        ),
        "make_timestamp(BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, DOUBLE)",
    ),
    FunctionRow(
        "strftime",
        fixed(TIMESTAMP, VARCHAR, result=VARCHAR),
        "strftime(TIMESTAMP, format)",
        infinite="kept",
    ),  # format is a Literal
    # What is no moment in the format: ExecutionError or ConversionError, of try_strptime NULL.
    FunctionRow("strptime", fixed(VARCHAR, VARCHAR, result=TIMESTAMP), "strptime(VARCHAR, format)"),
    FunctionRow(
        "try_strptime", fixed(VARCHAR, VARCHAR, result=TIMESTAMP), "try_strptime(VARCHAR, format)"
    ),
    FunctionRow("monthname", fixed(TIMESTAMP, result=VARCHAR), "monthname(DATE)", infinite="null"),
    FunctionRow("dayname", fixed(TIMESTAMP, result=VARCHAR), "dayname(DATE)", infinite="null"),
)

ARITHMETIC = (
    # (TIMESTAMP, INTERVAL) -> TIMESTAMP, a DATE is cast: months first (clipped to the month's end), days, microseconds.
    operator(
        "add_interval",
        fixed(TIMESTAMP, INTERVAL, result=TIMESTAMP),
        "TIMESTAMP + INTERVAL",
        infinite="kept",
    ),
    operator(
        "sub_interval",
        fixed(TIMESTAMP, INTERVAL, result=TIMESTAMP),
        "TIMESTAMP - INTERVAL",
        infinite="kept",
    ),
    # Around midnight; of an interval its microseconds alone.
    operator("add_interval_to_time", fixed(TIME, INTERVAL, result=TIME), "TIME + INTERVAL"),
    operator("sub_interval_of_time", fixed(TIME, INTERVAL, result=TIME), "TIME - INTERVAL"),
    operator("at_time", fixed(DATE, TIME, result=TIMESTAMP), "DATE + TIME", infinite="kept"),
    operator("add_days", fixed(DATE, INTEGER, result=DATE), "DATE + INTEGER", infinite="kept"),
    operator("sub_days", fixed(DATE, INTEGER, result=DATE), "DATE - INTEGER", infinite="kept"),
    operator("date_minus_date", fixed(DATE, DATE, result=BIGINT), "DATE - DATE"),  # days
    # INTERVAL of whole days and microseconds, no months.
    operator(
        "timestamp_minus_timestamp",
        fixed(TIMESTAMP, TIMESTAMP, result=INTERVAL),
        "TIMESTAMP - TIMESTAMP",
        infinite="error",
    ),
    # Part by part.
    operator("add_intervals", fixed(INTERVAL, INTERVAL, result=INTERVAL), "INTERVAL + INTERVAL"),
    operator("sub_intervals", fixed(INTERVAL, INTERVAL, result=INTERVAL), "INTERVAL - INTERVAL"),
    operator("neg_interval", fixed(INTERVAL, result=INTERVAL), "- INTERVAL"),
    # By BIGINT part by part; by DOUBLE with fractions of a month spilling to days of 30 and of a day to microseconds.
    operator(
        "mul_interval",
        overloads(
            fixed(INTERVAL, BIGINT, result=INTERVAL), fixed(INTERVAL, DOUBLE, result=INTERVAL)
        ),
        "INTERVAL * number",
    ),
    operator(
        "div_interval",
        fixed(INTERVAL, DOUBLE, result=INTERVAL),
        "INTERVAL / number",
        by_zero="error",
    ),
    # A number of the unit as an INTERVAL.
    *(
        FunctionRow(f"to_{unit}", fixed(BIGINT, result=INTERVAL), f"to_{unit}(BIGINT)")
        for unit in WHOLE_UNITS
    ),
    *(
        FunctionRow(f"to_{unit}", fixed(DOUBLE, result=INTERVAL), f"to_{unit}(DOUBLE)")
        for unit in ("seconds", "milliseconds")
    ),
)

# Which see of a TIMESTAMP WITH TIME ZONE what clocks show
LOCAL = frozenset(
    [*(row.name for row in PART_FUNCTIONS), "date_trunc", "last_day", "monthname", "dayname"]
)

_IN_ZONE = overloads(
    fixed(VARCHAR, TIMESTAMPTZ, result=TIMESTAMP), fixed(VARCHAR, TIMESTAMP, result=TIMESTAMPTZ)
)


def _in_zone(types: Sequence[DataType]) -> Resolved:
    """Of a NULL without a type DuckDB makes a TIME."""
    return None if types[-1:] and types[-1].kind is Kind.NULL else _IN_ZONE(types)


ZONES = (
    # What clocks of a zone show at a moment, and the moment at which they show that.
    FunctionRow(
        "timezone",
        _in_zone,
        "timezone(VARCHAR, TIMESTAMP | TIMESTAMP WITH TIME ZONE)",
    ),
    # Casts in the session's zone, which is the first argument.
    operator("timestamptz", fixed(VARCHAR, VARCHAR, result=TIMESTAMPTZ), "VARCHAR :: TIMESTAMPTZ"),
    operator(
        "try_timestamptz", fixed(VARCHAR, VARCHAR, result=TIMESTAMPTZ), "VARCHAR :: TIMESTAMPTZ"
    ),
    operator(
        "timestamptz_text", fixed(VARCHAR, TIMESTAMPTZ, result=VARCHAR), "TIMESTAMPTZ :: VARCHAR"
    ),
)

DATES = (*PART_FUNCTIONS, *CALENDAR, *ARITHMETIC, *ZONES)
