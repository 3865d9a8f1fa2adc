"""The moments of a frame; and how many values of a range are small, and which is the k-th smallest: a wavelet matrix, of which one level is there at a time.

Claude and Navarro, "The Wavelet Matrix" (SPIRE 2012).  Each level parts the places by one bit of their values, and a range by two
looks at how many ones lie before a place: all rows of a window ask at once, so that no level is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ... import stopping
from ...plan.functions import AGGREGATE
from ...records import dataclass
from .frames import Ints, Mask, Ranges, Values, places_before


@dataclass(frozen=True)
class WaveletLevel:
    """One bit of the values: `ones` before each place, and how many `zeros` there are, which come first on the next level."""

    bit: int
    ones: Ints
    zeros: int

    def parted(self, begin: Ints, end: Ints) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        """Return the places of a range's zeros and of its ones on the next level."""
        first, last = self.ones[begin], self.ones[end]
        return (begin - first, end - last), (self.zeros + first, self.zeros + last)


def _levels(values: Ints, most: int) -> Iterator[WaveletLevel]:
    for bit in reversed(range(most.bit_length())):
        stopping.check()
        ones = ((values >> bit) & 1) > 0
        zeros = values[~ones]
        yield WaveletLevel(bit, places_before(ones), len(zeros))
        values = np.concatenate([zeros, values[ones]])


def count_below(values: Ints, ranges: Ranges, limits: Ints) -> Ints:
    """Return how many values of each range are less than its limit; both are not negative."""
    count = np.zeros_like(limits)
    if not len(values):
        return count
    most = max(int(values.max()), int(limits.max()))
    for begin, end in ranges.parts:
        for level in _levels(values, most):
            zeros, ones = level.parted(begin, end)
            above = (limits >> level.bit) & 1 == 1
            count = count + np.where(above, zeros[1] - zeros[0], 0)
            begin, end = (np.where(above, one, zero) for zero, one in zip(zeros, ones, strict=True))  # noqa: PLW2901
    return count


def nth_smallest(values: Ints, ranges: Ranges, number: Ints) -> Ints:
    """Return the value of a number from 0 on in the order of each range's values, arbitrary where it has not as many."""
    found = np.zeros_like(number)
    if not len(values):
        return found
    parts = list(ranges.parts)
    for level in _levels(values, int(values.max())):
        split = [level.parted(begin, end) for begin, end in parts]
        fewer = np.zeros_like(number)
        for (begin, end), _ in split:
            fewer = fewer + (end - begin)
        above = number >= fewer
        found = found + np.where(above, 1 << level.bit, 0)
        number = number - np.where(above, fewer, 0)
        parts = [
            (np.where(above, ones[0], zeros[0]), np.where(above, ones[1], zeros[1]))
            for zeros, ones in split
        ]
    return found


State = tuple[Values, ...]


def moments_of_rows(columns: list[Values], known: Mask) -> State:
    """Return the moments of each row by itself, of those where all columns are known."""
    means = [np.where(known, x, 0.0) for x in columns]
    nothing = np.zeros_like(means[0])
    products = [nothing] * (len(means) * (len(means) + 1) // 2)
    return (np.where(known, 1.0, nothing), *means, *products)


def added(a: State, b: State) -> State:
    """Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979)."""
    width = 1 if len(a) == 3 else 2
    count = a[0] + b[0]
    share = np.where(count > 0, b[0] / np.maximum(count, 1.0), 0.0)
    apart = [b[1 + i] - a[1 + i] for i in range(width)]
    some = (a[0] > 0) & (b[0] > 0)
    weight = np.where(some, a[0] * share, 0.0)
    means = [
        np.where(a[0] > 0, np.where(b[0] > 0, a[1 + i] + apart[i] * share, a[1 + i]), b[1 + i])
        for i in range(width)
    ]
    pairs = [(i, j) for i in range(width) for j in range(i, width)]
    products = [
        a[1 + width + n] + b[1 + width + n] + np.where(some, apart[i] * apart[j] * weight, 0.0)
        for n, (i, j) in enumerate(pairs)
    ]
    return (count, *means, *products)


def finished(function: str, state: State) -> tuple[Values, Mask]:
    """Return a variance, covariance or correlation of moments, and where it is not NULL."""
    row = AGGREGATE[function]
    if len(state) == 3:
        count, _, squares = state
        variance = np.where(count == 1, 0.0, squares / (count - row.ddof))
        return np.sqrt(variance) if row.root else variance, count > row.ddof
    count, _, _, xx, xy, yy = state
    if function == "corr":
        return xy / (np.sqrt(xx) * np.sqrt(yy)), count > 0
    return xy / (count - row.ddof), count > row.ddof
