"""Row counts and column bounds from Parquet footers, without reading data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..plan.statistics import ColumnStatistics
from ..plan.types import DataType, Kind
from .bounds import UNKNOWN, Bounds, trusted

MAX_CODE_BITS = 12  # above, the dictionary itself is too large a part of the column to guess from


class LazyColumns(Mapping[str, ColumnStatistics]):
    """Statistics by column name, worked out when first asked for: a plan asks for few of many columns."""

    def __init__(self, names: tuple[str, ...], compute: Callable[[str], ColumnStatistics]) -> None:
        self._names = dict.fromkeys(names)
        self._compute = compute
        self._known: dict[str, ColumnStatistics] = {}

    def __getitem__(self, name: str) -> ColumnStatistics:
        if name not in self._known:
            if name not in self._names:
                raise KeyError(name)
            self._known[name] = self._compute(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def column_positions(footer: Any) -> dict[str, int]:
    """Return path -> position of the leaf columns of a file."""
    return {footer.schema.column(i).path: i for i in range(footer.num_columns)}


def group_bounds(footer: Any, group: int, position: int, data_type: DataType) -> Bounds:
    """Return what the footer says of one column chunk; the bounds are None where the writer is not to be trusted."""
    row_group = footer.row_group(group)
    rows = row_group.num_rows
    chunk = row_group.column(position)
    if not chunk.is_stats_set:
        return Bounds(rows)
    found = chunk.statistics
    nulls = found.null_count if found.has_null_count else None
    if not found.has_min_max or data_type.kind is Kind.NULL or _is_nanoseconds(found):
        return Bounds(rows, nulls)
    try:
        low, high = trusted(found.min, data_type), trusted(found.max, data_type)
    except (ValueError, OverflowError, ArithmeticError):
        return Bounds(rows, nulls)  # text cut inside a character, a date outside of Python's years
    if data_type.is_float:
        high = None
    return Bounds(rows, nulls, low, high)


def _is_nanoseconds(found: Any) -> bool:
    """Nanoseconds lose digits when they become a TIMESTAMP, so that their bounds would not hold."""
    return getattr(found.logical_type, "type", "") == "TIMESTAMP" and "nano" in str(
        found.logical_type
    )


def likely_distinct(footers: Sequence[Any], path: str) -> int | None:
    """Guess how many values a dictionary-encoded column has from the bits that a code takes; None for other columns."""
    size = rows = 0
    for footer in footers:
        position = column_positions(footer).get(path)
        if position is None:
            return None
        for group in range(footer.num_row_groups):
            chunk = footer.row_group(group).column(position)
            if not chunk.has_dictionary_page:
                return None
            size += chunk.total_uncompressed_size
            rows += chunk.num_values
    bits = 8 * size / rows if rows else MAX_CODE_BITS + 1
    return 1 << max(1, round(bits)) if bits <= MAX_CODE_BITS else None


def merge(parts: list[Bounds]) -> ColumnStatistics:
    """Return the statistics of all parts together."""
    nulls = None if any(p.nulls is None for p in parts) else sum(p.nulls or 0 for p in parts)
    valued = [p for p in parts if not p.all_null]
    lows: list[Any] = [p.low for p in valued]
    highs: list[Any] = [p.high for p in valued]
    low = min(lows) if lows and None not in lows else None
    high = max(highs) if highs and None not in highs else None
    return ColumnStatistics(low=low, high=high, nulls=nulls)


def constant_bounds(value: Any, rows: int, data_type: DataType) -> Bounds:
    """Return the bounds of a column that is one value throughout."""
    if value is None:
        return Bounds(rows, rows)
    known = trusted(value, data_type)
    return Bounds(rows, 0, known, known) if known is not None else UNKNOWN
