"""The last steps of a cluster's plan, which the client runs where few rows come to them.

An aggregate of few groups, and the first rows of an order, end with a gather: the first worker would wait for the others, to send on what
the client can as well make of what each of them answers.
"""

from __future__ import annotations

from collections.abc import Callable

from ..plan.exchange import Exchange
from ..plan.partial import FinishAverages
from ..plan.physical import (
    ComputeColumns,
    FilterRows,
    HashAggregate,
    LimitRows,
    Physical,
    SortRows,
    Stored,
    TopK,
)

FEW_ROWS = (
    1 << 13
)  # that a worker answers, so that the client takes all of them in as fast as the first worker would
STEPS = (ComputeColumns, FilterRows, FinishAverages, HashAggregate, LimitRows, SortRows, TopK)


def last_gather(plan: Physical) -> Exchange | None:
    """Return the gather above which all steps are the client's, which has none where that is the plan itself; None where there is none."""
    node = plan
    while isinstance(node, STEPS):
        (node,) = node.children
    if not isinstance(node, Exchange) or node.kind != "gather" or not node.columns:
        return None
    return node if node is plan or _most_rows(node.input) <= FEW_ROWS else None


def above(plan: Physical, gather: Exchange, change: Callable[[Exchange], Physical]) -> Physical:
    """Return the steps of a plan above its last gather, over what that changes to."""
    if plan is gather:
        return change(gather)
    (below,) = plan.children
    return plan.with_children((above(below, gather, change),)).replaced(device="cpu", reason=None)


def steps_of_client(plan: Physical, gather: Exchange) -> Physical | None:
    """Return these steps over rows that are there, None where there are none."""
    if plan is gather:
        return None
    return above(plan, gather, lambda node: Stored(0, node.columns, device="cpu"))


def _most_rows(node: Physical) -> float:
    """How many groups, or first rows of an order, a worker is expected to have at most; no end of other rows."""
    match node:
        case HashAggregate(keys=()):
            return 1
        case HashAggregate(estimate=float(groups)):
            return groups
        case TopK(count=int(count), offset=offset) | LimitRows(count=int(count), offset=offset):
            return count + offset
        case ComputeColumns():
            return _most_rows(node.input)
    return float("inf")
