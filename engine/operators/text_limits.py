"""How long a text may become: what functions would make is counted before memory is taken."""

from __future__ import annotations

from ..errors import OutOfRange

MAX_BYTES = (
    2**31 - 1
)  # of the texts of one column that are made at a time: Arrow's and libcudf's offsets
NEEDLE_SHARE = 4  # a pattern is tried on the strings that contain its longest part, unless these are more than one in so many
MAX_CHARACTERS = 2**32 - 1  # of a place or length in a text, as in DuckDB


def check_bytes(function: str, count: int) -> None:
    """Refuse to make more bytes of text than a column holds."""
    if count > MAX_BYTES:
        raise OutOfRange(
            f"{function}() would make {count:,} bytes of text: a column holds {MAX_BYTES:,} at a time."
        )


def check_characters(function: str, count: int | None) -> None:
    """Refuse a place or a length that no text has; left() alone takes any negative number."""
    if count is None or (function == "left" and count < 0):
        return
    if not -MAX_CHARACTERS - 1 <= count <= MAX_CHARACTERS:
        raise OutOfRange(f"{function}() takes at most {MAX_CHARACTERS} characters, not {count}.")
