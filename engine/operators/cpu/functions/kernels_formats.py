"""strftime and strptime, with DuckDB's specifiers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....errors import ConversionError, ExecutionError
from ....plan.calendar import MICROS_A_DAY
from ....plan.expr import Call
from ....plan.functions.formats import (
    DAY_NAMES,
    MONTH_NAMES,
    SHORT_DAYS,
    SHORT_MONTHS,
    specifiers,
)
from ....plan.functions.strptime import layout, moment
from ....plan.text.number_text import NoSuchValue
from ....plan.types import TIMESTAMP
from .. import table as tables
from . import kernels_calendar as calendar
from .kernels_print import chosen, joined, padded
from .kernels_texts import over_text
from .vectors import Array, Kernel, Mask, Vector

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


def strptime(text: pa.Array, form: str) -> pa.Array:
    return _parsed(text, form, strict=True)


def try_strptime(text: pa.Array, form: str) -> pa.Array:
    """As strptime, but NULL for a string that is no moment in this format."""
    return _parsed(text, form, strict=False)


def _parsed(text: pa.Array, form: str, strict: bool) -> pa.Array:
    """Parse each different string once."""
    known = layout(form)
    encoded = pc.dictionary_encode(text)
    moments: list[int | None] = []
    for value in encoded.dictionary.to_pylist():
        try:
            found = moment(value, known)
        except NoSuchValue:
            if strict:
                raise ConversionError(
                    f"Date or time out of range: '{value}' is no moment of the calendar."
                ) from None
            found = None
        else:
            if found is None and strict:
                raise ExecutionError(
                    f"Could not parse string '{value}' according to the format '{form}': use another format."
                )
        moments.append(found)
    return pa.array(moments, pa.int64()).take(encoded.indices).view(tables.physical_type(TIMESTAMP))


KERNELS: dict[str, Kernel] = {
    "strftime": strftime,
    "strptime": over_text(strptime),
    "try_strptime": over_text(try_strptime),
}
