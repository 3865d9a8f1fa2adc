"""Aggregates without GROUP BY that need all rows together, where these do not fit: as sorts and sets of rows, which spill.

sum(DISTINCT x)       =  sum(x) over the distinct x
median(x)             =  quantile_cont(x, w) over the two rows of the sorted x that it lies between, w of the way
first(x ORDER BY k)   =  first(x) over the first row in the order of k
arg_min(x, k)         =  arg_min(x, k) over the first row in the order of k, of those that count
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import floor
from typing import TYPE_CHECKING, Any

from ..errors import MemoryLimitError
from ..plan import partial
from ..plan import physical as p
from ..plan.expr import AggregateCall, Call, Column, ColumnRef, Literal, new_column
from ..plan.join_kinds import JoinKind
from ..plan.types import BIGINT, BOOLEAN, DOUBLE

if TYPE_CHECKING:
    from .pulling import Pull

Made = tuple[Column, AggregateCall]


def one_group(pull: Pull, node: p.HashAggregate) -> Iterator[Any]:
    """Yield the row of an aggregation without keys, some of whose calls cannot be made of parts."""
    parts: list[Made] = []
    whole: list[Made] = []
    nodes: list[p.HashAggregate] = []
    tables: list[Any] = []
    for made in node.aggregates:
        if not isinstance(partial.in_parts(replace(node, aggregates=(made,))), str):
            parts.append(made)
        elif (distinct := _of_distinct(node.input, *made)) is not None:
            nodes.append(distinct)
            tables.append(pull.collected(distinct))
        elif (few := _of_few_rows(pull, node.input, *made)) is not None:
            nodes.append(few)
            tables.append(pull.run(few, (pull.collected(few.input),)))
        else:
            whole.append(made)
    if parts:
        nodes.append(replace(node, aggregates=tuple(parts)))
        tables.append(pull.collected(nodes[-1]))
    if whole:
        nodes.append(replace(node, aggregates=tuple(whole)))
        tables.append(_together(pull, nodes[-1]))
    found: p.Physical = nodes[0]
    table = tables[0]
    for other, row in zip(nodes[1:], tables[1:], strict=True):
        found = p.NestedLoopJoin(found, other, JoinKind.INNER, device=node.device)
        table = pull.run(found, (table, row))
    yield table


def _of_distinct(rows: p.Physical, made: Column, call: AggregateCall) -> p.HashAggregate | None:
    """Return a call of one distinct argument over its values, each of which comes once."""
    arguments = [arg.column for arg in call.args if isinstance(arg, ColumnRef)]
    name = "count" if call.function == "approx_count_distinct" else call.function
    if not (call.distinct or name != call.function) or call.order or len(arguments) != 1:
        return None
    once = p.HashAggregate(_counted(rows, call), tuple(arguments), (), device=rows.device)
    plain = replace(call, function=name, distinct=False, filter=None)
    return p.HashAggregate(once, (), ((made, plain),), device=rows.device)


def _of_few_rows(
    pull: Pull, rows: p.Physical, made: Column, call: AggregateCall
) -> p.HashAggregate | None:
    """Return a call over the few sorted rows that decide it; None for a call of which none is known."""
    if call.distinct:
        return None
    rows, call = _counted(rows, call), replace(call, filter=None)
    columns = [arg.column for arg in call.args if isinstance(arg, ColumnRef)]
    if call.function in ("median", "quantile_cont", "quantile_disc"):
        return _quantile(pull, _known(rows, columns), made, call)
    if call.function in ("first", "last") and call.order:
        return _first_or_last(pull, rows, made, call)
    if call.function in ("arg_min", "arg_max"):
        order = p.Order(columns[1], call.function == "arg_max", nulls_first=False)
        best = p.TopK(_known(rows, columns), (order,), 1, device=rows.device)
        return p.HashAggregate(best, (), ((made, call),), device=rows.device)
    return None


def _counted(rows: p.Physical, call: AggregateCall) -> p.Physical:
    """The rows that a call's FILTER keeps."""
    return rows if call.filter is None else p.FilterRows(rows, call.filter, device=rows.device)


def _known(rows: p.Physical, columns: Sequence[Column]) -> p.Physical:
    """The rows in which no column is NULL."""
    for column in columns:
        known = Call("is_not_null", (ColumnRef(column),), BOOLEAN)
        rows = p.FilterRows(rows, known, device=rows.device)
    return rows


def _quantile(pull: Pull, rows: p.Physical, made: Column, call: AggregateCall) -> p.HashAggregate:
    (value, *others) = call.args
    assert isinstance(value, ColumnRef)
    descending = bool(call.order) and call.order[0].descending
    ordered = p.SortRows(
        rows, (p.Order(value.column, descending, nulls_first=False),), device=rows.device
    )
    count = _count(pull, rows)
    fraction = 0.5
    if others:
        assert isinstance(others[0], Literal)
        assert isinstance(others[0].value, int | float)
        fraction = float(others[0].value)
    if call.function == "quantile_disc":
        place = max(count - floor(count - fraction * count), 1) - 1
        near = p.LimitRows(ordered, 1, place, device=rows.device)
    else:
        exact = max(count - 1, 0) * fraction
        place = floor(exact)
        between = Literal(exact - place, DOUBLE)
        call = replace(call, function="quantile_cont", args=(value, between))
        near = p.LimitRows(ordered, 2, place, device=rows.device)
    return p.HashAggregate(near, (), ((made, call),), device=rows.device)


def _first_or_last(
    pull: Pull, rows: p.Physical, made: Column, call: AggregateCall
) -> p.HashAggregate:
    keys = [
        p.Order(key.expr.column, key.descending, key.nulls_first)
        for key in call.order
        if isinstance(key.expr, ColumnRef)
    ]
    place = 0 if call.function == "first" else max(_count(pull, rows) - 1, 0)
    ordered = p.SortRows(rows, tuple(keys), device=rows.device)
    one = p.LimitRows(ordered, 1, place, device=rows.device)
    call = replace(call, order=())
    return p.HashAggregate(one, (), ((made, call),), device=rows.device)


def _count(pull: Pull, rows: p.Physical) -> int:
    column = new_column("rows", BIGINT)
    calls = ((column, AggregateCall("count_star", (), BIGINT)),)
    table = pull.collected(p.HashAggregate(rows, (), calls, device=rows.device))
    found = pull.backends[rows.device].to_arrow(table, (column,))
    return int(found.column(0)[0].as_py())


def _together(pull: Pull, node: p.HashAggregate) -> Any:
    """Run an aggregation over all rows; raises `MemoryLimitError` with the reason where there is no room for them."""
    reason = partial.in_parts(node)
    try:
        return pull.run(node, (pull.collected(node.input),))
    except (MemoryError, MemoryLimitError) as error:
        raise MemoryLimitError(
            f"{reason}, and without GROUP BY these are all rows, for which there is no room: "
            f"{str(error).rstrip('.')}. Raise it with SET memory_limit, or group the rows."
        ) from error
