"""Times and moments made of numbers."""

from __future__ import annotations

import math

from .....errors import ConversionError
from .....plan.calendar import MICROS_A_DAY
from .each_value import ValueFunction


def _time(hours: int, minutes: int, seconds: float) -> int:
    known = 0 <= hours <= 24 and 0 <= minutes < 60 and 0 <= seconds <= 60
    micros = (hours * 60 + minutes) * 60_000_000 + math.floor(seconds * 1e6 + 0.5) if known else -1
    if not 0 <= micros <= MICROS_A_DAY:  # a TIME may be 24:00:00
        raise ConversionError(f"There is no time {hours}:{minutes}:{seconds:f}.")
    return micros


FUNCTIONS: dict[str, ValueFunction] = {"make_time": _time, "make_timestamp_ns": lambda nanos: nanos}
