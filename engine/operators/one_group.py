"""Aggregates without GROUP BY that need all rows together, where these do not fit: as sorts and sets of rows, which spill.

sum(DISTINCT x)       =  sum(x) over the distinct x
quantile_cont(x, q)   =  quantile_cont(x, w) over the two rows of the sorted x that it lies between, w of the way
first(x ORDER BY k)   =  first(x) over the first row in the order of k
f(x ORDER BY k)       =  f(x) over the sorted rows, in parts: string_agg
mode(x)               =  the x of the group with the most rows, of several the one whose first row is the first
arg_min(x, k)         =  arg_min(x, k) over the first row in the order of k, of those that count
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import floor
from typing import TYPE_CHECKING

from ..errors import MemoryLimitError
from ..plan import partial
from ..plan import physical as p
from ..plan.expr import AggregateCall, Call, Column, ColumnRef, Literal, new_column
from ..plan.functions import AGGREGATE
from ..plan.join_kinds import JoinKind
from ..plan.types import BIGINT, BOOLEAN, DOUBLE
from .moments import moments
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
