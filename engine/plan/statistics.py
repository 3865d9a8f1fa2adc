"""What is known of a table without reading it: the input of every estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .expr import Value


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Facts about one column; None means unknown.  `low` and `high` are bounds, not necessarily present values.

    `likely_distinct` and `likely_sorted` are no facts: guesses, for estimates alone, the second that values ascend with the rows.
    So is what `comes_again` finds in some rows: that text will be a dictionary though no dictionary is in the files.
    """

    low: Value = None
    high: Value = None
    nulls: int | None = None
    distinct: int | None = None
    unique: bool | None = None
    likely_distinct: int | None = None
    likely_sorted: bool = False
    comes_again: Callable[[], bool] = field(
        default=bool, compare=False, repr=False
    )  # bool() is False


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Row count, None when unknown, and what is known of each column by name."""

    rows: int | None = None
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
