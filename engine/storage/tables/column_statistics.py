"""Statistics of columns put together, and worked out only when they are asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

from ...plan.expr import Call, Cast, Column, ColumnRef, Expr, InList, Literal, Value, conjuncts
from ...plan.functions import COMPARISONS, MIRRORED
from ...plan.logical import ColumnStatistics
from ...plan.types import DataType, Kind
from ...records import dataclass


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


def column_positions(footer: pq.FileMetaData) -> dict[str, int]:
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


def constant_bounds(value: object, rows: int, data_type: DataType) -> Bounds:
    """Return the bounds of a column that is one value throughout."""
    if value is None:
        return Bounds(rows, rows)
    known = trusted(value, data_type)
    return Bounds(rows, 0, known, known) if known is not None else UNKNOWN


EXACT_INT_AS_DOUBLE = 1 << 53


@dataclass(frozen=True, slots=True)
class Bounds:
    """Rows, NULLs among them, and bounds of the values that are not NULL; None means unknown.

    A float column has no `high`: writers leave NaN, the greatest value in SQL, out of their statistics.
    """

    rows: int
    nulls: int | None = None
    low: Value = None
    high: Value = None

    @property
    def all_null(self) -> bool:
        return self.nulls == self.rows


UNKNOWN = Bounds(-1)
BoundsOf = Callable[[Column], Bounds | None]

BOUNDED = COMPARISONS - {"is_distinct"}  # which is TRUE of NULL
# What a statistics value must be, so that one of a strange writer or type is not compared
PYTHON_TYPES: Mapping[Kind, type] = {
    Kind.BOOLEAN: bool,
    Kind.DECIMAL: Decimal,
    Kind.FLOAT: float,
    Kind.DOUBLE: float,
    Kind.DATE: date,
    Kind.TIMESTAMP: datetime,
    Kind.VARCHAR: str,
}


def trusted(value: object, data_type: DataType) -> Any:
    """Return a statistics value when it is what the type holds, else None."""
    if data_type.is_integer:
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    expected = PYTHON_TYPES.get(data_type.kind)
    if expected is None or not isinstance(value, expected):
        return None
    if expected is date and isinstance(value, datetime):
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return None
    return None if isinstance(value, float) and math.isnan(value) else value  # NaN bounds nothing


def excluded(predicate: Expr, bounds_of: BoundsOf) -> bool:
    """Whether no row within the bounds can make the predicate TRUE; False when that cannot be proved."""
    return any(_excludes(part, bounds_of) for part in conjuncts(predicate))


def _excludes(part: Expr, bounds_of: BoundsOf) -> bool:
    match part:
        case Literal(value=value):
            return value is None or value is False
        case Call(function="and", args=args):
            return any(_excludes(a, bounds_of) for a in args)
        case Call(function="or", args=args):
            return all(_excludes(a, bounds_of) for a in args)
        case Call(function="is_null", args=(ColumnRef(column=column),)):
            known = bounds_of(column)
            return known is not None and known.nulls == 0
        case Call(function="is_not_null", args=(ColumnRef(column=column),)):
            known = bounds_of(column)
            return known is not None and known.all_null
        case Call(function="not", args=(ColumnRef() as ref,)):
            known = _range(ref, bounds_of)
            return known is not None and (known.all_null or known.low is True)
        case ColumnRef():
            known = _range(part, bounds_of)
            return known is not None and (known.all_null or known.high is False)
        case Call(function=function, args=(left, Literal(value=value))) if function in BOUNDED:
            return _compare(function, left, value, bounds_of)
        case Call(function=function, args=(Literal(value=value), right)) if function in BOUNDED:
            return _compare(MIRRORED[function], right, value, bounds_of)
        case Call(function="like" | "starts_with", args=(operand, Literal(value=str(text)), *rest)):
            prefix = text if part.function == "starts_with" else _like_prefix(text, rest)
            return prefix is not None and _misses_prefix(operand, prefix, bounds_of)
        case InList(operand=operand, values=values):
            given = [v.value for v in values if v.value is not None]
            return all(_compare("eq", operand, v, bounds_of) for v in given)
    return False


def _compare(function: str, operand: Expr, value: Value, bounds_of: BoundsOf) -> bool:
    if value is None:
        if function == "is_not_distinct":
            return _excludes(Call("is_null", (operand,), operand.type), bounds_of)
        return True  # a comparison with NULL is NULL
    known = _range(operand, bounds_of)
    if known is None:
        return False
    if known.all_null:
        return True
    low, high = known.low, known.high
    try:
        match function:
            case "eq" | "is_not_distinct":
                return (low is not None and value < low) or (high is not None and value > high)  # type: ignore[operator]
            case "lt":
                return low is not None and low >= value  # type: ignore[operator]
            case "le":
                return low is not None and low > value  # type: ignore[operator]
            case "gt":
                return high is not None and high <= value  # type: ignore[operator]
            case "ge":
                return high is not None and high < value  # type: ignore[operator]
            case _:  # the bounds meet in the value, or have passed each other there (`ColumnChunks.narrowest`)
                return low is not None and high is not None and low >= value >= high  # type: ignore[operator]
    except TypeError:
        return False  # values of two kinds, for which Python has no order


def _range(operand: Expr, bounds_of: BoundsOf) -> Bounds | None:
    """Return the bounds of a column, or of one under casts that keep the order of values."""
    match operand:
        case ColumnRef(column=column):
            known = bounds_of(column)
            return None if known is None or known.rows < 0 else known
        case Cast(operand=inner, type=target):
            known = _range(inner, bounds_of)
            convert = _monotone(inner.type, target)
            if known is None or convert is None:
                return None
            return Bounds(known.rows, known.nulls, convert(known.low), convert(known.high))
    return None


def _monotone(source: DataType, target: DataType) -> Callable[[Value], Value] | None:
    """Return how bounds pass through a cast that is exact or at least keeps order, or None."""
    if source == target:
        return lambda v: v
    if source.is_integer and (target.is_integer or target.is_decimal):
        return lambda v: v
    if source.is_decimal and target.is_decimal and target.scale >= source.scale:
        return lambda v: v
    if source.is_integer and target.kind is Kind.DOUBLE:
        return _as_double
    if source.kind is Kind.FLOAT and target.kind is Kind.DOUBLE:
        return lambda v: v
    if source.kind is Kind.DATE and target.kind is Kind.TIMESTAMP:
        return lambda v: datetime(v.year, v.month, v.day) if isinstance(v, date) else None
    return None


def _as_double(value: Value) -> Value:
    """A double for an integer that it holds exactly."""
    small = isinstance(value, int) and abs(value) <= EXACT_INT_AS_DOUBLE
    return float(value) if small and isinstance(value, int) else None


def _like_prefix(pattern: str, escape: list[Expr]) -> str | None:
    """Return the text with which every match of a LIKE pattern begins; None where an ESCAPE clause is given."""
    if escape:
        return None
    return re.split(r"[%_]", pattern, maxsplit=1)[0]


def _misses_prefix(operand: Expr, prefix: str, bounds_of: BoundsOf) -> bool:
    known = _range(operand, bounds_of)
    if known is None:
        return False
    if known.all_null:
        return True
    low, high = known.low, known.high
    below = isinstance(high, str) and high < prefix
    above = isinstance(low, str) and low[: len(prefix)] > prefix
    return bool(prefix) and (below or above)
