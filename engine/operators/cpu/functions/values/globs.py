"""GLOB: patterns with `*`, `?` and `[a-z]`, over the bytes of a text as in DuckDB."""

from __future__ import annotations

import re
from functools import lru_cache

from .each_value import ValueFunction

_NEVER = b"(?!)"


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[bytes]:
    """Return a pattern as a regular expression whose parts between stars are not tried twice."""
    runs = [b""]
    text = pattern.encode()
    place = 0
    while place < len(text):
        sign = text[place : place + 1]
        place += 1
        if sign == b"*":
            runs.append(b"")
        elif sign == b"?":
            runs[-1] += b"."
        elif sign == b"[":
            accepted, place = _bracket(text, place)
            runs[-1] += accepted
        elif sign == b"\\":
            runs[-1] += re.escape(text[place : place + 1]) if place < len(text) else _NEVER
            place += 1
        else:
            runs[-1] += re.escape(sign)
    first, *rest = runs
    middle = b"".join(b"(?>.*?" + run + b")" for run in rest[:-1] if run)
    last = b".*" + rest[-1] if rest else b""
    return re.compile(first + middle + last, re.DOTALL)


def _bracket(text: bytes, place: int) -> tuple[bytes, int]:
    """Return the expression of the bytes that a bracket takes, which begins at `place`, and the place behind it."""
    inverted = text[place : place + 1] == b"!"
    place += inverted
    start = place
    taken: set[int] = set()
    while place < len(text):
        if text[place : place + 1] == b"]" and place > start:
            found = sorted(set(range(256)) - taken if inverted else taken)
            listed = b"".join(b"\\x%02x" % byte for byte in found)
            return (b"[" + listed + b"]" if listed else _NEVER), place + 1
        if text[place + 1 : place + 2] == b"-" and text[place + 2 : place + 3] not in (b"", b"]"):
            low, high = _signed(text[place]), _signed(text[place + 2])
            taken |= {byte for byte in range(256) if low <= _signed(byte) <= high}
            place += 3
        else:
            taken.add(text[place])
            place += 1
    return _NEVER, len(text)  # the bracket has no end


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _glob(text: str, pattern: str) -> bool:
    return _regex(pattern).fullmatch(text.encode()) is not None


FUNCTIONS: dict[str, ValueFunction] = {"glob": _glob}
