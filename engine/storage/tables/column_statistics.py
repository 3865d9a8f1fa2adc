"""Statistics of columns put together, and worked out only when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...plan.statistics import ColumnStatistics
from ...plan.types import DataType
from .bounds import UNKNOWN, Bounds, trusted


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
