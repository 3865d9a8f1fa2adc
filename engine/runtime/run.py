"""One run of a plan: what it holds and has measured, what its errors say, and the result and receipt that it leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..errors import ExecutionError, FuselineError
from ..observe.profile import NodeProfile, PlanOrigin, Profile
from ..observe.roofline import remembered
from ..operators.column_tiers import LiftedColumn
from ..operators.context import Context, PipelineReceipt
from ..operators.exchange.agree_columns import KernelColumns
from ..operators.run_unfused import BackendTable
from ..operators.spill_area import SpillArea
from ..operators.spilling import Parting, Workspace
from ..plan.expr import Column
from ..plan.physical import Device, MemoryScan, ParquetScan, Physical
from ..records import dataclass
from .memory import Held, MemoryBudget, ask_for_answer, out_of_memory, waiting_places
from .schedule import Chains, Schedule, Turn, chains_of, inputs_first, readers_of, turns_of

if TYPE_CHECKING:
    import pyarrow as pa

NOTHING: Mapping[str, int] = {}
NOT_RUN = (0.0, 0, 0)  # seconds, rows and bytes of what a limit made superfluous


class Backend(Parting[BackendTable], KernelColumns, Protocol):
    """What `operators.cpu` and `operators.gpu` are: modules with these names."""

    def unsupported(self, node: Physical) -> str | None: ...

    def synchronize(self) -> None: ...

    def wait_for(self, table: BackendTable) -> None: ...

    def load_columns(self, scan: ParquetScan | MemoryScan, context: Context) -> None: ...

    def device_name(self, threads: int) -> str: ...

    def copy_bandwidth(self, threads: int) -> float: ...


ROWS_UNASKED = (
    1 << 16
)  # of an answer without a memory limit: asking takes 12 us, as long as a kernel of few rows


@dataclass(eq=False)
class Result:
    """A table on the device that made it, with its receipt; `columns` are in the order of the query."""

    table: BackendTable = field(repr=False)
    columns: tuple[Column, ...]
    device: Device
    profile: Profile = field(repr=False)
    backend: Backend = field(repr=False)
    budget: MemoryBudget = field(repr=False)

    @property
    def names(self) -> list[str]:
        return [c.name for c in self.columns]

    @property
    def num_rows(self) -> int:
        return self.table.num_rows

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow.Table with the types of `plan.types.to_arrow`; raises `MemoryLimitError` where there is no room for it."""
        if self.budget.limit is not None or self.table.num_rows > ROWS_UNASKED:
            ask_for_answer(self.budget, self.backend.arrow_bytes(self.table, self.columns))
        return self.backend.to_arrow(self.table, self.columns)


@dataclass(eq=False, slots=True)
class RunOptions:
    """How a plan runs.

    `timed` waits for the device after each node, so that its seconds are true.  `spill_dir` is by default the system's temporary
    directory, `spill_memory`, for what a GPU spills, half of the host's.  `planned` is for the profile: the seconds before the run,
    whether the plan was known, and of what text.
    """

    timed: bool = False
    memory_limit: int | None = None
    spill_dir: Path | None = None
    spill_memory: int | None = None
    planned: tuple[float, bool, PlanOrigin] = (0.0, False, "new")


PLAIN = RunOptions()


@dataclass
class Run:
    """The state of one execution, in `order`; tables and counts are by node identity, not equality."""

    plan: Physical
    order: tuple[Physical, ...]
    backends: Mapping[Device, Backend]
    context: Context
    budget: MemoryBudget
    options: RunOptions
    turns: tuple[Turn, ...]
    readers: Mapping[int, int]
    chains: Chains
    held: Held
    measured: dict[int, tuple[float, int, int]] = field(default_factory=dict)
    host_values: dict[int, Mapping[str, int]] = field(default_factory=dict)


def begin_run(
    schedule: Schedule,
    backends: Mapping[Device, Backend],
    context: Context,
    options: RunOptions,
    area: SpillArea,
) -> Run:
    """Return a run of which nothing is done yet."""
    plan, order = schedule.plan, schedule.order
    turns, readers, places = schedule.turns, schedule.readers, schedule.places
    chains = schedule.unbroken
    if schedule.limits or schedule.divisible:
        chains = chains_of(schedule, context)
    if chains.ends:
        order = tuple(inputs_first(plan, chains))
        turns = turns_of(order, chains)
        readers = readers_of(order, chains)
        places = waiting_places(order, readers)
    budget = MemoryBudget(options.memory_limit)
    context.hold, context.ask = budget.hold, budget.ask
    context.shaped = schedule.shaped
    context.spilled = {}
    held = Held(Workspace(backends, context, area, budget.room), budget, places)
    return Run(plan, order, backends, context, budget, options, turns, readers, chains, held)


def result_of(run: Run, table: BackendTable, start: float) -> Result:
    """Return a table with the receipt of the run that made it since `start`."""
    backend = run.backends[run.plan.device]
    backend.wait_for(table)
    receipt = profile(run, time.perf_counter() - start)
    return Result(table, run.plan.columns, run.plan.device, receipt, backend, run.budget)


def profile(run: Run, seconds: float) -> Profile:
    """Return the receipt of a run, which keeps what was noted, but no table."""
    context = run.context
    noted = run.measured, run.host_values, context.receipts, context.remarks
    nodes = partial(_node_profiles, run.plan, run.chains, *noted)
    return Profile(
        nodes,
        seconds,
        context.bytes_read,
        *run.options.planned,
        timed=run.options.timed,
        bandwidth=_bandwidths(nodes(), run) if run.options.timed else {},
        spilled=dict(context.spilled),
        lifted=_lifted(context) if context.lifted or context.cache.store is not None else None,
    )


def _lifted(context: Context) -> tuple[LiftedColumn, ...] | None:
    """Return what came from tiers below; None where there are but files below the cache, or nothing is below a GPU's yet."""
    if context.cache.store is None and all(each.tier == "Parquet" for each in context.lifted):
        return None
    return tuple(context.lifted)


def explain(error: Exception, node: Physical, run: Run) -> None:
    """Say where an error came from and which setting helps, by raising a clearer one or by a note."""
    if isinstance(error, FuselineError):
        return
    if isinstance(error, MemoryError):
        raise out_of_memory(node, run.budget, error) from error
    run.context.check()  # a library that heard Ctrl-C by itself raises an error of its own
    error.add_note(f"while {type(node).__name__} ran on the {node.device}")
    if type(error).__name__ == "ArrowCapacityError":
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise ExecutionError(
            f"{type(node).__name__} made a larger column than Arrow takes on the {node.device}: {reason}."
        ) from error


def _node_profiles(
    plan: Physical,
    chains: Chains,
    measured: Mapping[int, tuple[float, int, int]],
    host_values: Mapping[int, Mapping[str, int]],
    receipts: Mapping[int, Callable[[], PipelineReceipt]],
    remarks: Mapping[int, str],
) -> tuple[NodeProfile, ...]:
    profiles: dict[int, NodeProfile] = {}

    def visit(node: Physical, depth: int) -> None:
        if id(node) not in profiles:
            receipt = receipts.get(id(node))
            profiles[id(node)] = NodeProfile(
                node,
                depth,
                *measured.get(id(node), NOT_RUN),
                None if receipt is None else receipt(),
                host_values.get(id(node), NOTHING),
                remarks.get(id(node)),
            )
            for child in chains.shown(node):
                visit(child, depth + 1)

    visit(plan, 0)
    return tuple(profiles.values())


def _bandwidths(nodes: tuple[NodeProfile, ...], run: Run) -> dict[Device, float]:
    """Return what a copy reaches on each device that ran a kernel, unless it has no room for one."""
    directory, threads = run.context.kernel_directory, run.context.threads
    found: dict[Device, float] = {}
    for device in {n.device for n in nodes if n.receipt is not None and n.receipt.fused}:
        backend = run.backends[device]
        with suppress(MemoryError):
            found[device] = remembered(
                directory, backend.device_name(threads), partial(backend.copy_bandwidth, threads)
            )
    return found
