"""Rows with the code of a given one on CUDA, where they lie side by side."""

from __future__ import annotations

import numpy as np
from numba import cuda


@cuda.jit(device=True, inline="always")
def first_alike(codes, row):  # type: ignore[no-untyped-def]
    """The first of the rows that have the code of a row."""
    first = np.uint64(row)
    code = codes[first]
    while first > 0 and codes[first - np.uint64(1)] == code:
        first = np.uint64(first - np.uint64(1))
    return np.int32(first)


@cuda.jit(device=True, inline="always")
def next_alike(codes, row, rows):  # type: ignore[no-untyped-def]
    """The next row, if there is one and it has the same code, or -1."""
    place = np.uint64(row)
    found = np.int32(-1)
    if row + 1 < rows and codes[place + np.uint64(1)] == codes[place]:
        found = np.int32(row + 1)
    return found


__all__ = ["first_alike", "next_alike"]
