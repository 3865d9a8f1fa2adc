"""GLOB: patterns with `*`, `?` and `[a-z]`, over the characters of a text as in DuckDB."""

from __future__ import annotations

import re
from functools import lru_cache

from .each_value import ValueFunction

_NEVER = "(?!)"


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    """Return a pattern as a regular expression whose parts between stars are not tried twice."""
    runs = [""]
    place = 0
    while place < len(pattern):
        sign = pattern[place]
        place += 1
        if sign == "*":
            runs.append("")
        elif sign == "?":
            runs[-1] += "."
        elif sign == "[":
            accepted, place = _bracket(pattern, place)
            runs[-1] += accepted
        elif sign == "\\":
            runs[-1] += re.escape(pattern[place]) if place < len(pattern) else _NEVER
            place += 1
        else:
            runs[-1] += re.escape(sign)
    first, *rest = runs
    middle = "".join("(?>.*?" + run + ")" for run in rest[:-1] if run)
    last = ".*" + rest[-1] if rest else ""
    return re.compile(first + middle + last, re.DOTALL)


def _bracket(text: str, place: int) -> tuple[str, int]:
    """Return the expression of the characters that a bracket takes, which begins at `place`, and the place behind it."""
    inverted = text[place : place + 1] == "!"
    place += inverted
    start = place
    taken = ""
    while place < len(text):
        if text[place] == "]" and place > start:
            nothing = "." if inverted else _NEVER
            return (f"[{'^' if inverted else ''}{taken}]" if taken else nothing), place + 1
        if text[place + 1 : place + 2] == "-" and text[place + 2 : place + 3] not in ("", "]"):
            low, high = text[place], text[place + 2]
            taken += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
            place += 3
        else:
            taken += re.escape(text[place])
            place += 1
    return _NEVER, len(text)  # the bracket has no end


def _glob(text: str, pattern: str) -> bool:
    return _regex(pattern).fullmatch(text) is not None


FUNCTIONS: dict[str, ValueFunction] = {"glob": _glob}
