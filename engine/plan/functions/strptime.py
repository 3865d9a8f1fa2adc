"""Names of days and months, the formats of strftime and strptime, and strptime as DuckDB reads it: a format becomes a pattern and, by the order of its specifiers, what the date is made of.

A later specifier may take the date over from an earlier one: month and day win over all, weeks and the day of the year over a year,
a year over ISO weeks.  Some do not go together, which DuckDB tells when it reads a text, not when it reads the format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from ...errors import ExecutionError
from ...records import dataclass
from ..calendar import INFINITE_MICROS, MICROS_A_DAY, day_number, first_of_month
from ..temporal import zones
from ..text.number_text import SPACE, NoSuchValue

MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
SHORT_MONTHS = tuple(name[:3] for name in MONTH_NAMES)
SHORT_DAYS = tuple(name[:3] for name in DAY_NAMES)

UNPADDED = "dmyHIMSj"  # these may have a hyphen before them
_LETTERS = frozenset("YGfgnUWVuwaAbhBpzZ" + UNPADDED)
_COMPOSED = {"c": "%Y-%m-%d %H:%M:%S", "x": "%Y-%m-%d", "X": "%H:%M:%S", "T": "%H:%M:%S"}


def specifiers(text: str) -> Iterator[tuple[str, str]]:
    """Yield ("text", characters) and ("spec", letter or -letter); composed specifiers come as their parts."""
    if not text:
        raise ExecutionError("The format is empty: write what is to be printed or read.")
    place = 0
    while place < len(text):
        if text[place] != "%":
            end = text.find("%", place)
            end = len(text) if end < 0 else end
            yield "text", text[place:end]
            place = end
            continue
        length = 3 if text[place + 1 : place + 2] == "-" else 2
        letter = text[place + 1 : place + length]
        if len(letter) < length - 1:
            raise ExecutionError(
                f"The format '{text}' ends in the middle of a specifier: write %% for a percent sign."
            )
        if letter == "%":
            yield "text", "%"
        elif letter in _COMPOSED:
            yield from specifiers(_COMPOSED[letter])
        elif letter in _LETTERS or (letter[0] == "-" and letter[1] in UNPADDED):
            yield "spec", letter
        else:
            raise ExecutionError(f"Unrecognized specifier %{letter} in the format '{text}'.")
        place += length


_WIDTHS = {**dict.fromkeys("dmyHIMSUWV", 2), "j": 3, "Y": 4, "G": 4, "w": 1, "u": 1, "g": 3, "f": 6}
_RANGES = {
    "d": (1, 31),
    "m": (1, 12),
    "H": (0, 23),
    "I": (1, 12),
    "M": (0, 59),
    "S": (0, 59),
    "U": (0, 53),
    "W": (0, 53),
    "V": (1, 53),
    "w": (0, 6),
    "u": (1, 7),
    "j": (1, 366),
}
_NAMES = {
    "a": SHORT_DAYS,
    "A": DAY_NAMES,
    "b": SHORT_MONTHS,
    "h": SHORT_MONTHS,
    "B": MONTH_NAMES,
    "p": ("AM", "PM"),
}
_OFFSET = "((?>[+-][0-9]{2}(?::[0-9]{2}(?::[0-9]{2})?|[0-9]{2})?))"
_ZONE = "([A-Za-z0-9_/+:-]++)"
# What the date is made of so far, and a specifier -> what it is made of then; None: they do not go together.  "" is nothing yet,
# "d" month and day, "Y" a year, "G" ISO weeks, "U" and "W" weeks, "j" the day of the year.
_STATES: dict[str, dict[str, str | None]] = {
    "": {"d": "d", "Y": "Y", "G": "G", "V": "G", "U": "U", "W": "W", "j": "j"},
    "d": {"d": "d", "Y": "d", "G": "d", "V": "d", "U": "d", "W": "d", "j": "d"},
    "Y": {"d": "d", "Y": "Y", "G": "Y", "V": None, "U": "U", "W": "W", "j": "j"},
    "G": {"d": "d", "Y": "Y", "G": "G", "V": "G", "U": None, "W": None, "j": None},
    **{
        own: {"d": "d", "Y": own, "G": None, "V": None, "U": None, "W": None, "j": None}
        for own in "UWj"
    },
}
_CLASSES = {"m": "d", "y": "Y"}


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """A format: the pattern of texts that fit, its specifiers, what makes the date, and whether they go together; `zoned` ones read moments of a zone."""

    pattern: re.Pattern[str]
    letters: tuple[str, ...]
    made_of: str
    possible: bool

    @property
    def zoned(self) -> bool:
        return not {"z", "Z"}.isdisjoint(self.letters)


@lru_cache(64)
def layout(text: str) -> TimeFormat:
    """Read a format; raises `ExecutionError` for one that is malformed or needs a type that is not here."""
    parts, letters = [rf"[{SPACE}]*+"], []
    for kind, piece in specifiers(text):
        if kind == "text":
            parts.append(_literal(piece))
            continue
        letter = piece.removeprefix("-")
        if letter == "n":
            raise ExecutionError(
                "strptime reads no nanoseconds: %f reads microseconds, and TIMESTAMP_NS is not supported."
            )
        letters.append(letter)
        parts.append(_group(letter))
    pattern = re.compile("".join([*parts, rf"[{SPACE}]*+"]), re.DOTALL)
    made_of, possible = _made_of(letters)
    return TimeFormat(pattern, tuple(letters), made_of, possible)


def _literal(text: str) -> str:
    """Characters stand for themselves, a run of spaces for another one."""
    return "".join(
        rf"[{SPACE}]++" if run[0] in SPACE else re.escape(run)
        for run in re.findall(rf"[{SPACE}]+|[^{SPACE}]+", text)
    )


def _group(letter: str) -> str:
    """Digits are taken greedily and never given back, as DuckDB does."""
    if letter in _NAMES:
        return f"(?>((?i:{'|'.join(_NAMES[letter])})))"
    if letter in "zZ":
        return _OFFSET if letter == "z" else _ZONE
    return rf"([0-9]{{1,{_WIDTHS[letter]}}}+)"


def _made_of(letters: Sequence[str]) -> tuple[str, bool]:
    state: str = ""
    seen: set[str] = set()
    for letter in letters:
        # ISO years and weeks count when weeks are what the date is made of; the ISO weekday always does.
        if letter in seen and (letter == "u" or (letter in "GV" and state == "G")):
            return "", False
        if letter in "GVu":
            seen.add(letter)
        kind = _CLASSES.get(letter, letter)
        if kind in _STATES[state]:
            after = _STATES[state][kind]
            if after is None:
                return "", False
            state = after
    return state, True


_SPECIAL = {"epoch": 0, "infinity": INFINITE_MICROS, "-infinity": -INFINITE_MICROS}


def moment(text: str, form: TimeFormat) -> int | None:
    """Return microseconds since 1970, in UTC where the text has an offset or a zone, of which the offset counts; None where the text does not fit.

    Raises `NoSuchValue` for a day that no calendar has.
    """
    special = text.strip(SPACE).lower()
    if special in _SPECIAL:
        return _SPECIAL[special]
    found = form.pattern.fullmatch(text)
    if found is None or not form.possible:
        return None
    values: dict[str, int] = {}
    name = ""
    for letter, piece in zip(form.letters, found.groups(), strict=True):
        if letter == "Z":
            name = piece
            continue
        value = _value(letter, piece)
        if value is None:
            return None
        # The later one of two that say the same counts, as of %b and %m, %f and %g, %H and %I.
        values[_SAME.get(letter, letter)] = value
    time = _time(values)
    if time is None or (
        form.made_of == "j" and values.get("j") == 366 and not _is_leap(values.get("Y", 1900))
    ):
        return None
    shown = _day(values, form.made_of) * MICROS_A_DAY + time
    return shown if not name or "z" in values else zones.to_utc(shown, name)


def _is_leap(year: int) -> bool:
    return first_of_month(year + 1, 1) - first_of_month(year, 1) == 366


_SAME = {"b": "m", "h": "m", "B": "m", "g": "f", "I": "H", "y": "Y"}


def _value(letter: str, piece: str) -> int | None:
    if letter in _NAMES:
        place = [name.lower() for name in _NAMES[letter]].index(piece.lower())
        return place if letter in "aAp" else place + 1
    if letter == "z":
        parts = map(int, re.findall("[0-9]{2}", piece))
        seconds = sum(n * unit for n, unit in zip(parts, (3600, 60, 1), strict=False))
        return -seconds if piece[0] == "-" else seconds
    number = int(piece)
    low, high = _RANGES.get(letter, (0, number))
    if not low <= number <= high:
        return None
    if letter == "y":
        return number + (1900 if number >= 69 else 2000)
    if letter in "fg":
        return int(piece.ljust(6, "0"))
    return number


def _time(values: dict[str, int]) -> int | None:
    hour = values.get("H", 0)
    if "p" in values:
        if hour > 12:
            return None
        hour = hour % 12 + 12 * values["p"]
    minutes = hour * 60 + values.get("M", 0)
    seconds = minutes * 60 + values.get("S", 0) - values.get("z", 0)
    return seconds * 1_000_000 + values.get("f", 0)


def _day(values: dict[str, int], made_of: str) -> int:
    year = values.get("Y", 1900)
    days = _DAYS.get(made_of)
    if days is not None:
        return days(values, year)
    found = day_number(year, values.get("m", 1), values.get("d", 1))
    if found is None:
        raise NoSuchValue
    return found


def _of_iso_week(values: dict[str, int], _: int) -> int:
    # The fourth of January is in the first week; 1970-01-01 was a Thursday.
    fourth = first_of_month(values.get("G", 1900), 1) + 3
    monday = fourth - (fourth + 3) % 7
    return monday + (values.get("V", 1) - 1) * 7 + values.get("u", 1) - 1


def _of_week(begins: int) -> Callable[[dict[str, int], int], int]:
    """Weeks that begin on a weekday (Sunday 0); days before the first such day are in week 0."""

    def day(values: dict[str, int], year: int) -> int:
        weekday = (values["w"] - begins) % 7 if "w" in values else 0
        january = first_of_month(year, 1)
        ahead = (begins - (january + 4)) % 7
        return january + ahead + (values["U" if begins == 0 else "W"] - 1) * 7 + weekday

    return day


_DAYS: dict[str, Callable[[dict[str, int], int], int]] = {
    "G": _of_iso_week,
    "U": _of_week(0),
    "W": _of_week(1),
    "j": lambda values, year: first_of_month(year, 1) + values["j"] - 1,
}
