"""Text as a TIMESTAMP WITH TIME ZONE."""

from __future__ import annotations

import numpy as np

from ...errors import InvalidQuery
from ..calendar import INFINITE_MICROS
from ..text.number_text import parse_moment
from . import zones


def parse_timestamptz(text: str, own: str) -> int | None:
    """Return microseconds in UTC; `own` is the zone of what names none.  None for what is no moment."""
    found = parse_moment(text)
    if found is None:
        return None
    shown, written = found
    if abs(shown) == INFINITE_MICROS:
        return shown
    offset = zones.offset_of(written)
    if offset is not None:
        return shown - offset
    try:
        zone = zones.zone(written or own)
    except InvalidQuery:
        return None
    return int(zone.utc(np.array([shown], np.int64))[0])
