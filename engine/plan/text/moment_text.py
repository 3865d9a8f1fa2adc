"""Text as a date or timestamp, by DuckDB's rules, over its whole range: days or microseconds since 1970.  None where it is no value."""

from __future__ import annotations

import re

from ..calendar import INFINITE_DAY, INFINITE_MICROS, MICROS_A_DAY, day_number
from .number_text import SPACE

_WORDS = {"epoch": 0, "infinity": 1, "inf": 1, "-infinity": -1, "-inf": -1}
_DATE = re.compile(r"(-?\d{1,7})([-/\\ ])(\d{1,2})\2(\d{1,2})( \(BC\))?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?", re.ASCII)


def _leading_date(text: str) -> tuple[int, str] | None:
    """Days since 1970 of the date that `text` begins with, and what follows it."""
    found = _DATE.match(text)
    if found is None:
        return None
    year, month, day = int(found[1]), int(found[3]), int(found[4])
    if found[5]:
        year = 1 - year
    days = day_number(year, month, day)
    if days is None or abs(days) >= INFINITE_DAY:
        return None
    return days, text[found.end() :]


def _clock(text: str) -> int | None:
    """Microseconds of a time of day; a zone after it is read over, as DuckDB's TIMESTAMP does."""
    found = _CLOCK.match(text)
    if found is None or not _ZONE.fullmatch(text[found.end() :]):
        return None
    hour, minute, second = (int(found[i] or "0") for i in (1, 2, 3))
    fraction = int((found[4] or "")[:6].ljust(6, "0"))
    if hour > 24 or minute > 59 or second > 59 or (hour == 24 and (minute or second or fraction)):
        return None
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction


_ZONE = re.compile(r"\s*(?:[zZ]|[+-]\d{1,2}(?::?\d{2}){0,2}|(?<=\s)[A-Za-z][\w/+-]*)?\s*", re.ASCII)


def _word(text: str) -> int | None:
    """Return the sign of infinity or 0 for the epoch; DuckDB takes spaces after the whole words alone."""
    word = text.lower()
    return _WORDS.get(
        word, _WORDS.get(word.rstrip(SPACE)) if word.strip(SPACE + "-") != "inf" else None
    )


def parse_date(text: str) -> int | None:
    text = text.lstrip(SPACE)
    if (sign := _word(text)) is not None:
        return sign * INFINITE_DAY
    text = text.rstrip(SPACE)
    found = _leading_date(text)
    if found is None:
        return None
    days, rest = found
    if rest and (rest[0] not in "T " or _clock(rest[1:].lstrip()) is None):
        return None
    return days


def parse_timestamp(text: str) -> int | None:
    text = text.lstrip(SPACE)  # after a date, a space announces a time
    if (sign := _word(text)) is not None:
        return sign * INFINITE_MICROS
    found = _leading_date(text)
    if found is None:
        return None
    days, rest = found
    time: int | None = 0
    if rest:
        time = _clock(rest[1:].lstrip()) if rest[0] in "T " else None
    if time is None:
        return None
    value = days * MICROS_A_DAY + time
    return value if abs(value) < INFINITE_MICROS else None
