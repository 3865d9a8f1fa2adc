"""Which share of rows a predicate keeps, by interpolation between bounds and defaults where nothing is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol

from ...plan import expr as ex
from ...plan.functions import COMPARISONS, MIRRORED, SCALAR
from ...records import dataclass

EQUAL = 0.05
UNEQUAL = 0.9
COMPARED = 0.4  # `<` between two columns, or a column of unknown bounds and a constant
AGGREGATE_COMPARED = 0.1  # HAVING is written to keep few groups
LEAST_TAIL = 1e-4  # of an aggregate's values: distributions have longer tails than the normal one
LEAST_CLASS = 1e-6  # a share below it is one of so many rows
CONTAINS = 0.1  # LIKE with a leading %
PREFIX = 0.05
NULLS = 0.05  # IS NULL where the number of NULLs is not known
TRUTH = 0.5  # a BOOLEAN column, a mark


@dataclass(frozen=True, slots=True)
class ColumnEstimate:
    """What is expected of a column.

    `distinct` values remain here, of `domain` values in the table it comes from; `unique`: a key of that table.  `low` and `high`
    bound its values as numbers (dates as days, timestamps as seconds); `derived` columns are computed, so that no
    statistics speak of them.  `mean` and `deviation` are those of an aggregate's values, where it adds up many.
    `ascending`: rows probably come in the order of its values.
    """

    distinct: float
    domain: float
    unique: bool
    low: float | None = None
    high: float | None = None
    null_share: float = 0.0
    derived: bool = False
    source_rows: float = float("inf")
    mean: float | None = None
    deviation: float = 0.0
    ascending: bool = False


class Columns(Protocol):
    """Estimates by column, as a dict or `Lazily`."""

    def get(self, column: ex.Column, /) -> ColumnEstimate | None: ...
    def __getitem__(self, column: ex.Column, /) -> ColumnEstimate: ...
    def __contains__(self, column: object, /) -> bool: ...


class Lazily:
    """Estimates of columns, each worked out when it is first asked for: most columns of most nodes never are.

    `work_out` returns None for a column that is not there.
    """

    __slots__ = ("known", "work_out")

    def __init__(self, work_out: Callable[[ex.Column], ColumnEstimate | None]) -> None:
        self.work_out = work_out
        self.known: dict[ex.Column, ColumnEstimate] = {}

    def get(self, column: ex.Column) -> ColumnEstimate | None:
        found = self.known.get(column)
        if found is None:
            found = self.work_out(column)
            if found is not None:
                self.known[column] = found
        return found

    def __getitem__(self, column: ex.Column) -> ColumnEstimate:
        found = self.get(column)
        if found is None:
            raise KeyError(column)
        return found

    def __contains__(self, column: object) -> bool:
        return isinstance(column, ex.Column) and self.get(column) is not None


def united(columns: Columns, more: Columns) -> Columns:
    """Return the estimates of both; where both know a column, those of `more`."""
    return Lazily(lambda column: more.get(column) or columns.get(column))


def number(value: ex.Value) -> float | None:
    """Return a value as a number that keeps its order, or None for text, NULL and intervals."""
    match value:
        case bool() | int() | float() | Decimal():
            found = float(value)
            return None if math.isnan(found) else found
        case datetime():
            return (
                value.toordinal() * 86400.0 + value.hour * 3600 + value.minute * 60 + value.second
            )
        case date():
            return float(value.toordinal())
    return None


def selectivity(predicate: ex.Expr | Iterable[ex.Expr] | None, columns: Columns) -> float:
    """Return the share of rows, between 0 and 1, for which all of `predicate` is TRUE."""
    if predicate is None:
        return 1.0
    parts = list(ex.conjuncts(predicate)) if isinstance(predicate, ex.Expr) else list(predicate)
    share = 1.0
    ranges, rest = _ranges(parts, columns)
    for column, (low, high) in ranges.items():
        share *= _range_share(columns[column], low, high)
    for part in rest:
        share *= _share(part, columns)
    return min(1.0, max(share, 0.0))


def selectivity_class(predicate: ex.Expr, columns: Columns) -> int:
    """Return the power of 16 of the share of rows that a predicate keeps: plans of one class are as good for one another."""
    return round(math.log(max(selectivity(predicate, columns), LEAST_CLASS), 16))


def narrowed(columns: Columns, predicate: ex.Expr) -> Columns:
    """Return the estimates of columns under a predicate: tighter bounds and fewer values."""
    found: dict[ex.Column, ColumnEstimate] = {}
    parts = list(ex.conjuncts(predicate))
    ranges, rest = _ranges(parts, columns)
    for column, (low, high) in ranges.items():
        known = columns[column]
        share = _range_share(known, low, high)
        found[column] = replace(
            known,
            distinct=max(1.0, known.distinct * share),
            low=known.low if low is None else max(low, low if known.low is None else known.low),
            high=known.high
            if high is None
            else min(high, high if known.high is None else known.high),
            null_share=0.0,
        )
    for part in rest:
        match part:
            case ex.Call(
                function="eq", args=(ex.ColumnRef(column=column), ex.Literal() as value)
            ) if column in columns:
                at = number(value.hint)
                known = found.get(column) or columns[column]
                found[column] = replace(known, distinct=1.0, low=at, high=at, null_share=0.0)
            case ex.InList(operand=ex.ColumnRef(column=column), values=values) if column in columns:
                known = found.get(column) or columns[column]
                few = min(known.distinct, float(len(values)))
                found[column] = replace(known, distinct=few, null_share=0.0)
    return united(columns, found) if found else columns


Range = tuple[float | None, float | None]


def _ranges(parts: list[ex.Expr], columns: Columns) -> tuple[dict[ex.Column, Range], list[ex.Expr]]:
    """Join the comparisons of each column with constants into one range, so that two halves of a range are not multiplied."""
    ranges: dict[ex.Column, Range] = {}
    rest = []
    for part in parts:
        bound = _bound(part)
        if bound is None or bound[0] not in columns or columns[bound[0]].low is None:
            rest.append(part)
            continue
        column, low, high = bound
        old_low, old_high = ranges.get(column, (None, None))
        ranges[column] = (
            old_low if low is None else low if old_low is None else max(low, old_low),
            old_high if high is None else high if old_high is None else min(high, old_high),
        )
    return ranges, rest


def _bound(part: ex.Expr) -> tuple[ex.Column, float | None, float | None] | None:
    match part:
        case ex.Call(function=function, args=(ex.ColumnRef(column=column), ex.Literal(hint=value))):
            pass
        case ex.Call(function=function, args=(ex.Literal(hint=value), ex.ColumnRef(column=column))):
            function = MIRRORED.get(function, function)
        case _:
            return None
    at = number(value)
    if at is None:
        return None
    bound = SCALAR[function].bound
    if bound == "upper":
        return column, None, at
    return (column, at, None) if bound == "lower" else None


def _range_share(known: ColumnEstimate, low: float | None, high: float | None) -> float:
    if known.low is None or known.high is None:
        return COMPARED if low is None or high is None else COMPARED / 2
    start = known.low if low is None else max(low, known.low)
    stop = known.high if high is None else min(high, known.high)
    if start > stop:
        return 0.0
    width = known.high - known.low
    inside = 1.0 if width <= 0 else (stop - start) / width
    return max(inside, 1.0 / max(known.distinct, 1.0)) * (1.0 - known.null_share)


def _share(part: ex.Expr, columns: Columns) -> float:
    match part:
        case ex.Literal(truth=truth):
            return 1.0 if truth else 0.0
        case ex.Call(function="and", args=args):
            return selectivity(args, columns)
        case ex.Call(function="or", args=args):
            missed = 1.0
            for arg in args:
                missed *= 1.0 - selectivity(arg, columns)
            return 1.0 - missed
        case ex.Call(function="not", args=(arg,)):
            return 1.0 - _share(arg, columns)
        case ex.Call(function="is_null", args=(arg,)):
            return _null_share(arg, columns)
        case ex.Call(function="is_not_null", args=(arg,)):
            return 1.0 - _null_share(arg, columns)
        case ex.Call(function="like" | "ilike", args=(_, ex.Literal(hint=str(pattern)), *_)):
            return PREFIX if pattern[:1] not in ("%", "_") else CONTAINS
        case ex.Call(function="contains" | "ends_with" | "regexp_matches"):
            return CONTAINS
        case ex.Call(function="starts_with"):
            return PREFIX
        case ex.InList(operand=operand, values=values):
            return min(1.0, len(values) * _equal_share(operand, columns))
        case ex.Call(function=function, args=(a, b)) if function in COMPARISONS:
            return _comparison_share(function, a, b, columns)
        case ex.Case(results=results):
            return min(1.0, sum(_share(r, columns) for r in results))
    return TRUTH


def _comparison_share(function: str, a: ex.Expr, b: ex.Expr, columns: Columns) -> float:
    bound = SCALAR[function].bound
    if bound in ("", "both"):
        if isinstance(a, ex.Literal):
            a, b = b, a
        share = _equal_share(a, columns)
        if not isinstance(b, ex.Literal):
            share = min(share, _equal_share(b, columns))
        return share if bound == "both" else max(UNEQUAL, 1.0 - share)
    if isinstance(a, ex.Literal):
        a, b, function = b, a, MIRRORED[function]
    known = _column(a, columns)
    if known is not None and known.mean is not None and isinstance(b, ex.Literal):
        return _tail(known, function, number(b.hint))
    if _is_derived(a, columns) or _is_derived(b, columns):
        return AGGREGATE_COMPARED
    return COMPARED


def _tail(known: ColumnEstimate, function: str, bound: float | None) -> float:
    """The share of a normal distribution, which sums over many rows come close to, above or below a bound."""
    if bound is None or known.mean is None:
        return AGGREGATE_COMPARED
    distance = (bound - known.mean) / max(known.deviation, 1e-9)
    above = math.erfc(min(max(distance, -9.0), 9.0) / math.sqrt(2)) / 2
    share = above if SCALAR[function].bound == "lower" else 1.0 - above
    return max(share, LEAST_TAIL)


def _is_derived(expr: ex.Expr, columns: Columns) -> bool:
    known = _column(expr, columns)
    return known is not None and known.derived


def _equal_share(expr: ex.Expr, columns: Columns) -> float:
    known = _column(expr, columns)
    if known is None:
        return EQUAL
    return (1.0 - known.null_share) / max(known.distinct, 1.0)


def _null_share(expr: ex.Expr, columns: Columns) -> float:
    known = _column(expr, columns)
    return NULLS if known is None or known.derived else known.null_share


def _column(expr: ex.Expr, columns: Columns) -> ColumnEstimate | None:
    while isinstance(expr, ex.Cast):
        expr = expr.operand
    return columns.get(expr.column) if isinstance(expr, ex.ColumnRef) else None
