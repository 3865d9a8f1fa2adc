"""Joins of a table with itself: where both keys are one stored column, a row that looks for others is among those of its key."""

from __future__ import annotations

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
)
from .spine import spine

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
    probe, build = node.probe_side, node.build_side
    (probed,), (built,) = node.probe_keys, node.build_keys
    own, other = _stored(probe, probed, through_joins=True), _stored(build, built)
    if own is None or other is None or not _same(*own, *other):
        return None
    rows, looking, there = other[0].estimate, probe.estimate, build.estimate
    if rows is None or looking is None or there is None:
        return own[1]
    return own[1] if looking <= FEW_LOOK * rows or there >= MANY_ARE_IN * rows else None


def unreduced(join: HashJoin) -> HashJoin:
    """Return a join whose build side has the rows too that no probe finds."""
    whole = build = join.build_side
    while isinstance(whole, HashJoin) and whole.reduces:
        whole = whole.left
    return join if whole is build else join.with_build_side(whole)


def _stored(
    chain: Physical, column: Column, through_joins: bool = False
) -> tuple[Scan, Column] | None:
    """The scan whose rows a chain goes through, and which of its columns this one is."""
    for node in spine(chain):
        match node:
            case ParquetScan() | MemoryScan():
                return node, column
            case FilterRows():
                continue
            case ComputeColumns(items=items):
                made = dict(items)[column]
                if not isinstance(made, ColumnRef):
                    return None
                column = made.column
            case HashJoin() if through_joins:
                if column not in node.probe_side.columns:
                    equal = dict(zip(node.build_keys, node.probe_keys, strict=True))
                    if node.kind is not JoinKind.INNER or column not in equal:
                        return None
                    column = equal[column]
            case NestedLoopJoin(left=left) if through_joins and column in left.columns:
                continue
            case _:
                return None
    return None


def _same(scan: Scan, column: Column, other: Scan, its: Column) -> bool:
    """Whether columns of two scans are one, of the same rows."""
    if scan is other:
        return column == its
    table, its_table = (s.table.identity or id(s.table) for s in (scan, other))
    names = [dict(zip(s.made, s.sources, strict=True)) for s in (scan, other)]
    chosen, its_chosen = (
        s.selection if isinstance(s, ParquetScan) else None for s in (scan, other)
    )
    return table == its_table and names[0][column] == names[1][its] and chosen == its_chosen
