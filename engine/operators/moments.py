"""Deviations, covariances and correlations of rows that come in pieces: each piece's own, put together by their means.

    xy(a + b)  =  xy(a) + xy(b) + (mean x(a) - mean x(b)) * (mean y(a) - mean y(b)) * n(a) * n(b) / (n(a) + n(b))

where xy is the sum of products of deviations (Chan, Golub and LeVeque, 1979): sums of squares would lose digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf, isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from ..plan import physical as p
from ..plan.expr import AggregateCall, Call, Column, ColumnRef, Expr, Literal, new_column
from ..plan.functions import AGGREGATE
from ..plan.types import BIGINT, BOOLEAN, DOUBLE
from .run_unfused import T

if TYPE_CHECKING:
    from .pulling import Pull


class Moments(NamedTuple):
    """Of some rows: how many there are, the means of x and y, and the sums of products of their deviations from these."""

    rows: int
    x: float
    y: float
    xx: float
    yy: float
    xy: float


NONE = Moments(0, 0.0, 0.0, 0.0, 0.0, 0.0)


def together(a: Moments, b: Moments) -> Moments:
    """Return the moments of all rows; what has an infinity or NaN among several rows deviates by NaN."""
    if not a.rows or not b.rows:
        return a if a.rows else b
    count = a.rows + b.rows
    dx, dy = b.x - a.x, b.y - a.y
    share, weight = b.rows / count, a.rows * (b.rows / count)

    def summed(one: float, other: float, product: float, *means: float) -> float:
        return one + other + product * weight if all(map(isfinite, means)) else nan

    return Moments(
        count,
        a.x + dx * share,
        a.y + dy * share,
        summed(a.xx, b.xx, dx * dx, a.x, b.x),
        summed(a.yy, b.yy, dy * dy, a.y, b.y),
        summed(a.xy, b.xy, dx * dy, a.x, b.x, a.y, b.y),
    )


def result(function: str, found: Moments) -> float | None:
    """Return what an aggregate function makes of the moments of all rows."""
    if function == "corr":
        spread = sqrt(found.xx) * sqrt(found.yy)
        return None if not found.rows else found.xy / spread if spread else nan
    row = AGGREGATE[function]
    divisor = found.rows - row.ddof
    if divisor <= 0:
        return None
    value = (found.xy if function.startswith("covar") else found.xx) / divisor
    return sqrt(value) if row.root and value < inf else value


@dataclass(frozen=True)
class _Asked:
    """What is asked of each piece for one call: count, means, variances and the covariance, of the rows that count."""

    function: str
    flag: tuple[Column, Expr]
    parts: tuple[tuple[Column, AggregateCall], ...]

    @classmethod
    def of(cls, call: AggregateCall) -> _Asked:
        flag = new_column("counts", BOOLEAN)
        tests: list[Expr] = [Call("is_not_null", (arg,), BOOLEAN) for arg in call.args]
        tests += [] if call.filter is None else [call.filter]
        known = reduce(lambda one, other: Call("and", (one, other), BOOLEAN), tests)
        x, y = call.args[0], call.args[-1]
        wanted: list[tuple[str, tuple[Expr, ...]]] = [("count_star", ()), ("avg", (x,))]
        wanted += [("var_pop", (x,))]
        if len(call.args) > 1:
            wanted += [("avg", (y,)), ("var_pop", (y,)), ("covar_pop", (x, y))]
        parts = []
        for name, args in wanted:
            kind = BIGINT if name == "count_star" else DOUBLE
            part = AggregateCall(name, args, kind, filter=ColumnRef(flag))
            parts.append((new_column(name, kind), part))
        return cls(call.function, (flag, known), tuple(parts))

    def of_piece(self, row: dict[int, Any]) -> Moments:
        """Return the moments that a piece's results are, by columns' ids."""
        count, *found = (row[column.id] for column, _ in self.parts)
        if not count:
            return NONE
        x, xx, y, yy, xy = found if len(found) > 2 else (*found, 0.0, 0.0, 0.0)
        return Moments(count, x, y, xx * count, yy * count, xy * count)


def moments(
    pull: Pull[T], rows: p.Physical, calls: Sequence[tuple[Column, AggregateCall]]
) -> tuple[p.Physical, T]:
    """Return a row of such calls over all rows, read once, and a node with its columns."""
    asked = [_Asked.of(call) for _, call in calls]
    passed = tuple((c, ColumnRef(c)) for c in rows.columns)
    flags = tuple(one.flag for one in asked)
    flagged = p.ComputeColumns(rows, (*passed, *flags), device=rows.device)
    parts = tuple(part for one in asked for part in one.parts)
    aggregate = p.HashAggregate(flagged, (), parts, device=rows.device)
    found = [NONE] * len(calls)
    for piece in pull.pieces(rows):
        table = pull.run(aggregate, (pull.run(flagged, (piece,)),))
        arrow = pull.backends[rows.device].to_arrow(table, aggregate.columns)
        values = [column[0].as_py() for column in arrow.columns]
        row = {c.id: value for c, value in zip(aggregate.columns, values, strict=True)}
        found = [together(f, one.of_piece(row)) for f, one in zip(found, asked, strict=True)]
    row_of = tuple(
        Literal(result(one.function, f), DOUBLE) for one, f in zip(asked, found, strict=True)
    )
    made = p.ValuesScan(tuple(column for column, _ in calls), (row_of,), device=rows.device)
    return made, pull.run(made, ())
