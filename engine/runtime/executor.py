"""Runs a physical plan, inputs before the nodes that read them.

A node object that several others read runs once.  A table is dropped as soon as its last reader has run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from ..errors import MemoryLimitError, Unsupported
from ..operators.context import Context, PipelineReceipt
from ..operators.exchange.exchange_rows import exchanged
from ..operators.host_memory import let_go
from ..operators.pulling import REASON, TooFew
from ..operators.run_unfused import BackendTable
from ..operators.spill_area import SpillArea
from ..operators.transfer import moved
from ..plan import physical as p
from ..plan.exchange import Exchange
from ..progress.run_progress import WHOLE
from . import in_pieces
from .in_pieces import Stream, note, pull_of
from .memory import MemoryBudget, out_of_memory, without_fused_joins
from .run import NOTHING, PLAIN, Backend, Result, Run, RunOptions, begin_run, explain, result_of
from .schedule import Schedule, Turn, schedule_of


def execute(
    plan: p.Physical | Schedule,
    backends: Mapping[p.Device, Backend],
    context: Context,
    options: RunOptions = PLAIN,
) -> Result:
    """Run a plan, one of which the schedule may be known, and return its table.

    Joins whose inputs pass the memory limit run in parts that lie on disk meanwhile, those of a GPU in the host's memory first.
    Where that is not enough, the rows of the whole plan are pulled in pieces, and what needs all of them spills.  Raises
    `MemoryLimitError` when that passes the limit all the same or the device has no more.
    """
    schedule = plan if isinstance(plan, Schedule) else schedule_of(plan)
    area = SpillArea(options.spill_dir, options.spill_memory)
    try:
        rest = backends, context, options, area
        found = _run_with_whole_tables(schedule, *rest)
        return in_pieces.result(begin_run(schedule, *rest)) if found is None else found
    finally:
        if area.is_used:
            area.remove()


def stream(
    plan: p.Physical | Schedule,
    backends: Mapping[p.Device, Backend],
    context: Context,
    options: RunOptions = PLAIN,
) -> Result | Stream:
    """Run a plan as `execute` does; where only pieces of its rows fit, return what makes them while it is read."""
    schedule = plan if isinstance(plan, Schedule) else schedule_of(plan)
    with SpillArea(options.spill_dir, options.spill_memory) as area:
        found = _run_with_whole_tables(schedule, backends, context, options, area)
    if found is not None:
        return found
    area = SpillArea(options.spill_dir, options.spill_memory)
    return in_pieces.stream(begin_run(schedule, backends, context, options, area))


def _run_with_whole_tables(
    schedule: Schedule,
    backends: Mapping[p.Device, Backend],
    context: Context,
    options: RunOptions,
    area: SpillArea,
) -> Result | None:
    """Run an operator after the other, pipelines with joins apart where they do not fit; None where whole tables do not."""
    limit = options.memory_limit
    if limit in schedule.too_large:
        return None
    rest = backends, context, options, area
    try:
        return _run_in_order(begin_run(schedule, *rest))
    except MemoryLimitError:
        if schedule.meets:  # what workers give each other comes in no pieces
            raise
    let_go()
    apart = without_fused_joins(schedule.plan)
    if apart is not schedule.plan:
        with suppress(MemoryLimitError):
            return _run_in_order(begin_run(schedule_of(apart), *rest))
        let_go()
    # What a host has without a limit, others may take now and give back later
    if limit is not None or schedule.plan.device == "gpu":
        schedule.too_large.add(limit)
    return None


def _run_in_order(run: Run) -> Result:
    start = began = time.perf_counter()
    progress = run.context.progress
    way = progress.begin(run.order, run.measured, run.context.receipts)
    check = run.context.check
    for position, turn in enumerate(run.turns):
        check()
        way.position, way.bounds, way.stage = position, WHOLE, None
        if progress.is_told:
            progress.tell()
        began = _take_turn(turn, run, began)
    return result_of(run, run.held.tables[run.turns[-1].key], start)


def load_columns(
    scan: p.ParquetScan | p.MemoryScan, backends: Mapping[p.Device, Backend], context: Context
) -> None:
    """Bring a scan's columns into the cache; raises `MemoryLimitError` when the device has no room for one of them."""
    try:
        backends[scan.device].load_columns(scan, context)
    except MemoryError as error:
        raise out_of_memory(scan, MemoryBudget(None), error) from error


def _take_turn(turn: Turn, run: Run, start: float) -> float:
    """Run a node that begins now, and return when it has ended."""
    node, key, reads, done_with = turn
    held, context = run.held, run.context
    backend, kind = run.backends[node.device], type(node)
    counted = context.host_values
    before = dict(counted) if counted else NOTHING
    table: BackendTable | None = None
    try:
        if held.spilled and isinstance(node, p.HashJoin) and held.is_spilled(node):
            table = held.join(node)
        else:
            try:
                if kind not in backend.OPERATORS or run.chains.ends:
                    table = _run_operator_or_chain(node, reads, run)
                else:
                    inputs = map(held.tables.__getitem__, reads)
                    table = backend.OPERATORS[kind](node, tuple(inputs), context)
            except MemoryError:
                if not isinstance(node, p.HashJoin) and not held.waiting(node.device, reads):
                    raise
        # Outside of the handler, since the error keeps all tables of the first try
        if table is None:
            table = _run_with_less(node, reads, run)
        if run.options.timed:
            backend.synchronize()
    except Exception as error:
        explain(error, node, run)
        raise
    end = time.perf_counter()
    size = backend.num_bytes(table)
    if counted:
        run.host_values[key] = _since(before, counted)
    run.measured[key] = (end - start, table.num_rows, size)
    held.add(node, key, table, size, done_with)
    return end


def _since(before: Mapping[str, int], counted: Mapping[str, int]) -> dict[str, int]:
    """Return what was counted after `before`, by function."""
    added = {what: count - before.get(what, 0) for what, count in counted.items()}
    return {what: count for what, count in added.items() if count}


def _run_with_less(node: p.Physical, reads: tuple[int, ...], run: Run) -> BackendTable:
    """Return the table of a node that found no room, now that tables which wait for others leave memory."""
    let_go()
    if isinstance(node, p.HashJoin):
        return run.held.join(node)
    run.held.spill(run.held.waiting(node.device, reads))
    return _run_operator_or_chain(node, reads, run)


def _run_operator_or_chain(node: p.Physical, reads: tuple[int, ...], run: Run) -> BackendTable:
    if (chain := run.chains.streamed.get(id(node))) is not None:
        return _run_in_chunks(node, chain, run)
    if isinstance(node, p.LimitRows) and (chain := run.chains.pulled.get(id(node))) is not None:
        return _pull_first_rows(node, chain, run)
    return _run_operator(node, tuple(map(run.held.tables.__getitem__, reads)), run)


def _run_operator(node: p.Physical, inputs: tuple[BackendTable, ...], run: Run) -> BackendTable:
    operator = run.backends[node.device].OPERATORS.get(type(node))
    if operator is not None:
        return operator(node, inputs, run.context)
    if isinstance(node, p.Transfer):
        return moved(node, inputs[0], run.backends, run.context)
    if isinstance(node, Exchange):
        return exchanged(node, inputs[0], run.backends, run.context)
    raise Unsupported(f"The {node.device} backend has no operator {type(node).__name__}.")


def _run_in_chunks(node: p.Physical, chain: p.Pipeline, run: Run) -> BackendTable:
    """Run a chain that the planner has not made a pipeline, one operator at a time for each chunk."""
    context = replace(run.context, fuse="never")
    table = run.backends[node.device].OPERATORS[p.Pipeline](chain, (), context)
    run.context.bytes_read = context.bytes_read
    if (
        done := context.receipts.pop(id(chain), None)
    ) is not None:  # what is in the cache by now comes whole
        run.context.receipts[id(node)] = done
    return table


def _pull_first_rows(node: p.LimitRows, chain: p.Pipeline, run: Run) -> BackendTable:
    """Pull the first rows of what is below a limit; make all of them where too few of its first rows are kept."""
    tables = {id(child): run.held.tables[id(child)] for child in chain.inputs}
    pull = replace(pull_of(run), tables=tables, most=run.chains.most(node))
    try:
        table = pull.all_rows(chain.body)
    except TooFew:
        run.chains.give_up(node)
        return _run_below(node, tables, run)
    note(pull, run)
    for pipeline in run.chains.pipelines_below(node):
        run.context.receipts[id(pipeline)] = partial(PipelineReceipt, REASON)
    return table


def _run_below(node: p.Physical, tables: dict[int, BackendTable], run: Run) -> BackendTable:
    """Run what is below a limit as if it were not there; `tables` are those that are complete."""
    if id(node) not in tables:
        for child in node.children:
            _run_below(child, tables, run)
        run.context.check()
        inputs = tuple(tables[id(child)] for child in node.children)
        tables[id(node)] = _run_operator(node, inputs, run)
    return tables[id(node)]
