"""Texts by their characters: distances and similarities, GLOB, and parts of what readers take for one character; all of them look at characters, as in DuckDB.

Characters as readers see them: a letter with its accents, an emoji with its skin tone, a flag (UAX 29, without Hangul jamo).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

from .....errors import ExecutionError
from ....text_limits import check_characters
from .each_value import ValueFunction
from .text_kernels import distances

_PREFIX = 4  # of Winkler's
_PREFIX_WEIGHT = 0.1
_SIMILAR = 0.7  # beyond which a common prefix counts


def _levenshtein(left: str, right: str) -> int:
    """Wagner and Fischer, "The String-to-String Correction Problem" (1974), a row at a time."""
    before = list(range(len(right) + 1))
    for i, x in enumerate(left, 1):
        row = [i]
        for j, y in enumerate(right, 1):
            row.append(min(row[-1] + 1, before[j] + 1, before[j - 1] + (x != y)))
        before = row
    return before[-1]


def _damerau(left: str, right: str) -> int:
    """Lowrance and Wagner, "An Extension of the String-to-String Correction Problem" (1975): neighbours may change places."""
    a, b = left, right
    most = len(a) + len(b)
    cost = [[most] * (len(b) + 2) for _ in range(len(a) + 2)]
    for i in range(len(a) + 1):
        cost[i + 1][1] = i
    for j in range(len(b) + 1):
        cost[1][j + 1] = j
    seen: dict[str, int] = {}
    for i, x in enumerate(a, 1):
        matched = 0
        for j, y in enumerate(b, 1):
            k, last = seen.get(y, 0), matched
            if x == y:
                matched = j
            cost[i + 1][j + 1] = min(
                cost[i][j] + (x != y),
                cost[i + 1][j] + 1,
                cost[i][j + 1] + 1,
                cost[k][last] + (i - k - 1) + 1 + (j - last - 1),
            )
        seen[x] = i
    return cost[-1][-1]


def _hamming(left: str, right: str) -> int:
    a, b = left, right
    if len(a) != len(b):
        raise ExecutionError("hamming compares texts of as many characters.")
    if not a:
        raise ExecutionError("hamming compares texts that are not empty.")
    return sum(x != y for x, y in zip(a, b, strict=True))


def _jaccard(left: str, right: str) -> float:
    a, b = frozenset(left), frozenset(right)
    if not a or not b:
        raise ExecutionError("jaccard compares texts that are not empty.")
    return len(a & b) / len(a | b)


def _matches(a: str, b: str) -> tuple[int, int]:
    """Return how many bytes match within the window of Jaro's, and how many of those are in another order."""
    reach = max(max(len(a), len(b)) // 2 - 1, 0)
    taken = [False] * len(a)
    of_b = []
    for j, y in enumerate(b):
        for i in range(max(j - reach, 0), min(j + reach + 1, len(a))):
            if not taken[i] and a[i] == y:
                taken[i] = True
                of_b.append(y)
                break
    of_a = [x for x, one in zip(a, taken, strict=True) if one]
    return len(of_b), sum(x != y for x, y in zip(of_a, of_b, strict=True))


def _jaro(left: str, right: str) -> float:
    a, b = left, right
    found, moved = _matches(a, b)
    if not found:
        return 0.0
    return (found / len(a) + found / len(b) + (found - moved // 2) / found) / 3


def _winkler(left: str, right: str) -> float:
    a, b = left, right
    similar = _jaro(left, right)
    same = 0
    for x, y in zip(a[:_PREFIX], b[:_PREFIX], strict=False):
        if x != y:
            break
        same += 1
    return similar + same * _PREFIX_WEIGHT * (1 - similar) if similar > _SIMILAR else similar


def _from(least: Callable[[str, str], float]) -> Callable[..., float]:
    """A similarity below a cutoff is 0."""

    def similarity(left: str, right: str, cutoff: float = 0.0) -> float:
        found = least(left, right)
        return found if found >= cutoff else 0.0

    return similarity


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


FUNCTIONS: dict[str, ValueFunction] = {
    "glob": _glob,
    "length_grapheme": lambda text: len(graphemes(text)),
    "left_grapheme": _left,
    "right_grapheme": _right,
    "substring_grapheme": _substring,
}
_OF_PAIRS: dict[str, ValueFunction] = {
    "levenshtein": _levenshtein,
    "damerau_levenshtein": _damerau,
    "hamming": _hamming,
    "jaccard": _jaccard,
    "jaro_similarity": _from(_jaro),
    "jaro_winkler_similarity": _from(_winkler),
}
KERNELS = {name: distances(name, function) for name, function in _OF_PAIRS.items()}
