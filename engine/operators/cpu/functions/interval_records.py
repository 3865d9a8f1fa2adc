"""Intervals as records of months, days and microseconds.

Physical arrays have Arrow's type of intervals with microseconds in the place of its nanoseconds: these hold 292 years of them, while
DuckDB's intervals hold 292,000.  Only what enters and leaves the backend is Arrow's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....errors import OutOfRange

SPAN = np.dtype([("months", "<i4"), ("days", "<i4"), ("micros", "<i8")])
_MOST_MICROS = (2**63 - 1) // 1000  # of Arrow's nanoseconds

Spans = npt.NDArray[np.void]


def of_arrow(data: Spans) -> Spans:
    """Return Arrow's intervals as physical ones; a rest of a microsecond is cut, as in DuckDB."""
    made = data.copy()
    made["micros"] = data["micros"] // 1000
    return made


def to_arrow(data: Spans, valid: npt.NDArray[np.bool_] | None) -> Spans:
    """Return physical intervals as Arrow's; raises `OutOfRange` for one whose time does not fit."""
    wrong = (data["micros"] > _MOST_MICROS) | (data["micros"] < -_MOST_MICROS)
    if (wrong if valid is None else wrong & valid).any():
        raise OutOfRange(
            "An interval of more than 292 years in hours, minutes or seconds does not fit Arrow's type of results: "
            "cast it to VARCHAR, or use epoch(x)."
        )
    made = data.copy()
    made["micros"] = np.where(wrong, 0, data["micros"]) * 1000
    return made
