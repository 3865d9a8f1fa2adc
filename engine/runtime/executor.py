"""Runs a physical plan, inputs before the nodes that read them.

A node object that several others read runs once.  A table is dropped as soon as its last reader has run.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import ExecutionError, FuselineError, MemoryLimitError, Unsupported
from ..operators.context import Context, PipelineReceipt
from ..operators.pulling import MOST_ROWS_GPU, REASON, Pull, TooFew
from ..operators.room import let_go
from ..operators.spill_area import SpillArea
from ..operators.spilling import Parting
from ..plan.expr import Column
from ..plan.physical import (
    Device,
    HashJoin,
    LimitRows,
    MemoryScan,
    ParquetScan,
    Physical,
    Pipeline,
    Transfer,
)
from .memory import MemoryBudget, host_memory, out_of_memory
from .profile import NodeProfile, Profile
from .roofline import remembered
from .schedule import Chains, Schedule, chains_of, inputs_first, readers_of, schedule_of
from .spills import Held, waiting_places, without_fused_joins

if TYPE_CHECKING:
    import pyarrow as pa

NOTHING: Counter[str] = Counter()
NOT_RUN = (0.0, 0, 0)  # seconds, rows and bytes of what a limit made superfluous
IN_PIECES = "its rows came in pieces, since whole tables did not fit"
HOST_SHARE = 2  # of the host's memory, what may hold parts of joins that a GPU has no room for


class Backend(Parting, Protocol):
    """What `operators.cpu` and `operators.gpu` are: modules with these names."""

    def unsupported(self, node: Physical) -> str | None: ...

    def num_rows(self, table: Any) -> int: ...

    def synchronize(self) -> None: ...

    def load_columns(self, scan: ParquetScan | MemoryScan, context: Context) -> None: ...

    def device_name(self, threads: int) -> str: ...

    def copy_bandwidth(self, threads: int) -> float: ...


@dataclass(frozen=True)
class Result:
    """A table on the device that made it, with its receipt; `columns` are in the order of the query."""

    table: Any = field(repr=False)
    columns: tuple[Column, ...]
    device: Device
    profile: Profile = field(repr=False)
    backend: Backend = field(repr=False)

    @property
    def names(self) -> list[str]:
        return [c.name for c in self.columns]

    @property
    def num_rows(self) -> int:
        return self.backend.num_rows(self.table)

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow.Table with the types of `plan.types.to_arrow`."""
        return self.backend.to_arrow(self.table, self.columns)


@dataclass
class _Run:
    """The state of one execution; tables and counts are by node identity, not equality."""

    backends: Mapping[Device, Backend]
    context: Context
    budget: MemoryBudget
    timed: bool
    readers: dict[int, int]
    chains: Chains
    held: Held
    measured: dict[int, tuple[float, int, int]] = field(default_factory=dict)
    host_values: dict[int, Mapping[str, int]] = field(default_factory=dict)


def execute(
    plan: Physical | Schedule,
    backends: Mapping[Device, Backend],
    context: Context,
    *,
    timed: bool = False,
    memory_limit: int | None = None,
    spill_dir: Path | None = None,
    spill_memory: int | None = None,
    planned: tuple[float, bool] = (0.0, False),
) -> Result:
    """Run a plan, one of which the schedule may be known, and return its table.

    `timed` waits for the device after each node, so that its seconds are true.  Joins whose inputs pass `memory_limit` bytes
    run in parts that lie in `spill_dir` (by default the system's temporary directory) meanwhile, those of a GPU in `spill_memory`
    bytes of the host's memory (by default half of it) first.  Where that is not enough, the rows of the whole plan are pulled in
    pieces, and what needs all of them spills.  Raises `MemoryLimitError` when that passes the limit all the same or the device has
    no more.  `planned` is for the profile: the seconds
    before the run, and whether the plan was known.
    """
    directory = spill_dir or Path(tempfile.gettempdir())
    memory = host_memory() // HOST_SHARE if spill_memory is None else spill_memory
    schedule = plan if isinstance(plan, Schedule) else schedule_of(plan)
    with SpillArea(directory, memory) as area:
        rest = backends, context, timed, memory_limit, area, planned
        if memory_limit not in schedule.too_large:
            with suppress(MemoryLimitError):
                return _executed(schedule, *rest)
            let_go()
            apart = without_fused_joins(schedule.plan)
            if apart is not schedule.plan:
                with suppress(MemoryLimitError):
                    return _executed(schedule_of(apart), *rest)
                let_go()
            # What a host has without a limit, others may take now and give back later
            if memory_limit is not None or schedule.plan.device == "gpu":
                schedule.too_large.add(memory_limit)
        return _executed(schedule, *rest, in_pieces=True)


def _executed(
    schedule: Schedule,
    backends: Mapping[Device, Backend],
    context: Context,
    timed: bool,
    memory_limit: int | None,
    area: SpillArea,
    planned: tuple[float, bool],
    in_pieces: bool = False,
) -> Result:
    plan, order = schedule.plan, schedule.order
    readers, places = dict(schedule.readers), schedule.places
    chains = chains_of(schedule, context)
    if chains.ends:
        order = tuple(inputs_first(plan, chains))
        readers = readers_of(order, chains)
        places = waiting_places(order, readers)
    budget = MemoryBudget(memory_limit)
    context.hold, context.ask = budget.hold, budget.ask
    context.spilled.clear()
    held = Held(area, backends, context, budget, places)
    run = _Run(backends, context, budget, timed, readers, chains, held)
    start = time.perf_counter()
    if in_pieces:
        _pull_all(plan, run)
    else:
        for node in order:
            context.check()
            _run_node(node, run)
    backend = backends[plan.device]
    if plan.device == "gpu":
        backend.synchronize()
    seconds = time.perf_counter() - start
    # Of the run they keep what was noted, but no table
    noted = run.measured, run.host_values, context.receipts, context.remarks
    nodes = partial(_node_profiles, plan, chains, *noted)
    bandwidth = _bandwidths(nodes(), run) if timed else {}
    profile = Profile(
        nodes,
        seconds,
        context.bytes_read,
        *planned,
        timed=timed,
        bandwidth=bandwidth,
        spilled=dict(context.spilled),
    )
    return Result(held.tables[id(plan)], plan.columns, plan.device, profile, backend)


def load_columns(
    scan: ParquetScan | MemoryScan, backends: Mapping[Device, Backend], context: Context
) -> None:
    """Bring a scan's columns into the cache; raises `MemoryLimitError` when the device has no room for one of them."""
    try:
        backends[scan.device].load_columns(scan, context)
    except MemoryError as error:
        raise out_of_memory(scan, MemoryBudget(None), error) from error


def _run_node(node: Physical, run: _Run) -> None:
    backend = run.backends[node.device]
    counted = run.context.host_values
    before = counted.copy() if counted else NOTHING
    start = time.perf_counter()
    try:
        table = _output(node, run)
        if run.timed:
            backend.synchronize()
    except Exception as error:
        _explain(error, node, run)
        raise
    seconds = time.perf_counter() - start
    size = backend.num_bytes(table)
    run.host_values[id(node)] = counted - before if counted else NOTHING
    run.measured[id(node)] = (seconds, backend.num_rows(table), size)
    # Inputs go first: an operator may pass their arrays on, which would count twice
    for child in run.chains.inputs(node):
        run.readers[id(child)] -= 1
        if run.readers[id(child)] == 0:
            run.held.drop(child)
    run.held.add(node, table, size)


def _explain(error: Exception, node: Physical, run: _Run) -> None:
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


def _output(node: Physical, run: _Run) -> Any:
    """Return a node's table, in spite of tables for which there is no room, if these may leave memory."""
    if isinstance(node, HashJoin) and run.held.is_spilled(node):
        return run.held.join(node)
    inputs = run.chains.inputs(node)
    try:
        return _made(node, run)
    except MemoryError:
        if not isinstance(node, HashJoin) and not run.held.waiting(node.device, inputs):
            raise
    # Outside of the handler, since the error keeps all tables of the first try
    let_go()
    if isinstance(node, HashJoin):
        return run.held.join(node)
    run.held.spill(run.held.waiting(node.device, inputs))
    return _made(node, run)


def _made(node: Physical, run: _Run) -> Any:
    inputs = tuple(run.held.tables[id(child)] for child in run.chains.inputs(node))
    if isinstance(node, Transfer):
        source = node.input.device
        if source == node.device:
            return inputs[0]
        arrow = run.backends[source].to_arrow(inputs[0], node.columns)
        return run.backends[node.device].from_arrow(arrow, node.columns)
    if (chain := run.chains.streamed.get(id(node))) is not None:
        return _stream(node, chain, run)
    if isinstance(node, LimitRows) and (chain := run.chains.pulled.get(id(node))) is not None:
        return _pull(node, chain, run)
    return _operated(node, inputs, run)


def _operated(node: Physical, inputs: tuple[Any, ...], run: _Run) -> Any:
    operator = run.backends[node.device].OPERATORS.get(type(node))
    if operator is None:
        raise Unsupported(f"The {node.device} backend has no operator {type(node).__name__}.")
    return operator(node, inputs, run.context)


def _stream(node: Physical, chain: Pipeline, run: _Run) -> Any:
    """Run a chain that the planner has not made a pipeline, one operator at a time for each chunk."""
    context = replace(run.context, fuse="never")
    table = run.backends[node.device].OPERATORS[Pipeline](chain, (), context)
    run.context.bytes_read = context.bytes_read
    run.context.receipts[id(node)] = context.receipts.pop(id(chain))
    return table


def _pull(node: LimitRows, chain: Pipeline, run: _Run) -> Any:
    """Pull the first rows of what is below a limit; make all of them where too few of its first rows are kept."""
    tables = {id(child): run.held.tables[id(child)] for child in chain.inputs}
    pull = replace(_pull_of(run), tables=tables, most=run.chains.most(node))
    try:
        table = pull.all_rows(chain.body)
    except TooFew:
        run.chains.give_up(node)
        return _whole(node, tables, run)
    _note(pull, run)
    for pipeline in run.chains.pipelines_below(node):
        run.context.receipts[id(pipeline)] = partial(PipelineReceipt, REASON)
    return table


def _pull_all(plan: Physical, run: _Run) -> None:
    """Pull the rows of a whole plan in pieces, since its tables do not fit."""
    run.context.receipts.clear()
    run.context.remarks.clear()
    # All rows are wanted: small pieces first would only cost a GPU more calls of its reader
    pull = replace(_pull_of(run), readers=run.readers, first_rows=MOST_ROWS_GPU)
    try:
        table = pull.all_rows(plan)
    except Exception as error:
        _explain(error, pull.running or plan, run)
        raise
    _note(pull, run)
    parts = run.context.remarks.get(id(plan))
    run.context.remarks[id(plan)] = IN_PIECES if parts is None else f"{IN_PIECES}; {parts}"
    run.held.add(plan, table, run.backends[plan.device].num_bytes(table))


def _pull_of(run: _Run) -> Pull:
    return Pull(run.backends, run.context, run.held.area, run.budget.room)


def _note(pull: Pull, run: _Run) -> None:
    for below, (seconds, rows) in pull.measured.items():
        run.measured[below] = seconds, rows, 0


def _whole(node: Physical, tables: dict[int, Any], run: _Run) -> Any:
    """Run what is below a limit as if it were not there; `tables` are those that are complete."""
    if id(node) not in tables:
        inputs = tuple(_whole(child, tables, run) for child in node.children)
        run.context.check()
        tables[id(node)] = _operated(node, inputs, run)
    return tables[id(node)]


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


def _bandwidths(nodes: tuple[NodeProfile, ...], run: _Run) -> dict[Device, float]:
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
