"""Joins: pairs of row numbers first, columns gathered last and only those that parents read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from ....errors import TWO_ROWS, ExecutionError
from ....plan import physical as p
from ....plan.arrow.arrow_arrays import from_numpy
from ....plan.expr import Column, Expr, columns_of
from ....plan.join_kinds import JoinKind
from ...context import Context
from .. import table as tables
from ..functions.expressions import selection
from ..memory.ask_memory import ask_index, ask_pairs
from ..memory.chunks import each_chunk
from ..table import Indices, Mask, Table, gather, validity
from .join_pairs import (
    Pairs,
    build_index,
    concat_pairs,
    cross_blocks,
    join_codes,
    match,
    members,
    unique_matches,
)
from .range_pairs import RangePairs, pairs_within_keys, range_pairs

JoinNode = p.HashJoin | p.NestedLoopJoin


def hash_join(node: p.HashJoin, inputs: tuple[Table, ...], context: Context) -> Table:
    left, right = inputs
    left_keys = [left[c] for c in node.left_keys]
    right_keys = [right[c] for c in node.right_keys]
    if node.build == "left":
        left_codes, right_codes = join_codes(left_keys, right_keys, node.null_equal)
    else:
        right_codes, left_codes = join_codes(right_keys, left_keys, node.null_equal)
    context.check()
    if node.kind.is_membership and node.residual is None:
        matched = members(left_codes, right_codes, context)
        unknown = _unknown(left_keys[0], right_keys[0], matched) if node.null_aware else None
        return _marked(node, left, matched, unknown)
    build, probe = left_codes, right_codes
    if node.build == "right":
        build, probe = probe, build
    ask_index(node, build.rows, probe.rows, build.size, context)
    index = build_index(build)
    context.check()
    if node.residual is not None:
        found = match(index, probe, context)
        sides = (left, right) if node.build == "left" else (right, left)
        ranges = pairs_within_keys(node, found, *sides, context)
        if ranges is not None:
            return _join_blocks(
                node, left, right, _of_ranges(ranges, left, right, context), context
            )
        blocks = found.blocks()
        oriented = blocks if node.build == "left" else map(_swapped, blocks)
        kept = _satisfying(node.residual, left, right, oriented, context)
        return _join_blocks(node, left, right, kept, context)
    if index.unique and node.build == "right" and node.kind in (JoinKind.LEFT, JoinKind.SINGLE):
        return _joined(node, left, right, None, unique_matches(index, probe, context))
    found = match(index, probe, context)
    ask_pairs(node, left, right, found.count, context)
    pairs = found.pairs()
    return _finished(node, left, right, pairs if node.build == "left" else _swapped(pairs))


def nested_loop_join(node: p.NestedLoopJoin, inputs: tuple[Table, ...], context: Context) -> Table:
    left, right = inputs
    if node.condition is not None:
        ranges = range_pairs(node, left, right, context)
        if ranges is None:
            blocks = cross_blocks(left.num_rows, right.num_rows, context.check)
            kept = _satisfying(node.condition, left, right, blocks, context)
        else:
            kept = _of_ranges(ranges, left, right, context)
        return _join_blocks(node, left, right, kept, context)
    if node.kind.is_membership:
        return _marked(node, left, np.full(left.num_rows, right.num_rows > 0), None)
    if right.num_rows == 1 and left.num_rows:  # without left rows the right one may stay alone
        return _joined(node, left, right, None, np.zeros(left.num_rows, np.int64))
    ask_pairs(node, left, right, left.num_rows * right.num_rows, context)
    blocks = cross_blocks(left.num_rows, right.num_rows, context.check)
    return _finished(node, left, right, concat_pairs(list(blocks)))


def _of_ranges(ranges: RangePairs, left: Table, right: Table, context: Context) -> Iterator[Pairs]:
    """Yield the candidates of ranges for which what is to be tested of them is TRUE."""
    if ranges.rest is None:
        return ranges.blocks()
    return _satisfying(ranges.rest, left, right, ranges.blocks(), context)


def _satisfying(
    condition: Expr, left: Table, right: Table, blocks: Iterable[Pairs], context: Context
) -> Iterator[Pairs]:
    """Yield the pairs, as (left rows, right rows), for which the condition is TRUE."""
    needed = columns_of(condition)
    left_columns = [c for c in needed if c.id in left.arrays]
    right_columns = [c for c in needed if c.id in right.arrays]
    for left_rows, right_rows in blocks:
        context.check()
        arrays = {
            **tables.take(left, left_rows, left_columns).arrays,
            **tables.take(right, right_rows, right_columns).arrays,
        }
        chosen = selection(condition, Table(arrays, len(left_rows)), context.threads)
        yield left_rows[chosen], right_rows[chosen]


def _join_blocks(
    node: JoinNode, left: Table, right: Table, blocks: Iterator[Pairs], context: Context
) -> Table:
    """Join on pairs that are known one block at a time."""
    if not node.kind.is_membership:
        known: list[Pairs] = []
        count = 0
        for block in blocks:
            known.append(block)
            count += len(block[0])
            ask_pairs(node, left, right, 2 * count, context)  # they come together at the end
        return _finished(node, left, right, concat_pairs(known))
    matched = np.zeros(left.num_rows, bool)
    for left_rows, _ in blocks:
        matched[left_rows] = True
    return _marked(node, left, matched, None)


def _finished(node: JoinNode, left: Table, right: Table, pairs: Pairs) -> Table:
    """Add to the matching pairs the rows that an outer join keeps without a match."""
    left_rows, right_rows = pairs
    if node.kind is JoinKind.SINGLE:
        matches = np.bincount(left_rows, minlength=1)
        if int(matches.max()) > 1:
            raise ExecutionError(TWO_ROWS, node.span)
    lonely_left = lonely_right = np.zeros(0, np.int64)
    if node.kind.nulls_right:
        lonely_left = _absent(left_rows, left.num_rows)
    if node.kind.keeps_right:
        lonely_right = _absent(right_rows, right.num_rows)
    if len(lonely_left) or len(lonely_right):
        left_rows = np.concatenate([left_rows, lonely_left, np.full(len(lonely_right), -1)])
        right_rows = np.concatenate([right_rows, np.full(len(lonely_left), -1), lonely_right])
    return _joined(node, left, right, left_rows, right_rows)


def _joined(
    node: JoinNode, left: Table, right: Table, left_rows: Indices | None, right_rows: Indices
) -> Table:
    """Gather the columns that the node passes on; `left_rows` None means all left rows in order."""
    from_left = [c for c in node.columns if c.id in left.arrays]
    from_right = [c for c in node.columns if c.id not in left.arrays]
    arrays = dict(_gathered(left, left_rows, from_left).arrays)
    arrays.update(_gathered(right, right_rows, from_right).arrays)
    return Table(arrays, len(right_rows))


def _gathered(table: Table, rows: Indices | None, columns: list[Column]) -> Table:
    """Rows of one side; when each matches exactly once, in order, its columns are passed on as they are."""
    if rows is None or _is_all(rows, table.num_rows):
        return Table({c.id: table[c] for c in columns}, table.num_rows)
    return gather(table, rows, columns)


def _is_all(rows: Indices, count: int) -> bool:
    if len(rows) != count or (count and (rows[0] != 0 or rows[-1] != count - 1)):
        return False

    def chunk(start: int, stop: int) -> bool:
        return bool((rows[start:stop] == np.arange(start, stop)).all())

    return all(each_chunk(chunk, count))


def _marked(node: JoinNode, left: Table, matched: Mask, unknown: Mask | None) -> Table:
    """Filter the left rows by whether they matched (semi, anti) or add that as a column (mark)."""
    if node.kind is JoinKind.MARK:
        assert node.mark is not None
        known = None if unknown is None else ~unknown
        marks = {node.mark.id: from_numpy(matched, known, pa.bool_())}
        table = Table({**left.arrays, **marks}, left.num_rows)
        return Table({c.id: table[c] for c in node.columns}, left.num_rows)
    if node.kind is JoinKind.ANTI:
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
