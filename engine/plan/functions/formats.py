"""Names of days and months, and the formats of strftime and strptime, which both backends read."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import ExecutionError

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
