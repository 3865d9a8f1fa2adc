"""Text as a number, a truth value, a date or a timestamp, by DuckDB's rules, over the whole range of each; None where it is no value."""

from __future__ import annotations

import math
import re
import struct

from ..calendar import INFINITE_DAY, INFINITE_MICROS, MICROS_A_DAY, day_number
from ..types import HUGEINT, MAX_DECIMAL_DIGITS, DataType, Kind


class NoSuchValue(Exception):
    """A type has no such value, or a text stands for none: a class of its own, so that no fault of ours is taken for bad text."""


SPACE = " \t\n\v\f\r"
_DIGITS = r"\d+(?:_\d+)*"
_NUMBER = re.compile(rf"([+-]?)({_DIGITS})?(?:(\.)({_DIGITS})?)?(?:[eE]([+-]?\d+))?", re.ASCII)
_BASED = re.compile(r"0[xX]([0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)|0[bB]([01]+(?:_[01]+)*)")
_TRUE, _FALSE = ("true", "t", "1", "yes", "y"), ("false", "f", "0", "no", "n")
LARGEST_SIZE = 60  # more digits than any type holds
MAX_EXPONENT = 2**15 - 1  # of a number with an exponent, as in DuckDB


def parse_boolean(text: str) -> bool | None:
    folded = text.lower()
    return True if folded in _TRUE else False if folded in _FALSE else None


def parse_number(text: str, target: DataType) -> int | None:
    """Return the value of an integer or decimal type, unscaled and rounded half away from zero, if it fits.

    Integers and HUGEINT may be in base 16 or 2; one without a sign is no negative number, not even a small one, but for -0.
    """
    low, high = target.integer_range
    text = text.lstrip(SPACE)
    if low == 0 and text.startswith("-"):
        return None if text[1:].strip("0") or text == "-" else 0
    text = text.rstrip(SPACE)
    based = _BASED.fullmatch(text) if target.is_whole else None
    if based:
        value: int | None = int(based[1] or based[2], 16 if based[1] else 2)
    else:
        value = _rounded(text, target)
    return value if value is not None and low <= value <= high else None


def _rounded(text: str, target: DataType) -> int | None:
    """Return a number in base 10 times 10^scale; None for more digits than any type has, of which int() would refuse to read 5,000."""
    found = _NUMBER.fullmatch(text)
    if found is None or not (found[2] or found[4]):
        return None
    whole, fraction = ((found[i] or "").replace("_", "") for i in (2, 4))
    exponent = int(found[5][:9] if found[5] else "0")
    if target == HUGEINT and _leaves_128_bits(fraction.lstrip("0")):
        return None  # DuckDB reads a fraction as a HUGEINT too
    digits = (whole + fraction).lstrip("0")
    whole = whole.lstrip("0")
    if found[5] and not -MAX_EXPONENT - 1 <= exponent <= MAX_EXPONENT:
        return None
    if found[5] and not target.is_whole and len(whole) > target.precision - target.scale:
        return None  # DuckDB reads the digits before it looks at the exponent
    before = len(digits) + exponent - len(fraction) + target.scale  # digits before the point
    if before > LARGEST_SIZE and digits:
        return None
    kept = digits[: max(before, 0)] or "0"
    value = int(kept) * 10 ** max(before - len(digits), 0)
    value += 0 <= before < len(digits) and digits[before] >= "5"
    return -value if found[1] == "-" else value


def _leaves_128_bits(digits: str) -> bool:
    return len(digits) > MAX_DECIMAL_DIGITS and (len(digits) > 39 or int(digits) >= 1 << 127)


def parse_double(text: str, target: DataType) -> float | None:
    text = text.strip(SPACE)
    folded = text.lower().lstrip("+-")
    if folded not in ("inf", "infinity", "nan"):
        found = _NUMBER.fullmatch(text)
        if found is None or not (found[2] or found[4]):
            return None
    value = float(text.replace("_", ""))
    return nearest_float(value) if target.kind is Kind.FLOAT else value


def nearest_float(value: float) -> float:
    """Return the nearest value of 32 bits, infinity beyond the largest."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


_WORDS = {"epoch": 0, "infinity": 1, "inf": 1, "-infinity": -1, "-inf": -1}
_DATE = re.compile(r"(-?\d{1,7})([-/\\ ])(\d{1,2})\2(\d{1,2})( \(BC\))?", re.ASCII)
# 12: is noon, and so is 12:0:
_CLOCK = re.compile(r"(\d{1,2}):(?:(\d{1,2})(?::(?:(\d{1,2})(?:\.(\d*))?)?)?)?", re.ASCII)


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


def _clock(text: str, digits: int = 6) -> int | None:
    """A time of day in units of so many digits of a second; a zone after it is read over, as DuckDB's TIMESTAMP does."""
    found = _CLOCK.match(text)
    if found is None or not _ZONE.fullmatch(text[found.end() :]):
        return None
    return _of_day(found, digits)


def _of_day(found: re.Match[str], digits: int) -> int | None:
    hour, minute, second = (int(found[i] or "0") for i in (1, 2, 3))
    fraction = int((found[4] or "")[:digits].ljust(digits, "0"))
    if hour > 24 or minute > 59 or second > 59 or (hour == 24 and (minute or second or fraction)):
        return None
    return ((hour * 60 + minute) * 60 + second) * 10**digits + fraction


_OFFSET = r"Z|[+-]\d{2}(?::?\d{2}){0,2}"
_NAME = r"[A-Za-z][\w/+-]*"
_ZONE = re.compile(rf"\s*(?:{_OFFSET}|(?<=\s){_NAME})?\s*", re.ASCII)
# TIMESTAMPTZ has no space before an offset; TIME without a date no names, and offsets and spaces behind seconds alone
_ZONE_OF_MOMENT = re.compile(rf"(?:{_OFFSET}|\s+(?!Z\s*$){_NAME})?\s*", re.ASCII)
_TIME = re.compile(
    rf"{_CLOCK.pattern}(?(3)\s*(?:Z|[+-](?:0\d|1[0-5])(?::?[0-5]\d){{0,2}})?\s*)", re.ASCII
)


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


def parse_time(text: str) -> int | None:
    """Return microseconds since midnight; a date may stand before them."""
    text = text.lstrip(SPACE)
    found = _leading_date(text)
    if found is None:
        return 0 if _word(text) == 0 else _clock(text) if _TIME.fullmatch(text) else None
    if found[1] and not found[1].strip(SPACE):
        return None
    moment = parse_timestamp(text)
    return None if moment is None else moment % MICROS_A_DAY


def parse_moment(text: str) -> tuple[int, str] | None:
    """Return microseconds since 1970 as a clock on the wall shows them, and the zone written behind: "", Z, +05:30 or a name."""
    text = text.lstrip(SPACE)
    if (sign := _word(text)) is not None:
        return sign * INFINITE_MICROS, "Z"
    found = _leading_date(text)
    if found is None:
        return None
    days, rest = found
    clock = _CLOCK.match(rest[1:].lstrip()) if rest[:1] in ("T", " ") and rest.strip() else None
    if clock is None:
        return None if rest else (days * MICROS_A_DAY, "")
    zone, time = rest[1:].lstrip()[clock.end() :], _of_day(clock, 6)
    if time is None or not _ZONE_OF_MOMENT.fullmatch(zone):
        return None
    moment = days * MICROS_A_DAY + time
    return (moment, zone.strip(SPACE)) if abs(moment) < INFINITE_MICROS else None


def parse_timestamp(text: str, digits: int = 6) -> int | None:
    """Return the count of units of so many digits of a second since 1970."""
    text = text.lstrip(SPACE)  # after a date, a space announces a time
    if (sign := _word(text)) is not None:
        return sign * INFINITE_MICROS
    found = _leading_date(text)
    if found is None:
        return None
    days, rest = found
    time: int | None = 0
    if rest:
        time = _clock(rest[1:].lstrip(), digits) if rest[0] in "T " else None
    if time is None:
        return None
    value = days * 86_400 * 10**digits + time
    return value if abs(value) < INFINITE_MICROS else None
