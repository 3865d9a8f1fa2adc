"""Rule `count_rows`: what a footer or arithmetic counts needs no rows."""

from __future__ import annotations

from collections.abc import Callable

from ...plan import logical as rel
from ...plan.expr import AggregateCall, Literal
from ...plan.join_kinds import JoinKind
from ...plan.node import transform_up
from ...plan.types import BIGINT

MOST = (1 << 63) - 1


def count_rows(plan: rel.Logical) -> rel.Logical:
    """Answer count(*) of relations whose number of rows is known.

        Aggregate(count(*), Scan(t))        -> Values(rows of t)
        Aggregate(count(*), Range(a, b, s)) -> Values(length of the range)

    Projections and sorts keep the number, pairs multiply it, UNION ALL adds up, a limit cuts it.
    """
    return transform_up(plan, _counted)


def _counted(node: rel.Logical) -> rel.Logical | None:
    if not isinstance(node, rel.Aggregate) or node.keys or node.grouping_sets is not None:
        return None
    if node.grouping_id is not None or not node.aggregates:
        return None
    if not all(_counts_rows(call) for _, call in node.aggregates):
        return None
    rows = _rows(node.input)
    if rows is None or rows > MOST:
        return None
    return rel.Values(node.columns, (tuple(Literal(rows, BIGINT) for _ in node.columns),))


def _counts_rows(call: AggregateCall) -> bool:
    return call.function == "count_star" and call.filter is None and not call.distinct


def _rows(node: rel.Logical) -> int | None:
    """Return how many rows a relation has, None where only running it tells."""
    match node:
        case rel.Scan(table=table):
            return table.statistics().rows
        case rel.CommonScan(common=common):
            return common.once(_rows)
        case rel.Range(start=start, stop=stop, step=step):
            numbers = range(start, stop, step)
            return (numbers[-1] - numbers[0]) // step + 1 if numbers else 0
        case rel.Values():
            return len(node.rows)
        case rel.Project(input=below) | rel.Sort(input=below):
            return _rows(below)
        case rel.Limit(input=below, count=count, offset=offset, per=()):
            rows = _rows(below)
            if rows is None:
                return None
            rows = max(0, rows - offset)
            return rows if count is None else min(rows, count)
        case rel.Join(left=left, right=right, kind=JoinKind.INNER, condition=None):
            return _both(left, right, lambda a, b: a * b)
        case rel.SetOperation(left=left, right=right, kind="union", all=True):
            return _both(left, right, lambda a, b: a + b)
    return None


def _both(left: rel.Logical, right: rel.Logical, combine: Callable[[int, int], int]) -> int | None:
    one, other = _rows(left), _rows(right)
    return None if one is None or other is None else combine(one, other)
