"""How much a query may hold, and the error when it needs more."""

from __future__ import annotations

from ..errors import MemoryLimitError
from ..operators.host_memory import available_memory, host_memory, readable
from ..plan.physical import Device, Physical

__all__ = ["MemoryBudget", "ask_for_answer", "host_memory", "out_of_memory", "readable"]


LARGE = 1 << 28  # bytes that are asked for without a limit, from which the host is asked too


class MemoryBudget:
    """The bytes of intermediate tables that a query holds on each device; `limit` None counts without a limit."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._held: dict[Device, int] = {}
        self.peak: dict[Device, int] = {}

    def add(self, node: Physical, nbytes: int) -> None:
        """Count the output of a node; raises `MemoryLimitError` when that is more than the limit."""
        device = node.device
        held = self._held.get(device, 0) + nbytes
        self._held[device] = held
        self.peak[device] = max(held, self.peak.get(device, 0))
        if self.limit is not None and held > self.limit:
            raise MemoryLimitError(
                f"{type(node).__name__} made {readable(nbytes)} on the {device}, so that the query holds "
                f"{readable(held)}: more than memory_limit = {readable(self.limit)}. Raise it with SET memory_limit."
            )

    def remove(self, device: Device, nbytes: int) -> None:
        self._held[device] = self._held.get(device, 0) - nbytes

    def hold(self, node: Physical, nbytes: int) -> None:
        """Count bytes that a node takes while it runs, or with a negative number lets go of."""
        if nbytes < 0:
            self.remove(node.device, -nbytes)
        else:
            self.add(node, nbytes)

    def ask(self, node: Physical, nbytes: int) -> None:
        """Raise `MemoryError` when a node must not take so many bytes; without a limit, when the host has not so many."""
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
        return self._held.get(device, 0)


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
