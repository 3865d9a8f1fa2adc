"""The extremes of each stretch of a column's rows: where rows come in some order, many a stretch has nothing that a join looks for."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from ...plan.arrow.arrow_arrays import bits_of
from ...records import dataclass
from .encodings import Array, EncodedColumn

ZONE_ROWS = 1 << 13
SAMPLED_ZONES = 16  # which tell whether the others are worth a look
WIDEST = 1 / 4  # of the column's own interval, on average: zones beyond leave out too little


@dataclass(frozen=True, slots=True)
class Zones:
    """The least and the largest value of every `ZONE_ROWS` rows, integers as in registers; a zone of NULLs has none between them."""

    low: Array
    high: Array


def zones_of(column: EncodedColumn) -> Zones | None:
    """Return the zones of integers on the host, which are measured once; None where most zones hold about all that the column does."""
    if column not in _measured:
        _measured[column] = _measure(column)
    return _measured[column]


_measured: WeakKeyDictionary[EncodedColumn, Zones | None] = WeakKeyDictionary()


def _measure(column: EncodedColumn) -> Zones | None:
    low, high, count = column.low, column.high, column.rows // ZONE_ROWS
    if low is None or high is None or column.encoding.values is not None or count < SAMPLED_ZONES:
        return None
    most = WIDEST * (high - low)
    sample = range(0, count, count // SAMPLED_ZONES)
    if _width(_joined([_zone(column, at) for at in sample])) > most:
        return None
    zones = _joined([_zone(column, at) for at in range(-(-column.rows // ZONE_ROWS))])
    return zones if _width(zones) <= most else None


def _width(zones: Zones) -> float:
    return float(np.maximum(zones.high.astype(float) - zones.low, 0).mean())


def _joined(zones: list[tuple[int, int]]) -> Zones:
    low, high = np.array(zones, np.int64).T
    return Zones(low, high)


def _zone(column: EncodedColumn, number: int) -> tuple[int, int]:
    start = number * ZONE_ROWS
    codes = column.encoding.row_codes(column, slice(start, start + ZONE_ROWS))
    if column.validity is not None:
        bits = column.validity[start // 8 : (start + len(codes) + 7) // 8]
        codes = codes[bits_of(bits, 0, len(codes))]
    if not len(codes):
        return 1, 0
    low, high = column.encoding.registers(np.array([codes.min(), codes.max()])).tolist()
    return low, high
