"""The operators that rows go through one by one, from a root down to the leaf that they come from; a build side hangs beside its join.

The spine of a tree is a pipeline's main loop.  Who asks what a body goes through, reads, or probes, asks here.
"""

from __future__ import annotations

from collections.abc import Iterator

from .expr import Column, Expr, columns_of
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
