"""How much a query may hold, what spills where that is not enough, and the error when it needs more."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from ..errors import MemoryLimitError
from ..operators.host_memory import available_memory, host_memory, readable
from ..operators.join_in_parts import join_tables, side_of
from ..operators.run_unfused import opened
from ..operators.spilling import Spool, Workspace
from ..plan.physical import Device, HashJoin, Physical, Pipeline
from ..records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..operators.run_unfused import BackendTable

__all__ = ["MemoryBudget", "ask_for_answer", "host_memory", "out_of_memory", "readable"]


LITTLE = 1 << 16  # bytes that no host lacks, for which nobody is asked without a limit
LARGE = 1 << 28  # bytes that are asked for without a limit, from which the host is asked too


class MemoryBudget:
    """The bytes of intermediate tables that a query holds on each device; `limit` None counts without a limit."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.taken: dict[Device, int] = {"cpu": 0, "gpu": 0}

    def add(self, node: Physical, nbytes: int) -> None:
        """Count the output of a node; raises `MemoryLimitError` when that is more than the limit."""
        device = node.device
        self.taken[device] = held = self.taken[device] + nbytes
        if self.limit is not None and held > self.limit:
            raise MemoryLimitError(
                f"{type(node).__name__} made {readable(nbytes)} on the {device}, so that the query holds "
                f"{readable(held)}: more than memory_limit = {readable(self.limit)}. Raise it with SET memory_limit."
            )

    def remove(self, device: Device, nbytes: int) -> None:
        self.taken[device] -= nbytes

    def hold(self, node: Physical, nbytes: int) -> None:
        """Count bytes that a node takes while it runs, or with a negative number lets go of."""
        if nbytes < 0:
            self.remove(node.device, -nbytes)
        else:
            self.add(node, nbytes)

    def ask(self, node: Physical, nbytes: int) -> None:
        """Raise `MemoryError` when a node must not take so many bytes; without a limit, when the host has not so many."""
        if self.limit is not None or nbytes >= LITTLE:
            self.ask_on(node.device, nbytes)

    def ask_on(self, device: Device, nbytes: int) -> None:
        """Do so for bytes of a device."""
        if self.limit is None and device == "gpu":
            return
        left = (host_memory() if self.limit is None else self.limit) - self.held(device)
        if self.limit is None and nbytes >= LARGE:
            left = min(left, available_memory())
        if nbytes > left:
            raise MemoryError(f"it asked for {readable(nbytes)}, {readable(max(left, 0))} are left")

    def room(self, device: Device) -> int | None:
        """Return how many bytes more may be held, None where there is no limit."""
        return None if self.limit is None else max(0, self.limit - self.held(device))

    def excess(self, device: Device) -> int:
        """Return how many bytes are held beyond the limit."""
        return 0 if self.limit is None else self.held(device) - self.limit

    def held(self, device: Device) -> int:
        return self.taken[device]


def ask_for_answer(budget: MemoryBudget, nbytes: int) -> None:
    """Ask the host for an answer as Arrow has it; raises `MemoryLimitError`."""
    try:
        budget.ask_on("cpu", nbytes)
    except MemoryError as error:
        limit = "" if budget.limit is None else f" (memory_limit is {readable(budget.limit)})"
        raised = "" if budget.limit is None else " Raise it with SET memory_limit."
        refused = MemoryLimitError(
            f"The host has no room for the answer as an Arrow table: {error}{limit}.{raised}"
        )
        refused.advise_parts()
        raise refused from error


def out_of_memory(node: Physical, budget: MemoryBudget, error: MemoryError) -> MemoryLimitError:
    """Return the error for a device that has no more memory: what ran, what the query held, and what to do."""
    place = "GPU" if node.device == "gpu" else "host"
    detail = str(error).strip().split("\n")[0].rstrip(".")
    remedy = "lower column_cache_limit, select fewer columns or rows" + (
        ", or run the query with device = 'cpu'" if node.device == "gpu" else ""
    )
    if budget.limit is not None:
        remedy += "; or raise it with SET memory_limit"
    limit = "" if budget.limit is None else f" (memory_limit is {readable(budget.limit)})"
    return MemoryLimitError(
        f"{type(node).__name__} ran out of {place} memory while the query held "
        f"{readable(budget.held(node.device))}{limit}{': ' + detail if detail else ''}. To need less, {remedy}."
    )


NOT_FUSED = "the joins of its pipeline did not fit into memory"


@dataclass
class Held:
    """The tables that a query holds, and those that had to leave memory until the one join runs that reads them.

    `tables` and `sizes` are by the identity of nodes; so is `paths`: the join that alone reads a node, and where, left 0 or right 1.
    """

    workspace: Workspace[BackendTable]
    budget: MemoryBudget
    places: Mapping[int, tuple[HashJoin, int]]
    tables: dict[int, BackendTable] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    spilled: dict[tuple[int, int], Spool[BackendTable]] = field(default_factory=dict)

    def add(
        self,
        node: Physical,
        key: int,
        table: BackendTable,
        size: int,
        done_with: Iterable[tuple[int, Device]] = (),
    ) -> None:
        """Hold a node's table by its identity, and no longer those that nobody reads any more.

        Beyond the memory limit tables that wait for a join leave memory; raises `MemoryLimitError` where that is not enough.
        """
        # These first: an operator may pass their arrays on, which would count twice
        taken = self.budget.taken
        for read, device in done_with:
            if read in self.tables:
                del self.tables[read]
                taken[device] -= self.sizes.pop(read)
        self.tables[key], self.sizes[key] = table, size
        del table
        if self.budget.limit is None:
            taken[node.device] += size
            return
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

    def waiting(self, device: Device, read: Iterable[int] = ()) -> list[int]:
        """Return the tables on a device that wait for a join, oldest first, but none that is about to be `read`."""
        reading = set(read)
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
        return join_tables(self.workspace, node, sides)

    def _write(self, node: HashJoin, place: int, table: BackendTable) -> None:
        side = side_of(self.workspace, node, place)
        side.write(table)
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
            if isinstance(rebuilt, Pipeline) and rebuilt.steps.joins:
                rebuilt = replace(opened(rebuilt), not_fused=NOT_FUSED)
            known[id(node)] = rebuilt
        return known[id(node)]

    return visit(plan)
