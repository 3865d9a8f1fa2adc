"""The operators that rows go through one by one, from a root down to the leaf that they come from; a build side hangs beside its join.

The spine of a tree is a pipeline's main loop.  Who asks what a body goes through, reads, or probes, asks here.
"""

from __future__ import annotations

from collections.abc import Iterator

from .physical import (
    ComputeColumns,
    FilterRows,
    HashAggregate,
    HashJoin,
    NestedLoopJoin,
    Physical,
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
