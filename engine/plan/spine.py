"""The operators that rows go through one by one, from a root down to the leaf that they come from; a build side hangs beside its join.

The spine of a tree is a pipeline's main loop.  Who asks what a body goes through, reads, or probes, asks here; or where a join is one of
a table with itself by a stored column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .expr import Column, ColumnRef, Expr, columns_of
from .join_kinds import JoinKind
from .physical import (
    ComputeColumns,
    DistinctOn,
    FilterRows,
    HashAggregate,
    HashJoin,
    MemoryScan,
    NestedLoopJoin,
    ParquetScan,
    Physical,
    SortRows,
    TopK,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def probed(node: Physical) -> int | None:
    """Return which child the rows come from that go through a node one by one, or None for a leaf or another node."""
    match node:
        case FilterRows() | ComputeColumns() | HashAggregate():
            return 0
        case HashJoin(kind=kind) if kind.is_divisible:
            return int(node.probes_right)
        case NestedLoopJoin(kind=kind) if kind.is_divisible:
            return 0
    return None


def spine(node: Physical) -> Iterator[Physical]:
    """Yield the nodes that a row goes through, the last one first; a join that keeps rows of both sides ends them, as a leaf does."""
    yield node
    while (place := probed(node)) is not None:
        node = node.children[place]
        yield node


def leaf_of(body: Physical) -> Physical:
    """Return the node whose rows go through a body: a leaf, unless a join keeps rows of both sides."""
    while (place := probed(body)) is not None:
        body = body.children[place]
    return body


def is_selection(body: Physical) -> bool:
    """Whether rows come out as they lie in a scan, less those that filters drop."""
    while isinstance(body, FilterRows):
        body = body.input
    return isinstance(body, ParquetScan | MemoryScan)


def columns_read(node: Physical) -> frozenset[Column]:
    """Return the columns of its inputs that an operator reads itself, besides those that it passes on."""
    read: tuple[Column, ...] = ()
    exprs: tuple[Expr | None, ...] = ()
    match node:
        case FilterRows(predicate=predicate):
            exprs = (predicate,)
        case ComputeColumns(items=items):
            exprs = tuple(expr for _, expr in items)
        case HashJoin():
            read, exprs = (*node.left_keys, *node.right_keys), (node.residual,)
        case NestedLoopJoin(condition=condition):
            exprs = (condition,)
        case HashAggregate(keys=keys, aggregates=aggregates):
            read, exprs = keys, tuple(call for _, call in aggregates)
        case DistinctOn(keys=keys):
            read = keys
        case SortRows(keys=orders) | TopK(keys=orders):
            read = tuple(order.column for order in orders)
    return frozenset(read).union(*(columns_of(expr) for expr in exprs if expr is not None))


def equal_keys(join: HashJoin) -> dict[Column, Column]:
    """Keys of the build side that need not be read, since those of the probe side are the same, by these.

    Equal doubles may differ: 0.0 and -0.0.
    """
    if join.kind is not JoinKind.INNER:
        return {}
    pairs = zip(join.build_keys, join.probe_keys, strict=True)
    return {built: probed for built, probed in pairs if not built.type.is_float}


def payload(join: HashJoin, wanted: frozenset[Column]) -> frozenset[Column]:
    """Return the columns of the build side that are read at the rows found; `wanted`: those of the join that are read."""
    read = wanted if join.residual is None else wanted | columns_of(join.residual)
    return (read & set(join.build_side.columns)) - set(equal_keys(join))


def reads_build(join: HashJoin, wanted: frozenset[Column] | None = None) -> bool:
    """Whether rows of the build side are looked at, so that an index is of rows; else a set of keys is enough.

    `wanted` are the columns of the join that are read, by default all.
    """
    read = frozenset(join.columns) if wanted is None else wanted
    return join.residual is not None or bool(payload(join, read))


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
