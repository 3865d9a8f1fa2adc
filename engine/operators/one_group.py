"""Aggregates without GROUP BY that need all rows together, where these do not fit: as sorts and sets of rows, which spill.

sum(DISTINCT x)       =  sum(x) over the distinct x
quantile_cont(x, q)   =  quantile_cont(x, w) over the two rows of the sorted x that it lies between, w of the way
first(x ORDER BY k)   =  first(x) over the first row in the order of k
f(x ORDER BY k)       =  f(x) over the sorted rows, in parts: string_agg
mode(x)               =  the x of the group with the most rows, of several the one whose first row is the first
arg_min(x, k)         =  arg_min(x, k) over the first row in the order of k, of those that count

Deviations, covariances and correlations of rows that come in pieces: each piece's own, put together by their means.

    xy(a + b)  =  xy(a) + xy(b) + (mean x(a) - mean x(b)) * (mean y(a) - mean y(b)) * n(a) * n(b) / (n(a) + n(b))

where xy is the sum of products of deviations (Chan, Golub and LeVeque, 1979): sums of squares would lose digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from math import floor, inf, isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import MemoryLimitError
from ..plan import partial, physical as p
from ..plan.expr import AggregateCall, Call, Column, ColumnRef, Expr, Literal, new_column
from ..plan.functions import AGGREGATE
from ..plan.join_kinds import JoinKind
from ..plan.types import BIGINT, BOOLEAN, DOUBLE
from ..records import dataclass
from .run_unfused import T

if TYPE_CHECKING:
    from .pulling import Pull


Made = tuple[Column, AggregateCall]


def one_group(pull: Pull[T], node: p.HashAggregate) -> Iterator[T]:
    """Yield the row of an aggregation without keys, some of whose calls cannot be made of parts."""
    parts: list[Made] = []
    whole: list[Made] = []
    spread: list[Made] = []
    nodes: list[p.Physical] = []
    tables: list[T] = []
    for made in node.aggregates:
        if not isinstance(partial.in_parts(replace(node, aggregates=(made,))), str):
            parts.append(made)
        elif (rows := _of_distinct(node.input, *made) or _in_order(node, made)) is not None:
            nodes.append(rows)
            tables.append(pull.collected(rows))
        elif AGGREGATE[made[1].function].moments and not made[1].distinct:
            spread.append(made)
        elif (few := _of_few_rows(pull, node.input, *made)) is not None:
            nodes.append(few)
            tables.append(pull.run(few, (pull.collected(few.input),)))
        else:
            whole.append(made)
    if parts:
        nodes.append(replace(node, aggregates=tuple(parts)))
        tables.append(pull.collected(nodes[-1]))
    if spread:
        spreads, table = moments(pull, node.input, spread)
        nodes.append(spreads)
        tables.append(table)
    if whole:
        last = replace(node, aggregates=tuple(whole))
        nodes.append(last)
        tables.append(_together(pull, last))
    found: p.Physical = nodes[0]
    table = tables[0]
    for other, row in zip(nodes[1:], tables[1:], strict=True):
        found = p.NestedLoopJoin(found, other, JoinKind.INNER, device=node.device)
        table = pull.run(found, (table, row))
    yield table


def _of_distinct(rows: p.Physical, made: Column, call: AggregateCall) -> p.HashAggregate | None:
    """Return a call of one distinct argument over its values, each of which comes once."""
    arguments = [arg.column for arg in call.args if isinstance(arg, ColumnRef)]
    if not call.distinct or len(arguments) != 1:
        return None
    if any(key.expr != ColumnRef(arguments[0]) for key in call.order):
        return None
    once = p.HashAggregate(_counted(rows, call), tuple(arguments), (), device=rows.device)
    plain = replace(call, distinct=False, filter=None)
    return p.HashAggregate(once, (), ((made, plain),), device=rows.device)


def _in_order(node: p.HashAggregate, made: Made) -> p.HashAggregate | None:
    """Return a call with ORDER BY over sorted rows, if it can be made of parts of these."""
    column, call = made
    plain = replace(call, order=())
    if call.distinct or call.function in ("first", "last"):  # of which one row is enough
        return None
    found = replace(node, input=_sorted(node.input, call), aggregates=((column, plain),))
    return None if isinstance(partial.in_parts(found), str) else found


def _sorted(rows: p.Physical, call: AggregateCall) -> p.Physical:
    keys = tuple(
        p.Order(key.expr.column, key.descending, key.nulls_first)
        for key in call.order
        if isinstance(key.expr, ColumnRef)
    )
    return p.SortRows(rows, keys, device=rows.device) if keys else rows


def _of_few_rows(
    pull: Pull[T], rows: p.Physical, made: Column, call: AggregateCall
) -> p.HashAggregate | None:
    """Return a call over the few sorted rows that decide it; None for a call of which none is known."""
    if call.distinct:
        return None
    rows, call = _counted(rows, call), replace(call, filter=None)
    columns = [arg.column for arg in call.args if isinstance(arg, ColumnRef)]
    if call.function in ("quantile_cont", "quantile_disc"):
        return _quantile(pull, _known(rows, columns), made, call)
    if call.function in ("first", "last") and call.order:
        return _first_or_last(pull, rows, made, call)
    if call.function in ("arg_min", "arg_max"):
        order = p.Order(columns[1], call.function == "arg_max", nulls_first=False)
        best = p.TopK(_known(rows, columns), (order,), 1, device=rows.device)
        return p.HashAggregate(best, (), ((made, call),), device=rows.device)
    if call.function == "mode":
        return _mode(pull, _known(rows, columns), made, call)
    return None


def _mode(pull: Pull[T], rows: p.Physical, made: Column, call: AggregateCall) -> p.HashAggregate:
    (value,) = (arg.column for arg in call.args if isinstance(arg, ColumnRef))
    rows = _sorted(rows, call)
    place, count = new_column("place", BIGINT), new_column("count", BIGINT)
    first = new_column("first", BIGINT)
    numbered = p.Stored(0, (*rows.columns, place), device=rows.device)
    pull.given[id(numbered)] = _numbered(pull, rows, place)
    counts = (
        (count, AggregateCall("count_star", (), BIGINT)),
        (first, AggregateCall("min", (ColumnRef(place),), BIGINT)),
    )
    groups = p.HashAggregate(numbered, (value,), counts, device=rows.device)
    order = p.Order(count, True, nulls_first=False), p.Order(first, False, nulls_first=False)
    best = p.TopK(groups, order, 1, device=rows.device)
    return p.HashAggregate(best, (), ((made, replace(call, order=())),), device=rows.device)


def _numbered(pull: Pull[T], rows: p.Physical, place: Column) -> Iterator[T]:
    start = 0
    for piece in pull.pieces(rows):
        yield pull.backends[rows.device].numbered(piece, place, start)
        start += piece.num_rows


def _counted(rows: p.Physical, call: AggregateCall) -> p.Physical:
    """The rows that a call's FILTER keeps."""
    return rows if call.filter is None else p.FilterRows(rows, call.filter, device=rows.device)


def _known(rows: p.Physical, columns: Sequence[Column]) -> p.Physical:
    """The rows in which no column is NULL."""
    for column in columns:
        known = Call("is_not_null", (ColumnRef(column),), BOOLEAN)
        rows = p.FilterRows(rows, known, device=rows.device)
    return rows


def _quantile(
    pull: Pull[T], rows: p.Physical, made: Column, call: AggregateCall
) -> p.HashAggregate:
    value = call.args[0]
    assert isinstance(value, ColumnRef)
    descending = bool(call.order) and call.order[0].descending
    ordered = p.SortRows(
        rows, (p.Order(value.column, descending, nulls_first=False),), device=rows.device
    )
    count = _count(pull, rows)
    fraction = call.fraction
    if call.function == "quantile_disc":
        place = max(count - floor(count - fraction * count), 1) - 1
        near = p.LimitRows(ordered, 1, place, device=rows.device)
    else:
        exact = max(count - 1, 0) * fraction
        place = floor(exact)
        between = Literal(exact - place, DOUBLE)
        call = replace(call, args=(value, between))
        near = p.LimitRows(ordered, 2, place, device=rows.device)
    return p.HashAggregate(near, (), ((made, call),), device=rows.device)


def _first_or_last(
    pull: Pull[T], rows: p.Physical, made: Column, call: AggregateCall
) -> p.HashAggregate:
    place = 0 if call.function == "first" else max(_count(pull, rows) - 1, 0)
    one = p.LimitRows(_sorted(rows, call), 1, place, device=rows.device)
    call = replace(call, order=())
    return p.HashAggregate(one, (), ((made, call),), device=rows.device)


def _count(pull: Pull[T], rows: p.Physical) -> int:
    column = new_column("rows", BIGINT)
    calls = ((column, AggregateCall("count_star", (), BIGINT)),)
    table = pull.collected(p.HashAggregate(rows, (), calls, device=rows.device))
    found = pull.backends[rows.device].to_arrow(table, (column,))
    return int(found.column(0)[0].as_py())


def _together(pull: Pull[T], node: p.HashAggregate) -> T:
    """Run an aggregation over all rows; raises `MemoryLimitError` with the reason where there is no room for them."""
    reason = partial.in_parts(node)
    try:
        return pull.run(node, (pull.collected(node.input),))
    except (MemoryError, MemoryLimitError) as error:
        raise MemoryLimitError(
            f"{reason}, and without GROUP BY these are all rows, for which there is no room: "
            f"{str(error).rstrip('.')}. Raise it with SET memory_limit, or group the rows."
        ) from error


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
