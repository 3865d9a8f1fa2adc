"""Logical plan to physical plan: which algorithm, which build side, which columns go on.

Operators read columns, so keys and arguments that are expressions are computed below the operator that wants them.  Of a join,
equalities become hash keys, the rest a residual, and the smaller side is hashed.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ...plan import logical as rel, physical as p
from ...plan.expr import Call, Column, ColumnRef, Expr, Literal, columns_of, conjunction, conjuncts
from ...plan.shapes.plan_model import decided_over
from ...plan.window.window_call import Window
from ..expressions.simplification import as_equality
from ..rewrite import is_passed
from .lower_window import lower_window, most_rank
from .lowering import Computed, Lowering, Needed, compute, kept, lower_aggregate

if TYPE_CHECKING:
    from ..estimates.estimate import Estimates


def lower_join(node: rel.Join, needed: Needed, to: Lowering) -> p.Physical:
    left_columns, right_columns = frozenset(node.left.columns), frozenset(node.right.columns)
    pairs: list[tuple[Expr, Expr, bool]] = []
    rest: list[Expr] = []
    for part in conjuncts(node.condition):
        pair = as_equality(part, left_columns, right_columns)
        if pair is None and node.null_aware:
            pair = _sides(part, right_columns)
        if pair is None:
            rest.append(part)
        else:
            pairs.append((*pair, isinstance(part, Call) and part.function == "is_not_distinct"))
    if not pairs:
        return _nested_loop(node, needed, to)
    residual = conjunction(rest) if rest else None
    read_later = needed | (columns_of(residual) if residual is not None else frozenset())
    left, left_keys = _side(node.left, [a for a, _, _ in pairs], read_later, to)
    right, right_keys = _side(node.right, [b for _, b, _ in pairs], read_later, to)
    return p.HashJoin(
        left,
        right,
        node.kind,
        left_keys,
        right_keys,
        tuple(null_equal for _, _, null_equal in pairs),
        residual,
        "left" if to.estimates.rows(node.left) < to.estimates.rows(node.right) else "right",
        node.null_aware,
        node.mark,
        kept(node.kind.outputs(left.columns, right.columns, node.mark), needed),
        span=node.span,
    )


def _sides(part: Expr, right_columns: frozenset[Column]) -> tuple[Expr, Expr]:
    """Return the sides of a null-aware equality of which one may be a constant."""
    assert isinstance(part, Call)
    assert part.function == "eq"
    a, b = part.args
    if columns_of(a) and columns_of(a) <= right_columns:
        return b, a
    return a, b


def _side(
    node: rel.Logical, keys: list[Expr], needed: Needed, to: Lowering
) -> tuple[p.Physical, tuple[Column, ...]]:
    """Return one input with its keys as columns."""
    computed = Computed()
    columns = tuple(computed.column(key, "key") for key in keys)
    own = frozenset(node.columns)
    wanted = (needed & own) | frozenset(c for c in columns if c in own)
    read = wanted.union(*(columns_of(key) for key in keys))
    return computed.above(to.lower(node, read), wanted), columns


def _nested_loop(node: rel.Join, needed: Needed, to: Lowering) -> p.Physical:
    read = needed | (columns_of(node.condition) if node.condition is not None else frozenset())
    left = to.lower(node.left, read & frozenset(node.left.columns))
    right = to.lower(node.right, read & frozenset(node.right.columns))
    joined = node.kind.outputs(left.columns, right.columns, node.mark)
    parts = list(conjuncts(node.condition))
    condition = conjunction(parts) if parts else None
    keep = kept(joined, needed)
    return p.NestedLoopJoin(left, right, node.kind, condition, node.mark, keep, span=node.span)


@runtime_checkable
class PrunedTable(Protocol):
    """A table whose row groups can be excluded by their statistics."""

    def select_row_groups(
        self, predicate: Expr | None, columns: dict[Column, str]
    ) -> tuple[tuple[p.RowGroups, ...], int]:
        """Return the row groups that may hold rows for which `predicate` is TRUE, and how many may not."""


def lower(plan: rel.Logical, estimates: Estimates) -> p.Physical:
    """Return operators that make exactly the columns of `plan`."""
    return Lowering(estimates, _lower).exact(plan, plan.columns)


def _lower(node: rel.Logical, needed: Needed, to: Lowering) -> p.Physical:
    match node:
        case rel.Scan():
            return _lower_scan(node, needed, None)
        case rel.CommonScan():
            return _lower_common(node, needed, to)
        case rel.Range():
            return p.RangeScan(node.made, node.start, node.stop, node.step)
        case rel.Values():
            return p.ValuesScan(node.made, node.rows)
        case rel.Filter():
            return _lower_filter(node, needed, to)
        case rel.Project():
            return _lower_project(node, needed, to)
        case rel.Join():
            return lower_join(node, needed, to)
        case rel.Aggregate():
            return lower_aggregate(node, needed, to)
        case rel.Unnest():
            return _lower_unnest(node, needed, to)
        case Window():
            return lower_window(node, needed, to)
        case rel.Distinct():
            return _lower_distinct(node, needed, to)
        case rel.Sort():
            below, orders = _ordered(node, needed, to)
            return p.SortRows(below, orders) if orders else below
        case rel.Limit():
            return _lower_limit(node, needed, to)
        case rel.SetOperation():
            return _lower_set_operation(node, to)
    raise TypeError(f"{type(node).__name__} has no physical form")


def _lower_scan(scan: rel.Scan, needed: Needed, predicate: Expr | None) -> p.Physical:
    pairs = [(c, s) for c, s in zip(scan.made, scan.sources, strict=True) if c in needed]
    made, sources = tuple(c for c, _ in pairs), tuple(s for _, s in pairs)
    table: Any = scan.table
    if not _has_row_groups(type(scan.table)):
        return p.MemoryScan(table, made, sources)
    if predicate is None:
        return p.ParquetScan(table, made, sources)
    names = dict(zip(scan.made, scan.sources, strict=True))
    # A text whose values leave out others is planned anew
    selection, pruned = decided_over(lambda part: table.select_row_groups(part, names), predicate)
    return p.ParquetScan(table, made, sources, selection if pruned else None, pruned)


def _lower_common(node: rel.CommonScan, needed: Needed, to: Lowering) -> p.Physical:
    """Return one operator for all places that read a common query, under the ids that each has for its columns."""
    below = to.exact(node.common.plan, node.common.plan.columns)
    pairs = zip(node.made, node.sources, strict=True)
    items = tuple((c, ColumnRef(s)) for c, s in pairs if c in needed)
    return p.ComputeColumns(below, items, estimate=below.estimate) if items else below


@cache
def _has_row_groups(kind: type) -> bool:
    """Whether tables of this class are pruned; `isinstance` with a protocol looks up all its members each time."""
    return issubclass(kind, PrunedTable)


def _lower_filter(node: rel.Filter, needed: Needed, to: Lowering) -> p.Physical:
    wanted = needed | columns_of(node.predicate)
    if isinstance(node.input, rel.Scan):
        below = _lower_scan(node.input, wanted, node.predicate)
        below = replace(below, estimate=to.estimates.rows(node.input))
    elif isinstance(node.input, Window) and (most := most_rank(node.input, node.predicate)):
        below = lower_window(node.input, wanted, to, most)
        below = below.replaced(estimate=to.estimates.rows(node.input))
    else:
        below = to.lower(node.input, wanted)
    return p.FilterRows(below, node.predicate, kept(below.columns, needed))


def _lower_project(node: rel.Project, needed: Needed, to: Lowering) -> p.Physical:
    items = tuple(item for item in node.items if item[0] in needed)
    read = frozenset().union(*(columns_of(e) for _, e in items))
    below = to.lower(node.input, read)
    if all(is_passed(item) for item in items):
        return below
    return compute(below, items)


def _lower_unnest(node: rel.Unnest, needed: Needed, to: Lowering) -> p.Physical:
    computed = Computed()
    lists = tuple((made, computed.column(expr, "list")) for made, expr in node.items)
    own = frozenset(node.input.columns)
    read = (needed & own).union(*(columns_of(e) for _, e in node.items))
    wanted = (needed & own) | {column for _, column in lists}
    below = computed.above(to.lower(node.input, read), wanted)
    keep = tuple(c for c in below.columns if c in needed)
    return p.UnnestRows(below, lists, keep, node.ordinality, node.outer)


def _lower_distinct(node: rel.Distinct, needed: Needed, to: Lowering) -> p.Physical:
    if node.on is None:
        below = to.exact(node.input, node.columns)
        return p.HashAggregate(below, below.columns, ())
    computed = Computed()
    keys = tuple(dict.fromkeys(computed.column(e, "key") for e in node.on))
    read = needed.union(*(columns_of(e) for e in node.on))
    below = computed.above(to.lower(node.input, read), needed | frozenset(keys))
    return p.DistinctOn(below, keys)


def _ordered(
    node: rel.Sort, needed: Needed, to: Lowering
) -> tuple[p.Physical, tuple[p.Order, ...]]:
    """Return the input of a sort with its keys as columns; constants order nothing."""
    keys = [k for k in node.keys if not isinstance(k.expr, Literal)]
    computed = Computed()
    orders: dict[Column, p.Order] = {}
    for key in keys:
        column = computed.column(key.expr, "key")
        orders.setdefault(column, p.Order(column, key.descending, key.nulls_first))
    read = needed.union(*(columns_of(k) for k in keys))
    below = to.lower(node.input, read)
    return computed.above(below, needed | frozenset(orders)), tuple(orders.values())


def _lower_limit(node: rel.Limit, needed: Needed, to: Lowering) -> p.Physical:
    if node.per:
        return _lower_grouped_limit(node, needed, to)
    if isinstance(node.input, rel.Sort) and node.count is not None:
        below, orders = _ordered(node.input, needed, to)
        if orders:
            return p.TopK(below, orders, node.count, node.offset)
        return p.LimitRows(below, node.count, node.offset)
    return p.LimitRows(to.lower(node.input, needed), node.count, node.offset)


def _lower_grouped_limit(node: rel.Limit, needed: Needed, to: Lowering) -> p.Physical:
    computed = Computed()
    keys = tuple(dict.fromkeys(computed.column(e, "key") for e in node.per))
    read = needed.union(*(columns_of(e) for e in node.per))
    below = computed.above(to.lower(node.input, read), needed | frozenset(keys))
    return p.LimitRows(below, node.count, node.offset, keys)


def _lower_set_operation(node: rel.SetOperation, to: Lowering) -> p.Physical:
    if node.kind != "union":
        left, right = (
            to.exact(node.left, node.left.columns),
            to.exact(node.right, node.right.columns),
        )
        return p.HashSetOperation(left, right, node.kind, node.all, node.made)
    inputs = tuple(to.exact(branch, branch.columns) for branch in _branches(node))
    concatenated = p.ConcatRows(inputs, node.made)
    if node.all:
        return concatenated
    return p.HashAggregate(concatenated, node.made, ())


def _branches(node: rel.SetOperation) -> list[rel.Logical]:
    """Return the inputs of a tree of unions that one concatenation can hold.

    Below UNION every union is as good as UNION ALL; below UNION ALL only UNION ALL is.
    """
    found: list[rel.Logical] = []
    for side in (node.left, node.right):
        if (
            isinstance(side, rel.SetOperation)
            and side.kind == "union"
            and (side.all or not node.all)
        ):
            found += _branches(side)
        else:
            found.append(side)
    return found
