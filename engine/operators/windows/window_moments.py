"""The moments of a frame: how many rows, the means of x and y, and sums of products of deviations from them."""

from __future__ import annotations

import numpy as np

from ...plan.functions import AGGREGATE
from .window_places import Mask, Values

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
