"""Dates, times and timestamps as the integers that they are, and how those of one type become those of another.

A DATE counts days, a TIME microseconds since midnight, a timestamp its unit since 1970; a TIMESTAMP WITH TIME ZONE counts in UTC.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..calendar import INFINITE_DAY, INFINITE_MICROS, MICROS_A_DAY, clock_text, timestamp_text
from ..text.number_text import NoSuchValue
from ..types import TICKS, DataType, Kind

Array = npt.NDArray[Any]
DAY_SECONDS = 86_400
INFINITE = INFINITE_MICROS  # of any type but DATE and TIME
# What two types are compared in: the later of the two
ORDER = (
    Kind.DATE,
    Kind.TIMESTAMP_S,
    Kind.TIMESTAMP_MS,
    Kind.TIMESTAMP,
    Kind.TIMESTAMP_NS,
    Kind.TIMESTAMPTZ,
)
PLAIN = ORDER[1:-1]  # timestamps without a zone


def later(left: DataType, right: DataType) -> DataType | None:
    """Return the type in which dates and timestamps of two types are compared; None where there is none."""
    kinds = {left.kind, right.kind}
    if not kinds <= set(ORDER) or kinds == {Kind.TIMESTAMP_NS, Kind.TIMESTAMPTZ}:
        return None
    return max(left, right, key=lambda t: ORDER.index(t.kind))


def castable(source: DataType, target: DataType) -> bool:
    """Whether DuckDB casts between two of the types here."""
    if target.kind is Kind.TIME:
        return source.kind in PLAIN
    both = source.kind in ORDER and target.kind in ORDER
    return both and (source.kind, target.kind) != (Kind.TIMESTAMP_NS, Kind.TIMESTAMP_S)


def steps(source: DataType, target: DataType) -> tuple[int, int]:
    """Return by what the count of one type is multiplied, or else divided, where it is to be that of another."""
    have, wanted = (
        1 if t.kind is Kind.DATE else DAY_SECONDS * TICKS[t.kind] for t in (source, target)
    )
    return max(1, wanted // have), max(1, have // wanted)


def most_converted(source: DataType, target: DataType) -> int:
    """Return the size up to which a count is finite and has one of another type."""
    finite = INFINITE_DAY if source.kind is Kind.DATE else INFINITE
    return min(finite - 1, (INFINITE - 1) // steps(source, target)[0])


def converted(values: Array, source: DataType, target: DataType) -> tuple[Array, Array | None]:
    """Return counts in another type, and where there are none; fractions round half away from zero, dates down."""
    if source.kind is Kind.DATE:
        wide = values.astype(np.int64)
        return _widened(wide, DAY_SECONDS * TICKS[target.kind], np.abs(wide) == INFINITE_DAY)
    infinite = np.abs(values) == INFINITE
    have = TICKS[source.kind]
    if target.kind is Kind.DATE:
        days = values // (DAY_SECONDS * have)
        return np.where(infinite, np.sign(values) * INFINITE_DAY, days).astype(np.int32), None
    wanted = TICKS[target.kind]
    if target.kind is Kind.TIME:  # as DuckDB, of the timestamp that has its unit
        micros, wrong = _scaled(values, have, wanted, infinite)
        return micros % MICROS_A_DAY, infinite if wrong is None else wrong | infinite
    return _scaled(values, have, wanted, infinite)


def _scaled(values: Array, have: int, wanted: int, infinite: Array) -> tuple[Array, Array | None]:
    if wanted >= have:
        return _widened(values, wanted // have, infinite)
    unit = have // wanted
    size, rest = np.abs(values) // unit, np.abs(values) % unit
    rounded = np.sign(values) * (size + (2 * rest >= unit))
    wrong = None
    if wanted < TICKS[Kind.TIMESTAMP]:  # as DuckDB, which has them in microseconds before
        wrong = (np.abs(rounded) > INFINITE // (TICKS[Kind.TIMESTAMP] // wanted)) & ~infinite
    return np.where(infinite, values, rounded), wrong


def _widened(values: Array, factor: int, infinite: Array) -> tuple[Array, Array | None]:
    if factor == 1:
        return values, None
    most = (INFINITE - 1) // factor
    wrong = (np.abs(values) > most) & ~infinite
    held = np.where(wrong | infinite, 0, values) * np.int64(factor)
    return np.where(infinite, np.sign(values) * INFINITE, held), wrong


def convert(value: int, source: DataType, target: DataType) -> int:
    """Return one count in another type; raises `NoSuchValue` where there is none."""
    found, wrong = converted(np.array([value], np.int64), source, target)
    if wrong is not None and wrong[0]:
        raise NoSuchValue(value)
    return int(found[0])


def text(count: int, data_type: DataType) -> str:
    """Return a time or a timestamp, of a zone that of UTC, as DuckDB writes it."""
    show = clock_text if data_type.kind is Kind.TIME else timestamp_text
    return show(count, TICKS[data_type.kind]) + "+00" * (data_type.kind is Kind.TIMESTAMPTZ)
