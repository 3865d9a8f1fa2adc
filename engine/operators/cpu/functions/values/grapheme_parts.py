"""Parts of texts by what readers take for one character.

Characters as readers see them: a letter with its accents, an emoji with its skin tone, a flag (UAX 29, without Hangul jamo).
"""

from __future__ import annotations

import unicodedata

from ....text_limits import check_characters
from .each_value import ValueFunction


def _left(text: str, count: int) -> str:
    check_characters("left_grapheme", max(count, 0))
    return "".join(graphemes(text)[:count])


def _right(text: str, count: int) -> str:
    parts = graphemes(text)
    return "".join(parts[max(len(parts) - count, 0) if count >= 0 else -count :])


def _substring(text: str, start: int, length: int | None = None) -> str:
    """As substring, with the places of characters."""
    check_characters("substring_grapheme", start)
    check_characters("substring_grapheme", length)
    parts = graphemes(text)
    begin = start if start < 0 else start - 1
    if length is None:
        return "".join(parts[begin if start < 0 else max(begin, 0) :])
    first, last = min(begin, begin + length), max(begin, begin + length)
    if start < 0:
        return "".join(parts[first : last if last < 0 else None])
    return "".join(parts[max(first, 0) : max(last, 0)])


FUNCTIONS: dict[str, ValueFunction] = {
    "length_grapheme": lambda text: len(graphemes(text)),
    "left_grapheme": _left,
    "right_grapheme": _right,
    "substring_grapheme": _substring,
}


JOINER = "\u200d"
_MARKS = ("Mn", "Me", "Mc")
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_REGIONAL = range(0x1F1E6, 0x1F200)  # two of them are a flag


def graphemes(text: str) -> list[str]:
    """Split a text.

    >>> graphemes("e\u0301a")
    ['e\u0301', 'a']
    """
    if text.isascii():  # whose line ends DuckDB splits, others not
        return list(text)
    found: list[str] = []
    for letter in text:
        if found and _belongs_to(found[-1], letter):
            found[-1] += letter
        else:
            found.append(letter)
    return found


def _belongs_to(before: str, letter: str) -> bool:
    if before[-1] in "\r\n" or (letter == "\n" and before == "\r"):
        return before == "\r" and letter == "\n"
    if letter == JOINER or ord(letter) in _SKIN_TONES or unicodedata.category(letter) in _MARKS:
        return not unicodedata.category(before[-1]).startswith("C") or before[-1] == JOINER
    if before[-1] == JOINER:  # one emoji of several
        marked = (other for other in reversed(before[:-1]) if not _extends(other))
        return _is_picture(letter) and _is_picture(next(marked, JOINER))
    return ord(letter) in _REGIONAL and len(before) == 1 and ord(before) in _REGIONAL


def _is_picture(letter: str) -> bool:
    return unicodedata.category(letter) == "So" and ord(letter) not in _REGIONAL


def _extends(letter: str) -> bool:
    return ord(letter) in _SKIN_TONES or unicodedata.category(letter) in ("Mn", "Me")
