"""Steps of a cluster's plan that all workers do, so that rows go to all of them once, and early."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..plan.exchange import Exchange
from ..plan.expr import ColumnRef
from ..plan.partitioning import REPLICATED
from ..plan.physical import ComputeColumns, Physical

ToAll = Callable[[Physical], Exchange]


def made_on_all(node: Physical, few: Collection[int], to_all: ToAll) -> Physical | None:
    """Steps(Gather(few rows), replicated ...) -> Steps(Broadcast(few rows), replicated ...).

    The first worker has not to send all what it makes of them, which would be a second meeting.  `few` are such gathers, by identity;
    None where steps are over other rows.
    """
    if id(node) in few:
        return to_all(node.children[0])
    if isinstance(node, Exchange) or not node.children:
        return None
    made: list[Physical] = []
    for child in node.children:
        is_there = child.partitioning is not None and child.partitioning.is_replicated
        below = child if is_there else made_on_all(child, few, to_all)
        if below is None:
            return None
        made.append(below)
    return node.with_children(made).replaced(partitioning=REPLICATED)


def below_renames(node: Physical, to_all: ToAll) -> Physical:
    """Broadcast(Rename(x)) -> Rename(Broadcast(x)): x may go to all for another reader, too, and goes once then."""
    if isinstance(node, ComputeColumns):
        renamed = [e.column for _, e in node.items if isinstance(e, ColumnRef)]
        if len(renamed) == len(node.items) and {*renamed} == {*node.input.columns}:
            below = below_renames(node.input, to_all)
            return node.with_children((below,)).replaced(partitioning=REPLICATED)
    return to_all(node)
