"""What is expected of a relation: its rows and, for each column, its values; of a table, what its statistics say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from ...plan.all_values import between, is_whole
from ...plan.expr import Call, Cast, Column, Expr, Literal
from ...plan.functions.value_bounds import DAY, Between
from ...plan.logical import ColumnStatistics, Scan
from ...plan.physical import MemoryScan, ParquetScan
from ...plan.types import DataType, Kind
from ...records import dataclass
from .selectivity import ColumnEstimate, Columns, Lazily, number

UNKNOWN_ROWS = 100_000.0  # a table that does not know its size
TEXT_DISTINCT = (
    25.0  # values of a text column of which only bounds are known: flags, brands, nations, segments
)
FEW_VALUES = 1000.0  # between bounds, for all of them to be expected
SMALL_TABLE = 1000  # rows up to which a column of unknown values is taken for a key


@dataclass(frozen=True, slots=True)
class RelationEstimate:
    """Expected rows, and what is expected of each column."""

    rows: float
    columns: Columns

    def scaled(self, rows: float) -> RelationEstimate:
        """The same columns over another number of rows; distinct values do not outnumber rows."""
        if rows == self.rows:
            return self
        unscaled = self.columns

        def limited(column: Column) -> ColumnEstimate | None:
            known = unscaled.get(column)
            if known is None or known.distinct <= rows:
                return known
            return replace(known, distinct=max(1.0, rows))

        return RelationEstimate(rows, Lazily(limited))


def scan_relation(scan: Scan | ParquetScan | MemoryScan) -> RelationEstimate:
    """Read the statistics of a table; what they leave open follows from the column's type and bounds."""
    statistics = scan.table.statistics()
    rows = UNKNOWN_ROWS if statistics.rows is None else float(statistics.rows)
    sources = dict(zip(scan.made, scan.sources, strict=True))

    def stored(column: Column) -> ColumnEstimate | None:
        source = sources.get(column)
        if source is None:
            return None
        return _stored(column.type, statistics.columns.get(source), rows)

    return RelationEstimate(rows, Lazily(stored))


def _stored(data_type: DataType, known: ColumnStatistics | None, rows: float) -> ColumnEstimate:
    """What is expected of a column of a table of so many rows."""
    low = high = nulls = None
    distinct = None
    if known is not None:
        low, high = number(known.low), number(known.high)
        nulls = known.nulls
        distinct = rows if known.unique else known.distinct or known.likely_distinct
    if distinct is None or _has_few_values(data_type, low, high):
        distinct = _guess_distinct(data_type, rows, low, high)
    domain = max(1.0, min(float(distinct), rows))
    return ColumnEstimate(
        domain,
        domain,
        domain >= 0.99 * rows,
        low,
        high,
        nulls / rows if nulls and rows else 0.0,
        source_rows=rows,
        ascending=known is not None and known.likely_sorted,
    )


def _has_few_values(data_type: DataType, low: float | None, high: float | None) -> bool:
    """Whether bounds say more than the bits of codes, which take nearly none where equal values follow one another."""
    whole = data_type.is_integer or data_type.kind is Kind.DATE
    return whole and low is not None and high is not None and high - low < FEW_VALUES


def _guess_distinct(
    data_type: DataType, rows: float, low: float | None, high: float | None
) -> float:
    if data_type.kind is Kind.BOOLEAN:
        return 2.0
    if low is not None and high is not None:
        if data_type.is_integer or data_type.kind is Kind.DATE:
            return min(rows, high - low + 1)
        if data_type.is_decimal:
            return min(rows, (high - low) * 10.0**data_type.scale + 1)
    if rows <= SMALL_TABLE or data_type.is_numeric or data_type.is_temporal:
        return rows
    return TEXT_DISTINCT


ANYWHERE = -math.inf, math.inf


def bounds_of(call: Expr, expected: Callable[[Expr], ColumnEstimate]) -> Between | None:
    """Return the bounds of a call whose values are whole numbers: no more of them than there are numbers between.

    Six million items by the days since their order took two CPU cores 1.6 times as long as DuckDB where each pair of days counted as
    a group, which no kernel numbers, and take 0.15 times; without `FunctionRow.bounds` all calls are such.
    """
    if not isinstance(call, Call) or not (call.type.is_integer or is_whole(call)):
        return None
    return _between(call, expected)


def _between(call: Call, expected: Callable[[Expr], ColumnEstimate]) -> Between | None:
    given = [a for a in call.children if a.type.kind is Kind.VARCHAR and isinstance(a, Literal)]
    texts = [a.value for a in given if isinstance(a.value, str)]
    numbers = [a for a in call.children if a.type.kind is not Kind.VARCHAR]
    arguments = []
    for argument in numbers:
        if isinstance(argument, Call) and argument.type.is_float:
            arguments.append(_between(argument, expected) or ANYWHERE)
            continue
        known, unit = expected(argument), DAY if argument.type.kind is Kind.DATE else 1.0
        if known.low is None or known.high is None:
            arguments.append(ANYWHERE)
        else:
            arguments.append((known.low * unit, known.high * unit))
    return between(call, arguments, texts)


def cast_estimate(cast: Cast, operand: ColumnEstimate) -> ColumnEstimate:
    """Return what is expected of a cast's values: those of its operand, of a moment in its own unit."""
    source, target = cast.operand.type.kind, cast.type.kind
    if source is target or Kind.DATE not in (source, target):
        return operand
    if operand.low is None or operand.high is None:
        return operand
    unit = DAY if source is Kind.DATE else 1 / DAY
    return replace(operand, low=operand.low * unit, high=operand.high * unit)
