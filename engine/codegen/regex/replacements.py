"""What takes the place of a match: pieces of text and groups."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...records import dataclass
from .automata import Automaton, finder, groups_of

TEXT = -1  # in the place of a tag


@dataclass(frozen=True, eq=False)
class Replacement:
    """An automaton that finds a match and some groups, and what is made of them.

    `pieces` are three numbers for each: the tag of a group, or TEXT and where a piece of `text` begins and ends.  Outside of matches a
    string stays if `rest` is set, and `every` match counts, or the first one.
    """

    automaton: Automaton
    pieces: npt.NDArray[np.int32]
    text: npt.NDArray[np.uint8]
    every: bool
    rest: bool


@lru_cache(maxsize=256)
def replacing(pattern: str, template: str, every: bool) -> Replacement | None:
    r"""Return how matches are replaced, where `\1` in a template is the first group; None for what the CPU's library has to do."""
    pieces: list[int | bytes] = []
    at = 0
    while at < len(template):
        end = template.find("\\", at)
        end = len(template) if end < 0 else end
        if end > at:
            pieces.append(template[at:end].encode())
        if end < len(template):
            letter = template[end + 1 : end + 2]
            if letter == "\\":
                pieces.append(b"\\")
            elif letter.isdecimal() and letter.isascii():
                pieces.append(int(letter))
            else:
                return None
        at = end + 2
    return _of(pattern, pieces, every, rest=True)


@lru_cache(maxsize=256)
def extracting(pattern: str, group: int) -> Replacement | None:
    """Return how strings become a group of their first match, 0 for all of it; those without a match get empty."""
    return _of(pattern, [group], every=False, rest=False)


def _of(pattern: str, parts: list[int | bytes], every: bool, rest: bool) -> Replacement | None:
    groups = tuple(sorted({part for part in parts if isinstance(part, int) and part}))
    known = groups_of(pattern)
    if known is None or any(group > known for group in groups):
        return None
    automaton = finder(pattern, groups)
    if automaton is None:
        return None
    pieces: list[int] = []
    text = b""
    for part in parts:
        if isinstance(part, bytes):
            pieces += (TEXT, len(text), len(text) + len(part))
            text += part
        else:
            pieces += (2 * groups.index(part) + 2 if part else 0, 0, 0)
    return Replacement(
        automaton,
        np.array(pieces, np.int32),
        np.frombuffer(text or b"\0", np.uint8),
        every,
        rest,
    )
