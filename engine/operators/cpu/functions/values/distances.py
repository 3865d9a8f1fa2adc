"""Distances and similarities of two texts; all of them look at characters, as in DuckDB."""

from __future__ import annotations

from collections.abc import Callable

from .....errors import ExecutionError
from .each_value import ValueFunction

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


FUNCTIONS: dict[str, ValueFunction] = {
    "levenshtein": _levenshtein,
    "damerau_levenshtein": _damerau,
    "hamming": _hamming,
    "jaccard": _jaccard,
    "jaro_similarity": _from(_jaro),
    "jaro_winkler_similarity": _from(_winkler),
}
