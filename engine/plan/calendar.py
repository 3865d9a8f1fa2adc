"""The proleptic Gregorian calendar over single Python integers, or arrays of them, for all of DuckDB's range.

Python's `date` and `datetime` hold years 1 to 9999; DATE and TIMESTAMP reach some 5 million and 290,000 years from 1970.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Days = TypeVar("Days", int, "npt.NDArray[np.int64]")

MICROS_A_DAY = 86_400_000_000
UNIT_MICROS = {  # of the units that have a fixed length
    "microsecond": 1,
    "millisecond": 1000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": MICROS_A_DAY,
}
DAYS_A_MONTH = 30  # what DuckDB compares intervals by
EPOCH_DAY, EPOCH = date(1970, 1, 1), datetime(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)
INFINITE_DAY, INFINITE_MICROS = 2**31 - 1, 2**63 - 1  # DuckDB's 'infinity'; negated: '-infinity'
EPOCH_SHIFT = 719_468  # days from 0000-03-01 to 1970-01-01
ERA = 146_097  # days in 400 years
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def civil(days: Days) -> tuple[Days, Days, Days]:
    """Return year (astronomical: 0 is 1 BC), month and day; after Howard Hinnant's `civil_from_days`."""
    era, of_era = divmod(days + EPOCH_SHIFT, ERA)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march_month = (5 * of_year + 2) // 153
    day = of_year - (153 * march_month + 2) // 5 + 1
    month = march_month + 3 - 12 * (march_month >= 10)
    return year_of_era + era * 400 + (month <= 2), month, day


def month_days(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _MONTH_DAYS[month - 1] + (leap and month == 2)


def day_number(year: int, month: int, day: int) -> int | None:
    """Return days since 1970, None where the calendar has no such day."""
    if not 1 <= month <= 12 or not 1 <= day <= month_days(year, month):
        return None
    return first_of_month(year, month) + day - 1


def first_of_month(year: Days, month: Days) -> Days:
    era, year_of_era = divmod(year - (month <= 2), 400)
    of_year = (153 * (month + 9 - 12 * (month > 2)) + 2) // 5
    of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + of_year
    return era * ERA + of_era - EPOCH_SHIFT


def date_text(days: int) -> str:
    """Return a date as DuckDB writes it: 2024-02-29, 12345-01-01, 0044-03-15 (BC).

    >>> date_text(0), date_text(-735_160)
    ('1970-01-01', '0044-03-15 (BC)')
    """
    if abs(days) == INFINITE_DAY:
        return "infinity" if days > 0 else "-infinity"
    year, month, day = civil(days)
    shown, era = (year, "") if year > 0 else (1 - year, " (BC)")
    return f"{shown:04d}-{month:02d}-{day:02d}{era}"


def timestamp_text(count: int, second: int = 1_000_000) -> str:
    """Return a count since 1970, by default of microseconds, as DuckDB writes a timestamp: 2024-02-29 01:02:03.5."""
    if abs(count) == INFINITE_MICROS:
        return "infinity" if count > 0 else "-infinity"
    days, rest = divmod(count, 86_400 * second)
    return f"{date_text(days)} {clock_text(rest, second)}"


def clock_text(count: int, second: int = 1_000_000) -> str:
    """Return a time of day, a count of which `second` are one, as DuckDB writes it: 01:02:03.5."""
    seconds, rest = divmod(count, second)
    fraction = f".{rest:0{len(str(second)) - 1}d}".rstrip("0") if rest else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"


def interval_text(months: int, days: int, nanoseconds: int) -> str:
    """Return an interval as DuckDB writes it: 1 year 2 months 3 days 04:05:06.5."""
    years, months = int(months / 12), months - 12 * int(months / 12)
    named = ((years, "year"), (months, "month"), (days, "day"))
    parts = [f"{n} {unit}{'' if n in (1, -1) else 's'}" for n, unit in named if n]
    if nanoseconds or not parts:
        sign = "-" if nanoseconds < 0 else ""
        parts.append(sign + clock_text(abs(nanoseconds) // 1000))
    return " ".join(parts)
