"""One string as a value: the unusual spellings that `kernels_parse` leaves over.  None where it is no value."""

from __future__ import annotations

import re

import numpy as np

from ...plan.types import DataType, Kind
from . import kernels_calendar as calendar
from .kernels_calendar import MICROS_A_DAY

_SPACE = " \t\n\v\f\r"
_DIGITS = r"\d+(?:_\d+)*"
_NUMBER = re.compile(rf"([+-]?)({_DIGITS})?(?:(\.)({_DIGITS})?)?(?:[eE]([+-]?\d+))?", re.ASCII)
_BASED = re.compile(r"0[xX]([0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)|0[bB]([01]+(?:_[01]+)*)")
_TRUE, _FALSE = ("true", "t", "1", "yes", "y"), ("false", "f", "0", "no", "n")
LARGEST_EXPONENT = 400  # more digits than any type holds


def parse_boolean(text: str) -> bool | None:
    folded = text.lower()
    return True if folded in _TRUE else False if folded in _FALSE else None


def parse_number(text: str, scale: int, decimal: bool = False) -> int | None:
    """Return the value times 10^scale, rounded half away from zero; integers may be in base 16 or 2."""
    text = text.strip(_SPACE)
    based = None if decimal else _BASED.fullmatch(text)
    if based:
        return int(based[1] or based[2], 16 if based[1] else 2)
    found = _NUMBER.fullmatch(text)
    if found is None or not (found[2] or found[4]):
        return None
    sign, whole, fraction = (
        found[1],
        (found[2] or "").replace("_", ""),
        (found[4] or "").replace("_", ""),
    )
    digits = int(whole + fraction or "0")
    shift = int(found[5] or "0") - len(fraction) + scale
    if digits and shift > LARGEST_EXPONENT:
        return None
    if shift >= 0:
        value = digits * 10**shift if digits else 0
    elif -shift > len(whole + fraction) + 1:
        value = 0
    else:
        value = (digits + 10**-shift // 2) // 10**-shift
    return -value if sign == "-" else value


def parse_double(text: str, target: DataType) -> float | None:
    text = text.strip(_SPACE)
    folded = text.lower().lstrip("+-")
    if folded not in ("inf", "infinity", "nan"):
        found = _NUMBER.fullmatch(text)
        if found is None or not (found[2] or found[4]):
            return None
    value = float(text.replace("_", ""))
    if target.kind is Kind.FLOAT:
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    return value


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
    days = calendar.one_day(year, month, day)
    if days is None or abs(days) >= 2**31 - 1:
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


def parse_date(text: str) -> int | None:
    text = text.strip(_SPACE)
    if text.lower() == "epoch":
        return 0
    found = _leading_date(text)
    if found is None:
        return None
    days, rest = found
    if rest and (rest[0] not in "T " or _clock(rest[1:].lstrip()) is None):
        return None
    return days


def parse_timestamp(text: str) -> int | None:
    text = text.lstrip(_SPACE)  # after a date, a space announces a time
    if text.strip(_SPACE).lower() == "epoch":
        return 0
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
    return value if abs(value) < 2**63 - 1 else None
