"""Joins: pairs of row numbers first, columns gathered last and only those that parents read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from ...errors import ExecutionError
from ...plan import physical as p
from ...plan.expr import Expr, columns_of
from ..context import Context
from . import table as tables
from .expressions import selection
from .join_pairs import (
    Pairs,
    all_pairs,
    build_index,
    concat_pairs,
    cross_blocks,
    members,
    pair_blocks,
    unique_matches,
)
from .keys import Ints, join_codes
from .table import Indices, Mask, Table, from_numpy, gather, validity

JoinNode = p.HashJoin | p.NestedLoopJoin


def hash_join(node: p.HashJoin, inputs: tuple[Table, ...], context: Context) -> Table:
    left, right = inputs
    left_keys = [left[c] for c in node.left_keys]
    right_keys = [right[c] for c in node.right_keys]
    if node.build == "left":
        left_codes, right_codes, size = join_codes(left_keys, right_keys, node.null_equal)
    else:
        right_codes, left_codes, size = join_codes(right_keys, left_keys, node.null_equal)
    context.check()
    if node.residual is not None:
        blocks = _code_blocks(node, left_codes, right_codes, size, context)
        blocks = _satisfying(node.residual, left, right, blocks)
        return _join_blocks(node, left, right, blocks)
    if node.kind in ("semi", "anti", "mark"):
        matched = members(left_codes, right_codes, size)
        unknown = _unknown(left_keys[0], right_keys[0], matched) if node.null_aware else None
        return _marked(node, left, matched, unknown)
    if node.kind in ("left", "single") and node.build == "right":
        index = build_index(right_codes, size)
        if index.row is not None:
            return _joined(node, left, right, None, unique_matches(index, left_codes))
        pairs = _swapped(all_pairs(index, left_codes, context.check))
    elif node.build == "right":
        pairs = _swapped(all_pairs(build_index(right_codes, size), left_codes, context.check))
    else:
        pairs = all_pairs(build_index(left_codes, size), right_codes, context.check)
    return _finished(node, left, right, pairs)


def nested_loop_join(
    node: p.NestedLoopJoin, inputs: tuple[Table, ...], context: Context
) -> Table:
    left, right = inputs
    if node.condition is not None:
        blocks = cross_blocks(left.num_rows, right.num_rows, context.check)
        blocks = _satisfying(node.condition, left, right, blocks)
        return _join_blocks(node, left, right, blocks)
    if node.kind in ("semi", "anti", "mark"):
        return _marked(node, left, np.full(left.num_rows, right.num_rows > 0), None)
    if right.num_rows == 1:
        return _joined(node, left, right, None, np.zeros(left.num_rows, np.int64))
    blocks = cross_blocks(left.num_rows, right.num_rows, context.check)
    return _finished(node, left, right, concat_pairs(list(blocks)))


def _code_blocks(
    node: p.HashJoin, left_codes: Ints, right_codes: Ints, size: int, context: Context
) -> Iterator[Pairs]:
    """Yield candidate pairs as (left rows, right rows)."""
    if node.build == "left":
        yield from pair_blocks(build_index(left_codes, size), right_codes, context.check)
    else:
        for block in pair_blocks(build_index(right_codes, size), left_codes, context.check):
            yield _swapped(block)


def _satisfying(
    condition: Expr, left: Table, right: Table, blocks: Iterable[Pairs]
) -> Iterator[Pairs]:
    """Yield the pairs for which the condition is TRUE."""
    needed = columns_of(condition)
    left_columns = [c for c in needed if c.id in left.arrays]
    right_columns = [c for c in needed if c.id in right.arrays]
    for left_rows, right_rows in blocks:
        arrays = {
            **tables.take(left, left_rows, left_columns).arrays,
            **tables.take(right, right_rows, right_columns).arrays,
        }
        chosen = selection(condition, Table(arrays, len(left_rows)))
        yield left_rows[chosen], right_rows[chosen]


def _join_blocks(node: JoinNode, left: Table, right: Table, blocks: Iterator[Pairs]) -> Table:
    """Join on pairs that are known one block at a time."""
    if node.kind not in ("semi", "anti", "mark"):
        return _finished(node, left, right, concat_pairs(list(blocks)))
    matched = np.zeros(left.num_rows, bool)
    for left_rows, _ in blocks:
        matched[left_rows] = True
    return _marked(node, left, matched, None)


def _finished(node: JoinNode, left: Table, right: Table, pairs: Pairs) -> Table:
    """Add to the matching pairs the rows that an outer join keeps without a match."""
    left_rows, right_rows = pairs
    if node.kind == "single":
        matches = np.bincount(left_rows, minlength=1)
        if int(matches.max()) > 1:
            raise ExecutionError(_TWO_ROWS)
    lonely_left = lonely_right = np.zeros(0, np.int64)
    if node.kind in ("left", "full", "single"):
        lonely_left = _absent(left_rows, left.num_rows)
    if node.kind in ("right", "full"):
        lonely_right = _absent(right_rows, right.num_rows)
    if len(lonely_left) or len(lonely_right):
        left_rows = np.concatenate([left_rows, lonely_left, np.full(len(lonely_right), -1)])
        right_rows = np.concatenate([right_rows, np.full(len(lonely_left), -1), lonely_right])
    return _joined(node, left, right, left_rows, right_rows)


_TWO_ROWS = (
    "More than one row returned by a subquery used as an expression: "
    "add LIMIT 1 or an aggregate, so that it returns a single row."
)


def _joined(
    node: JoinNode, left: Table, right: Table, left_rows: Indices | None, right_rows: Indices
) -> Table:
    """Gather the columns that the node passes on; `left_rows` None means all left rows in order."""
    from_left = [c for c in node.columns if c.id in left.arrays]
    from_right = [c for c in node.columns if c.id not in left.arrays]
    if left_rows is None:
        arrays = {c.id: left[c] for c in from_left}
    else:
        arrays = dict(gather(left, left_rows, from_left).arrays)
    arrays.update(gather(right, right_rows, from_right).arrays)
    return Table(arrays, len(right_rows))


def _marked(node: JoinNode, left: Table, matched: Mask, unknown: Mask | None) -> Table:
    """Filter the left rows by whether they matched (semi, anti) or add that as a column (mark)."""
    if node.kind == "mark":
        assert node.mark is not None
        known = None if unknown is None else ~unknown
        marks = {node.mark.id: from_numpy(matched, known, pa.bool_())}
        table = Table({**left.arrays, **marks}, left.num_rows)
        return Table({c.id: table[c] for c in node.columns}, left.num_rows)
    if node.kind == "anti":
        matched = ~matched if unknown is None else ~(matched | unknown)
    return tables.filter(left, matched, node.columns)




def _unknown(left_key: pa.Array, right_key: pa.Array, matched: Mask) -> Mask:
    """Return where `left NOT IN right` is NULL: no match, and a NULL on either side of a comparison."""
    if not len(right_key):
        return np.zeros(len(matched), bool)
    valid = validity(right_key)
    if valid is not None and not valid.all():
        return ~matched
    valid = validity(left_key)
    return np.zeros(len(matched), bool) if valid is None else ~valid


def _absent(rows: Indices, count: int) -> Indices:
    seen = np.zeros(count, bool)
    seen[rows] = True
    return np.flatnonzero(~seen)


def _swapped(pairs: Pairs) -> Pairs:
    return pairs[1], pairs[0]
