"""Inputs of joins that leave memory while a query runs, and pipelines whose joins do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..errors import MemoryLimitError
from ..operators.context import Context
from ..operators.run_unfused import BackendTable
from ..operators.spill_area import SpillArea
from ..operators.spilling import Parting, SpilledSide, join_in_parts
from ..plan.node import walk
from ..plan.physical import Device, HashJoin, NestedLoopJoin, Physical, Pipeline, Stored
from .memory import MemoryBudget

NOT_FUSED = "the joins of its pipeline did not fit into memory"


@dataclass
class Held:
    """The tables that a query holds, and those that had to leave memory until the one join runs that reads them.

    `tables` and `sizes` are by the identity of nodes; so is `places`: the join that alone reads a node, and where, left 0 or right 1.
    """

    area: SpillArea
    backends: Mapping[Device, Parting[BackendTable]]
    context: Context
    budget: MemoryBudget
    places: Mapping[int, tuple[HashJoin, int]]
    tables: dict[int, BackendTable] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    spilled: dict[tuple[int, int], SpilledSide] = field(default_factory=dict)

    def add(self, node: Physical, table: BackendTable, size: int) -> None:
        """Hold a node's table.

        Beyond the memory limit tables that wait for a join leave memory; raises `MemoryLimitError` where that is not enough.
        """
        self.tables[id(node)], self.sizes[id(node)] = table, size
        del table
        try:
            self.budget.add(node, size)
        except MemoryLimitError:
            waiting = self.waiting(node.device)
            if self.budget.excess(node.device) > sum(self.sizes[child] for child in waiting):
                raise
        else:
            return
        for child in waiting:
            if self.budget.excess(node.device) > 0:
                self.spill([child])

    def drop(self, node: Physical) -> None:
        """Let go of a table that nobody reads any more."""
        if id(node) in self.tables:
            del self.tables[id(node)]
            self.budget.remove(node.device, self.sizes.pop(id(node)))

    def waiting(self, device: Device, read: Iterable[Physical] = ()) -> list[int]:
        """Return the tables on a device that wait for a join, oldest first, but none that is about to be `read`."""
        reading = set(map(id, read))
        return [
            child
            for child in self.tables
            if child in self.places and self.places[child][0].device == device
            if child not in reading
        ]

    def spill(self, waiting: Iterable[int]) -> None:
        """Let tables leave memory."""
        for child in waiting:
            join, place = self.places[child]
            self._write(join, place, self.tables[child])
            del self.tables[child]
            self.budget.remove(join.device, self.sizes.pop(child))

    def is_spilled(self, node: HashJoin) -> bool:
        """Whether an input of a join has left memory."""
        return any((id(node), place) in self.spilled for place in (0, 1))

    def join(self, node: HashJoin) -> BackendTable:
        """Return a join in parts."""
        for place, child in enumerate(node.children):
            if (id(node), place) in self.spilled:
                continue
            if id(child) in self.places:
                self.spill([id(child)])
            else:  # another node reads it too
                self._write(node, place, self.tables[id(child)])
        sides = self.spilled.pop((id(node), 0)), self.spilled.pop((id(node), 1))
        backend, room = self.backends[node.device], self.budget.room
        return join_in_parts(node, sides, self.context, backend, lambda: room(node.device))

    def _write(self, node: HashJoin, place: int, table: BackendTable) -> None:
        side = SpilledSide(node, place, self.area)
        for piece in self.backends[node.device].parted(table, side.keys, side.columns):
            self.context.check()
            side.add(piece)
        self.spilled[id(node), place] = side


def waiting_places(
    order: Iterable[Physical], readers: Mapping[int, int]
) -> dict[int, tuple[HashJoin, int]]:
    """Return the nodes, by identity, that nobody but one equality join reads, each with that join and its place there."""
    return {
        id(child): (node, place)
        for node in order
        if isinstance(node, HashJoin)
        for place, child in enumerate(node.children)
        if readers[id(child)] == 1
    }


def without_fused_joins(plan: Physical) -> Physical:
    """Return a plan in which pipelines with joins are operators; the plan itself if there is none."""
    known: dict[int, Physical] = {}

    def visit(node: Physical) -> Physical:
        if id(node) not in known:
            rebuilt = node.with_children([visit(child) for child in node.children])
            known[id(node)] = _apart(rebuilt) if isinstance(rebuilt, Pipeline) else rebuilt
        return known[id(node)]

    return visit(plan)


def _apart(pipeline: Pipeline) -> Physical:
    if not any(isinstance(part, HashJoin | NestedLoopJoin) for part in walk(pipeline.body)):
        return pipeline

    def visit(node: Physical) -> Physical:
        if isinstance(node, Stored):
            return pipeline.inputs[node.number]
        return node.with_children([visit(child) for child in node.children])

    return replace(visit(pipeline.body), not_fused=NOT_FUSED)
