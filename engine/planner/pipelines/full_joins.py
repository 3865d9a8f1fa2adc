"""Full joins in two halves, each of which a kernel can hold: the rows of one side with their matches, and those of the other without.

FULL(a, b)  ->  LEFT(a, b)  union all  (b ANTI a, with NULLs for the columns of a)
"""

from __future__ import annotations

from dataclasses import replace

from ...plan.expr import Column, ColumnRef, Literal, new_column
from ...plan.join_kinds import JoinKind
from ...plan.logical import Item
from ...plan.physical import ComputeColumns, HashJoin, Physical
from ...plan.types import Kind


def halves(node: Physical) -> tuple[Physical, Physical] | None:
    """Return the halves of a full join, or None for one whose keys kernels may not be able to hold."""
    if not isinstance(node, HashJoin) or node.kind is not JoinKind.FULL:
        return None
    if any(key.type.kind in (Kind.VARCHAR, Kind.INTERVAL) for key in node.left_keys):
        return None  # two joins by operators take longer than one
    kept = node.columns
    matched = replace(node, kind=JoinKind.LEFT, build="right", keep=kept)
    own = tuple(c for c in kept if c in node.right.columns)
    alone = HashJoin(
        node.right,
        node.left,
        JoinKind.ANTI,
        node.right_keys,
        node.left_keys,
        node.null_equal,
        node.residual,
        keep=own,
        device=node.device,
        reason=node.reason,
        estimate=node.right.estimate,
    )
    items = tuple(_item(column, column in own) for column in kept)
    unmatched = ComputeColumns(
        alone, items, device=node.device, reason=node.reason, estimate=alone.estimate
    )
    return matched, unmatched


def _item(column: Column, there: bool) -> Item:
    if there:
        return column, ColumnRef(column)
    return new_column(column.name, column.type), Literal(None, column.type)
