"""Windows: keys, arguments and bounds become columns; one without an order is an aggregate that each row looks up."""

from __future__ import annotations

import dataclasses

from ...plan import expr as ex, physical as p
from ...plan.functions import AGGREGATE, SCALAR, WINDOW, constants
from ...plan.join_kinds import JoinKind
from ...plan.window.window_call import Window, WindowCall
from ...plan.window.window_operator import WindowRows
from ..estimates.estimate import expected, group_count
from .lowering import Computed, Lowering, Needed

Calls = list[tuple[ex.Column, WindowCall]]


def lower_window(node: Window, needed: Needed, to: Lowering, most: int | None = None) -> p.Physical:
    """Return the operator of a window; with `most` rows of a higher rank may be left out."""
    computed = Computed()
    partition = tuple(dict.fromkeys(_keys(node, computed)))
    orders: dict[ex.Column, p.Order] = {}
    for key in node.order:
        if not isinstance(key.expr, ex.Literal):
            column = computed.column(key.expr, "key")
            orders.setdefault(column, p.Order(column, key.descending, key.nulls_first))
    for column in partition:  # in which all rows are alike
        orders.pop(column, None)
    calls = [(c, _over_columns(call, computed)) for c, call in node.calls if c in needed]
    own = frozenset(node.input.columns)
    read = (needed & own).union(*(ex.columns_of(e) for e in node.expressions)) & own
    wanted = (needed & own) | frozenset(partition) | frozenset(orders)
    wanted = wanted.union(*(ex.columns_of(call) for _, call in calls))
    below = computed.above(to.lower(node.input, read), wanted)
    passed = tuple(c for c in below.columns if c in needed)
    if calls and all(_is_whole(call, bool(orders)) for _, call in calls):
        return _looked_up(node, below, partition, calls, passed, to)
    return WindowRows(below, partition, tuple(orders.values()), tuple(calls), passed, most)


def most_rank(node: Window, predicate: ex.Expr) -> int | None:
    """Return the rank above which rows have no TRUE predicate; None where they may, or where a call of the others reads them."""
    if not node.order or not all(call.looks_back for _, call in node.calls):
        return None
    ranks = {
        c for c, call in node.calls if call.function in WINDOW and WINDOW[call.function].is_rank
    }
    found = (_bound(part, ranks) for part in ex.conjuncts(predicate))
    return min((most for most in found if most is not None), default=None)


def _bound(part: ex.Expr, ranks: set[ex.Column]) -> int | None:
    """Return the number that a comparison allows a rank at most."""
    if not isinstance(part, ex.Call) or len(part.args) != 2:
        return None
    left, right = part.args
    row = SCALAR[part.function]
    if isinstance(left, ex.Literal) and row.mirrored:
        left, right, row = right, left, SCALAR[row.mirrored]
    if not isinstance(left, ex.ColumnRef) or left.column not in ranks:
        return None
    if row.bound not in ("upper", "both") or not isinstance(right, ex.Literal):
        return None
    return right.value if isinstance(right.value, int) else None


def _keys(node: Window, computed: Computed) -> list[ex.Column]:
    return [computed.column(e, "key") for e in node.partition if not isinstance(e, ex.Literal)]


def _over_columns(call: WindowCall, computed: Computed) -> WindowCall:
    """Return the call with columns for arguments and bounds; literals stay, as arguments that the function wants constant."""

    def as_ref(expr: ex.Expr | None, name: str) -> ex.ColumnRef | None:
        return None if expr is None else ex.ColumnRef(computed.column(expr, name), expr.span)

    def as_offset(expr: ex.Expr | None) -> ex.Expr | None:
        return expr if isinstance(expr, ex.Literal) else as_ref(expr, "bound")

    fixed = constants(AGGREGATE[call.function].signature) if call.is_aggregate else {}
    args = []
    for i, arg in enumerate(call.args):
        counts = not call.is_aggregate and (i == 1 or call.function == "ntile")
        stays = i in fixed or (counts and isinstance(arg, ex.Literal))
        args.append(arg if stays else ex.ColumnRef(computed.column(arg, "argument"), arg.span))
    order = tuple(
        ex.SortKey(ex.ColumnRef(computed.column(k.expr, "key")), k.descending, k.nulls_first)
        for k in call.order
        if not (call.is_aggregate and isinstance(k.expr, ex.Literal))
    )
    is_range = call.frame.unit == "range"
    return dataclasses.replace(
        call,
        args=tuple(args),
        filter=as_ref(call.filter, "condition"),
        order=order,
        start=as_ref(call.start, "bound") if is_range else as_offset(call.start),
        end=as_ref(call.end, "bound") if is_range else as_offset(call.end),
        key=as_ref(call.key, "key"),
    )


def _is_whole(call: WindowCall, ordered: bool) -> bool:
    """Whether a call is an aggregate over all rows of the partition, so that nothing is sorted for it."""
    frame = call.frame
    if not call.is_aggregate or AGGREGATE[call.function].ordered or frame.exclude != "no others":
        return False
    starts, ends = frame.start == "unbounded preceding", frame.end == "unbounded following"
    peers = not ordered and frame.unit != "rows"  # all rows are
    return (starts or (peers and frame.start == "current row")) and (
        ends or (peers and frame.end == "current row")
    )


def _looked_up(
    node: Window,
    below: p.Physical,
    partition: tuple[ex.Column, ...],
    calls: Calls,
    passed: tuple[ex.Column, ...],
    to: Lowering,
) -> p.Physical:
    """Aggregate by the partition and join the groups back: no sort, and kernels for both."""
    known = to.estimates.relation(node.input)
    keys = [k for k in node.partition if not isinstance(k, ex.Literal)]
    groups = group_count([expected(e, known) for e in keys], known.rows)
    made: tuple[tuple[ex.Column, ex.AggregateCall], ...]
    made = tuple((c, call.aggregate) for c, call in calls)
    grouped: p.Physical = p.HashAggregate(below, partition, made, estimate=groups if keys else 1.0)
    keep = (*passed, *(c for c, _ in calls))
    if not partition:
        return p.NestedLoopJoin(below, grouped, JoinKind.INNER, keep=keep, estimate=known.rows)
    own = {c: ex.new_column(c.name, c.type) for c in partition}
    items = tuple((own[c], ex.ColumnRef(c)) for c in partition)
    items += tuple((c, ex.ColumnRef(c)) for c, _ in calls)
    right = p.ComputeColumns(grouped, items, estimate=grouped.estimate)
    return p.HashJoin(
        below,
        right,
        JoinKind.INNER,
        partition,
        tuple(own.values()),
        (True,) * len(partition),
        keep=keep,
        estimate=known.rows,
    )
