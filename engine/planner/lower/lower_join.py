"""Joins: equalities become hash keys, the rest a residual, and the smaller side is hashed."""

from __future__ import annotations

from ...plan.expr import Call, Column, Expr, columns_of, conjunction, conjuncts
from ...plan.logical import Join, Logical
from ...plan.physical import HashJoin, NestedLoopJoin, Physical
from ..expressions.equalities import as_equality
from .lowering import Computed, Lowering, Needed, kept


def lower_join(node: Join, needed: Needed, to: Lowering) -> Physical:
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
    return HashJoin(
        left,
        right,
        node.kind,
        left_keys,
        right_keys,
        tuple(null_equal for _, _, null_equal in pairs),
        residual,
        "left" if _left_is_smaller(node, to) else "right",
        node.null_aware,
        node.mark,
        kept(_joined(left, right, node), needed),
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
    node: Logical, keys: list[Expr], needed: Needed, to: Lowering
) -> tuple[Physical, tuple[Column, ...]]:
    """Return one input with its keys as columns."""
    computed = Computed()
    columns = tuple(computed.column(key, "key") for key in keys)
    own = frozenset(node.columns)
    wanted = (needed & own) | frozenset(c for c in columns if c in own)
    read = wanted.union(*(columns_of(key) for key in keys))
    return computed.above(to.lower(node, read), wanted), columns


def _left_is_smaller(node: Join, to: Lowering) -> bool:
    return to.estimates.rows(node.left) < to.estimates.rows(node.right)


def _nested_loop(node: Join, needed: Needed, to: Lowering) -> Physical:
    read = needed | (columns_of(node.condition) if node.condition is not None else frozenset())
    left = to.lower(node.left, read & frozenset(node.left.columns))
    right = to.lower(node.right, read & frozenset(node.right.columns))
    joined = _joined(left, right, node)
    parts = list(conjuncts(node.condition))
    condition = conjunction(parts) if parts else None
    keep = kept(joined, needed)
    return NestedLoopJoin(left, right, node.kind, condition, node.mark, keep, span=node.span)


def _joined(left: Physical, right: Physical, node: Join) -> tuple[Column, ...]:
    if node.kind.is_filter:
        return left.columns
    if node.mark is not None:
        return (*left.columns, node.mark)
    return left.columns + right.columns
