"""Chains of row-wise operators from a scan to an aggregate become pipelines, which one kernel runs each.

Whether a kernel can really hold a chain depends on the columns' statistics and is settled when it runs; here stay out those chains
that no kernel holds.
"""

from __future__ import annotations

from ..plan.physical import (
    ComputeColumns,
    FilterRows,
    HashAggregate,
    MemoryScan,
    ParquetScan,
    Physical,
    Pipeline,
)
from ..settings import FuseChoice

# Rows below which the CPU's operators finish before a kernel has been looked up; compiling one takes half a second.
# On the GPU each of them costs more than a launch, however few the rows are.
SMALL_INPUT = 100_000


def fuse(plan: Physical, choice: FuseChoice) -> Physical:
    """HashAggregate(FilterRows | ComputeColumns ... (scan)), FilterRows ... (scan) -> Pipeline of the same.

    As in HyPer (Neumann 2011), data flows from the scan to the sink without being stored.  An operator reached over two
    paths stays one object and is not fused, since its rows are needed as rows.
    """
    if choice == "never":
        return plan
    readers = _count_readers(plan)
    rebuilt: dict[int, Physical] = {}

    def visit(node: Physical) -> Physical:
        if id(node) not in rebuilt:
            if _is_sink(node, readers, choice):
                done: Physical = Pipeline(
                    node, device=node.device, reason=node.reason, estimate=node.estimate
                )
            else:
                done = node.with_children([visit(child) for child in node.children])
            rebuilt[id(node)] = done
        return rebuilt[id(node)]

    return visit(plan)


def _is_sink(node: Physical, readers: dict[int, int], choice: FuseChoice) -> bool:
    """Whether a kernel may end here: in an aggregate, or on the CPU in the rows that filters above a scan select."""
    if isinstance(node, HashAggregate):
        return _is_chain(node.input, readers, choice)
    if not isinstance(node, FilterRows) or node.device != "cpu":
        return False
    below: Physical = node
    while isinstance(below, FilterRows):
        below = below.input
    return isinstance(below, ParquetScan | MemoryScan) and _is_chain(node.input, readers, choice)


def _is_chain(node: Physical, readers: dict[int, int], choice: FuseChoice) -> bool:
    """Whether only filters and projections lie between here and a scan that is worth a kernel."""
    while isinstance(node, FilterRows | ComputeColumns):
        if readers[id(node)] > 1:
            return False
        node = node.input
    if not isinstance(node, ParquetScan | MemoryScan):
        return False
    if choice == "always" or node.device == "gpu":
        return True
    return (node.table.statistics().rows or 0) >= SMALL_INPUT


def _count_readers(plan: Physical) -> dict[int, int]:
    readers: dict[int, int] = {}
    seen: set[int] = set()
    stack = [plan]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            for child in node.children:
                readers[id(child)] = readers.get(id(child), 0) + 1
                stack.append(child)
    return readers
