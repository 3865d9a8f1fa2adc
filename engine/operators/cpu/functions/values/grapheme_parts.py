"""Parts of texts by what readers take for one character."""

from __future__ import annotations

from ....text_limits import check_characters
from ..graphemes import graphemes
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
