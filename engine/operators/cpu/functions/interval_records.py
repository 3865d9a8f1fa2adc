"""Intervals as records of months, days and microseconds.

Physical arrays have Arrow's type of intervals with microseconds in the place of its nanoseconds: these hold 292 years of them, while
DuckDB's intervals hold 292,000.  Only what enters and leaves the backend is Arrow's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....errors import OutOfRange
from ....plan.calendar import DAYS_A_MONTH, MICROS_A_DAY

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


def between(low: Spans, high: Spans, weight: npt.NDArray[np.float64]) -> Spans:
    """Return intervals so far on the way from `low` to `high`: the lower one, or days and microseconds, as DuckDB rounds them."""
    start = _all_micros(np.where(weight == 0, np.zeros_like(low), low))
    step = (_all_micros(np.where(weight == 0, np.zeros_like(high), high)) - start) * weight
    total = start + np.floor(step + 0.5).astype(np.int64)
    made = np.zeros_like(low)
    made["days"] = np.sign(total) * (abs(total) // MICROS_A_DAY)
    made["micros"] = np.fmod(total, MICROS_A_DAY)
    return np.where(weight == 0, low, made)


def _all_micros(data: Spans) -> npt.NDArray[np.int64]:
    """Return the microseconds of intervals, of days of 24 hours; raises `OutOfRange` beyond 64 bits."""
    days = data["months"].astype(np.int64) * DAYS_A_MONTH + data["days"]
    if (abs(days * float(MICROS_A_DAY) + data["micros"]) >= 2.0**63).any():
        raise OutOfRange("Between intervals of more than 292,000 years there is no median.")
    return days * MICROS_A_DAY + data["micros"]
