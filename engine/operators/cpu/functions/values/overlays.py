"""overlay(text PLACING part FROM place FOR count): another text in the place of some characters."""

from __future__ import annotations

from .each_value import ValueFunction


def _overlay(text: str, part: str, start: int, count: int | None = None) -> str:
    """Before place 1 nothing is kept; a count below 0 is as none, and then so much is left out as the part has."""
    left_out = len(part) if count is None or count < 0 else count
    return text[: max(start - 1, 0)] + part + text[max(start - 1 + left_out, 0) :]


FUNCTIONS: dict[str, ValueFunction] = {"overlay": _overlay}
