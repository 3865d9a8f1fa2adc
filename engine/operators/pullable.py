"""Which limits may pull their rows from what is below them, in pieces, instead of waiting until it is complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..plan import physical as p
from ..plan.spine import probed
from .run_unfused import opened

FEW_ROWS = 1 << 17  # of a source or a join, which are made at once


def pulled_below(node: p.Physical, readers: Mapping[int, int]) -> p.Pipeline | None:
    """Return the plan of a limit whose rows may come in pieces, with the nodes that are to be complete before as inputs.

    `readers` counts by identity who reads a node.  None where nothing would be saved: the rows come from what has to be complete.
    """
    if not isinstance(node, p.LimitRows) or node.keys or node.count is None:
        return None
    found = _Below(readers)
    body = node.with_children([found.visit(node.input, exclusive=True)])
    return p.Pipeline(body, tuple(found.complete), device=node.device) if found.saves else None


@dataclass
class _Below:
    """One look at what is below a limit; `saves`: among what can be pulled is a source or a join of more than a few rows."""

    readers: Mapping[int, int]
    complete: list[p.Physical] = field(default_factory=list)
    saves: bool = False

    def visit(self, node: p.Physical, exclusive: bool) -> p.Physical:
        """Return a node with what can be pulled below it; all else becomes an input."""
        if exclusive and self.readers.get(id(node), 1) > 1:
            return self._completed(node)
        self.saves = self.saves or _is_large(node)
        match node:
            case p.RangeScan() | p.ParquetScan() | p.MemoryScan() | p.ValuesScan():
                return node
            case p.ConcatRows() | p.LimitRows(count=int(), keys=()):
                return node.with_children([self.visit(c, exclusive) for c in node.children])
            case p.Pipeline(body=body) if p.aggregate_of(body) is None:
                return self.visit(opened(node), exclusive)
            case p.HashAggregate():
                return self._completed(node)
        place = probed(node)
        if place is None:
            return self._completed(node)
        children = enumerate(node.children)
        return node.with_children(
            [self.visit(c, exclusive) if i == place else self._completed(c) for i, c in children]
        )

    def _completed(self, node: p.Physical) -> p.Physical:
        if not any(node is known for known in self.complete):
            self.complete.append(node)
        return node


def _is_large(node: p.Physical) -> bool:
    match node:
        case p.RangeScan(start=start, stop=stop, step=step):
            return len(range(start, stop, step)) > FEW_ROWS
        case p.ParquetScan(table=table):
            return (table.statistics().rows or 0) > FEW_ROWS
        case p.HashJoin(estimate=rows) | p.NestedLoopJoin(estimate=rows):
            return rows is None or rows > FEW_ROWS
    return False
