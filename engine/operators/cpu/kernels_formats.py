"""strftime and strptime, with DuckDB's specifiers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import ConversionError, ExecutionError, FuselineError
from ...plan.expr import Call
from ...plan.functions.formats import (
    DAY_NAMES,
    MONTH_NAMES,
    SHORT_DAYS,
    SHORT_MONTHS,
    specifiers,
)
from ...plan.types import TIMESTAMP
from . import kernels_calendar as calendar
from . import table as tables
from .kernels_calendar import MICROS_A_DAY
from .kernels_print import chosen, joined, padded
from .kernels_texts import over_text
from .vectors import Array, Mask, Vector

_SECOND = 1_000_000


# Specifier -> (function of days and microseconds of the day, digits; 0 for no padding).
def _of_day(function: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda days, _: calendar.by_day(function, days)


def _twelve(days: Array, micros: Array) -> Array:
    return (micros // (3600 * _SECOND) + 11) % 12 + 1


def _week_from(weekday: int) -> Callable[[Array, Array], Array]:
    """The week of the year when weeks begin on a weekday; days before the first such day are in week 0."""
    return _of_day(
        lambda d: (calendar.day_of_year(d) + 6 - (calendar.day_of_week(d) - weekday) % 7) // 7
    )


_PADDED: dict[str, tuple[Callable[[Array, Array], Array], int]] = {
    "d": (_of_day(calendar.day), 2),
    "m": (_of_day(calendar.month), 2),
    "y": (_of_day(lambda d: np.abs(calendar.year(d)) % 100), 2),
    "H": (lambda _, t: t // (3600 * _SECOND), 2),
    "I": (_twelve, 2),
    "M": (lambda _, t: t // (60 * _SECOND) % 60, 2),
    "S": (lambda _, t: t // _SECOND % 60, 2),
    "j": (_of_day(calendar.day_of_year), 3),
}
_NUMBERS: dict[str, tuple[Callable[[Array, Array], Array], int]] = {
    **_PADDED,
    **{f"-{letter}": (function, 0) for letter, (function, _) in _PADDED.items()},
    "Y": (_of_day(calendar.year), 4),
    "G": (_of_day(calendar.iso_year), 4),
    "f": (lambda _, t: t % _SECOND, 6),
    "g": (lambda _, t: t % _SECOND // 1000, 3),
    "n": (lambda _, t: t % _SECOND * 1000, 9),
    "U": (_week_from(0), 2),
    "W": (_week_from(1), 2),
    "V": (_of_day(calendar.iso_week), 2),
    "u": (_of_day(calendar.iso_day_of_week), 0),
    "w": (_of_day(calendar.day_of_week), 0),
}
_WORDS: dict[str, tuple[tuple[str, ...], Callable[[Array, Array], Array]]] = {
    "a": (SHORT_DAYS, _of_day(calendar.day_of_week)),
    "A": (DAY_NAMES, _of_day(calendar.day_of_week)),
    "b": (SHORT_MONTHS, _of_day(lambda d: calendar.month(d) - 1)),
    "h": (SHORT_MONTHS, _of_day(lambda d: calendar.month(d) - 1)),
    "B": (MONTH_NAMES, _of_day(lambda d: calendar.month(d) - 1)),
    "p": (("AM", "PM"), lambda _, t: t // (12 * 3600 * _SECOND)),
    "z": (("+00",), lambda _, t: t * 0),
    "Z": (("",), lambda _, t: t * 0),
}


def strftime(call: Call, args: tuple[Vector, ...]) -> Vector:
    moment, layout = args
    if not isinstance(layout.data, str):
        raise ExecutionError("strftime takes a constant format.")
    data = np.atleast_1d(moment.data)
    days, micros = data // MICROS_A_DAY, data % MICROS_A_DAY
    pieces = [
        pa.repeat("", len(data)) if moment.valid is None else chosen([""], days * 0, moment.valid)
    ]
    for kind, text in specifiers(layout.data):
        pieces.append(
            pa.scalar(text) if kind == "text" else _piece(text, days, micros, moment.valid)
        )
    result = Vector(call.type, joined(*pieces))
    return result.first() if moment.is_constant else result


def _piece(letter: str, days: Array, micros: Array, valid: Mask | None) -> pa.Array:
    if letter in _WORDS:
        words, place = _WORDS[letter]
        return chosen(list(words), np.asarray(place(days, micros)), valid)
    function, width = _NUMBERS[letter]
    numbers = np.asarray(function(days, micros))
    text = padded(numbers, width, valid)
    if letter in ("Y", "G") and (numbers < 0).any():
        return pc.if_else(tables.from_numpy(numbers < 0), padded(numbers, 0, valid), text)
    return text


_PATTERNS = {
    "Y": r"(?P<Y>-?\d{1,4})",
    "G": r"(?P<G>-?\d{1,4})",
    "y": r"(?P<y>\d{1,2})",
    "j": r"(?P<j>\d{1,3})",
    "f": r"(?P<f>\d{1,6})",
    "g": r"(?P<g>\d{1,3})",
    "n": r"(?P<n>\d{1,9})",
    "u": r"(?P<u>[1-7])",
    "w": r"(?P<w>[0-6])",
    "a": f"(?:{'|'.join(SHORT_DAYS)})",
    "A": f"(?:{'|'.join(DAY_NAMES)})",
    "b": f"(?P<b>{'|'.join(SHORT_MONTHS)})",
    "h": f"(?P<b>{'|'.join(SHORT_MONTHS)})",
    "B": f"(?P<b>{'|'.join(MONTH_NAMES)})",
    "p": "(?P<p>AM|PM)",
}


def strptime(text: pa.Array, layout: str) -> pa.Array:
    return _parsed(text, layout, strict=True)


def try_strptime(text: pa.Array, layout: str) -> pa.Array:
    """As strptime, but NULL for a string that is no moment in this format."""
    return _parsed(text, layout, strict=False)


def _parsed(text: pa.Array, layout: str, strict: bool) -> pa.Array:
    """Parse each different string once."""
    pattern = re.compile(_expression(layout), re.IGNORECASE)
    encoded = pc.dictionary_encode(text)
    moments: list[int | None] = []
    for value in encoded.dictionary.to_pylist():
        found = pattern.fullmatch(value)
        moment = None if found is None else _moment(found.groupdict())
        if moment is None and strict:
            raise _no_moment(value, layout, fits=found is not None)
        moments.append(moment)
    return pa.array(moments, pa.int64()).take(encoded.indices).view(tables.physical_type(TIMESTAMP))


def _no_moment(text: str, layout: str, fits: bool) -> FuselineError:
    if fits:
        return ConversionError(f"Date or time out of range: '{text}' is no moment of the calendar.")
    return ExecutionError(
        f"Could not parse string '{text}' according to the format '{layout}': use another format."
    )


def _expression(layout: str) -> str:
    parts = [r"\s*"]
    for kind, text in specifiers(layout):
        if kind == "text":
            parts.append(r"\s+".join(map(re.escape, re.split(r"\s+", text))))
        else:
            letter = text.removeprefix("-")
            if letter in "zZ":
                raise ExecutionError(
                    "strptime reads no time zones: leave %z and %Z out of the format."
                )
            parts.append(_PATTERNS.get(letter) or rf"(?P<{letter}>\d{{1,2}})")
    try:
        re.compile("".join(parts))
    except re.error:
        raise ExecutionError(f"The format '{layout}' says the same thing twice.") from None
    return "".join([*parts, r"\s*"])


def _moment(found: dict[str, str | None]) -> int | None:
    """Microseconds since 1970 of matched parts, if any; what is missing is 1900-01-01 00:00:00."""
    part = {letter: value for letter, value in found.items() if value is not None}
    number = {k: int(v) for k, v in part.items() if v.lstrip("-").isdigit()}
    hour = number.get("H", 0)
    if "I" in number:
        hour = number["I"] % 12 + (12 if part.get("p", "").upper() == "PM" else 0)
    minute, second = number.get("M", 0), number.get("S", 0)
    valid = hour < 24 and minute < 60 and second < 60 and (1 <= number.get("I", 1) <= 12)
    day = _day_number(number, part.get("b"))
    if day is None or not valid:
        return None
    micros = sum(
        int(part[letter].ljust(width, "0")[:6].ljust(6, "0"))
        for letter, width in (("f", 6), ("g", 3), ("n", 9))
        if letter in part
    )
    seconds = (hour * 60 + minute) * 60 + second
    return day * MICROS_A_DAY + seconds * _SECOND + micros


def _day_number(number: dict[str, int], month_name: str | None) -> int | None:
    """Days since 1970, or None where there is no such day."""
    year = number.get("Y", 1900)
    if "y" in number:
        year = number["y"] + (2000 if number["y"] < 69 else 1900)
    if "G" in number:
        # The fourth of January is in the first week; 1970-01-01 was a Thursday.
        fourth = calendar.one_day(number["G"], 1, 4) or 0
        monday = fourth - (fourth + 3) % 7
        return monday + (number.get("V", 1) - 1) * 7 + number.get("u", 1) - 1
    first = calendar.one_day(year, 1, 1) or 0
    for letter, begins in (("U", 0), ("W", 1)):
        if letter in number:
            weekday = number.get("w", number.get("u", begins)) % 7
            ahead = (begins - (first + 4)) % 7
            return first + ahead + (number[letter] - 1) * 7 + (weekday - begins) % 7
    if "j" in number:
        return first + number["j"] - 1 if 1 <= number["j"] <= 366 else None
    month = number.get("m", 1)
    if month_name is not None:
        month = [m[:3].lower() for m in MONTH_NAMES].index(month_name[:3].lower()) + 1
    return calendar.one_day(year, month, number.get("d", 1))


KERNELS: dict[str, Any] = {
    "strftime": strftime,
    "strptime": over_text(strptime),
    "try_strptime": over_text(try_strptime),
}
