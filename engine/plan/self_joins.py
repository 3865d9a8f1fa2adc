"""Joins of a table with itself: where both keys are one stored column, a row that looks for others is among those of its key."""

from __future__ import annotations

from dataclasses import replace

from .expr import Column, ColumnRef
from .join_kinds import JoinKind
from .physical import (
    ComputeColumns,
    FilterRows,
    HashJoin,
    MemoryScan,
    NestedLoopJoin,
    ParquetScan,
    Physical,
    build_side,
    probe_side,
)

# Of a table's rows: so many look at most, or are looked for at least, where looking around each is no more work than an index, of
# which a few rows are soon made
FEW_LOOK = 1 / 2
MANY_ARE_IN = 1 / 4

Scan = ParquetScan | MemoryScan


def self_key(node: HashJoin) -> Column | None:
    """Return the column, as the scan of the probe side has it, that is the only key of a join of the rows of a table with
    themselves, of which its build side leaves out some by filters; None for other joins, and where few rows are looked for.
    """
    if len(node.left_keys) != 1 or node.null_aware:
        return None
    (left,), (right,) = node.left_keys, node.right_keys
    probe, build = probe_side(node), build_side(node)
    probed, built = (left, right) if probe is node.left else (right, left)
    own, other = _stored(probe, probed, through_joins=True), _stored(build, built)
    if own is None or other is None or not _same(*own, *other):
        return None
    rows, looking, there = other[0].estimate, probe.estimate, build.estimate
    if rows is None or looking is None or there is None:
        return own[1]
    return own[1] if looking <= FEW_LOOK * rows or there >= MANY_ARE_IN * rows else None


def unreduced(join: HashJoin) -> HashJoin:
    """Return a join whose build side has the rows too that no probe finds."""
    whole = build = build_side(join)
    while isinstance(whole, HashJoin) and whole.reduces:
        whole = whole.left
    if whole is build:
        return join
    return replace(join, left=whole) if build is join.left else replace(join, right=whole)


def _stored(
    node: Physical, column: Column, through_joins: bool = False
) -> tuple[Scan, Column] | None:
    """The scan whose rows a chain goes through, and which of its columns this one is."""
    match node:
        case ParquetScan() | MemoryScan():
            return node, column
        case FilterRows(input=below):
            return _stored(below, column, through_joins)
        case ComputeColumns(input=below, items=items):
            made = dict(items)[column]
            return (
                _stored(below, made.column, through_joins) if isinstance(made, ColumnRef) else None
            )
        case HashJoin() if through_joins:
            probe = probe_side(node)
            if column not in probe.columns:
                pairs = zip(node.left_keys, node.right_keys, strict=True)
                equal = {b: a for a, b in pairs} if probe is node.left else dict(pairs)
                if node.kind is not JoinKind.INNER or column not in equal:
                    return None
                column = equal[column]
            return _stored(probe, column, through_joins)
        case NestedLoopJoin(left=left) if through_joins and column in left.columns:
            return _stored(left, column, through_joins)
    return None


def _same(scan: Scan, column: Column, other: Scan, its: Column) -> bool:
    """Whether columns of two scans are one, of the same rows."""
    if scan is other:
        return column == its
    table, its_table = (getattr(s.table, "identity", None) or id(s.table) for s in (scan, other))
    names = [dict(zip(s.made, s.sources, strict=True)) for s in (scan, other)]
    chosen, its_chosen = (
        s.selection if isinstance(s, ParquetScan) else None for s in (scan, other)
    )
    return table == its_table and names[0][column] == names[1][its] and chosen == its_chosen
