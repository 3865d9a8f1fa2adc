"""Pipelines: encoded columns through generated kernels, or the body's operators where no kernel holds it."""

from __future__ import annotations

import dataclasses
import threading
import time
from functools import partial

from ....codegen.compile.compiler import NotCompiled
from ....codegen.compile.kernel_files import compiler_refusal
from ....codegen.compile_pipeline import Limits, Stages, selected, stages
from ....codegen.listing import operations
from ....codegen.typed_values import NotFusable
from ....plan import physical as p
from ....plan.expr import Column, columns_of
from ....plan.node import walk
from ....plan.spine import leaf_of
from ....plan.text.concealed_text import concealed_tree
from ...context import Context, Origin, PipelineReceipt
from ...materialize_build_side import apart, run_apart
from ...plan_memory import Refused, is_lasting
from ...run_unfused import Operators, run_operators
from ...streaming import ORIGINS, check_room
from ..memory.ask_memory import ask_kernels
from ..rows import filter_rows
from ..table import Table
from . import launch
from .finish import finished, selected_rows
from .pipeline_inputs import Leaves, Use

GROUP_LIMIT = 1 << 16  # groups that each thread addresses directly, whatever the number of rows
ROWS_A_GROUP = 8  # at least, of more groups: their memory must be worth it
LARGEST_GROUP_LIMIT = 1 << 22  # 32 MB for each accumulator of each thread
# Where rows come in the order of a key, each thread touches its own stretch of groups
ROWS_A_GROUP_IN_ORDER = 1
LARGEST_IN_ORDER = 1 << 24
# Rows that operators get through while a kernel compiles
UNFUSED_FIRST_ROWS = 10_000_000


@dataclasses.dataclass
class _Prepared:
    """Kernels made for these very columns; other columns, after a file has changed, need others.

    `origin` is None until their machine code is there, or `error` says why it will never be.
    """

    uses: tuple[Use, ...]
    rows: tuple[tuple[p.Physical, int], ...]
    kernels: launch.Kernels
    operations: int
    origin: Origin | None = None
    error: Exception | None = None


def pipeline(node: p.Pipeline, inputs: tuple[Table, ...], context: Context) -> Table:
    """Run a pipeline fused when kernels hold it, else one operator at a time; the result is the same."""
    memory = context.memory.pipeline(node)
    if memory.apart is not None:
        return run_apart(memory.apart, node, inputs, context, pipeline, _unfused)
    rows = tuple(table.num_rows for table in inputs)
    if memory.refused is not None and memory.refused.rows == rows:
        return _unfused(node, inputs, memory.refused.reason, context)
    try:
        while True:
            found = _fused(node, inputs, context)
            if found is not None:
                return found
    except NotCompiled as error:
        return _unfused(node, inputs, compiler_refusal(error), context)
    except NotFusable as refused:
        parts = memory.apart = apart(node, refused)
        if parts is None:
            if is_lasting(node):
                memory.refused = Refused(rows, refused.message)
            return _unfused(node, inputs, refused.message, context)
    return run_apart(parts, node, inputs, context, pipeline, _unfused)


def _fused(node: p.Pipeline, inputs: tuple[Table, ...], context: Context) -> Table | None:
    """Run a pipeline; None where a build side's keys repeat against expectation, so that other kernels are needed."""
    start = time.perf_counter()
    prepared, leaves, origin, preparing = _prepare(node, inputs, context)
    if origin is None:
        return _unfused(node, inputs, "the kernel is being compiled", context)
    kernel_there = time.perf_counter()
    ask_kernels(node, prepared.kernels.stages, context)
    done = launch.run(prepared.kernels, leaves, context)
    if done.repeating:
        memory = context.memory.pipeline(node)
        memory.feedback.repeating |= frozenset(done.repeating)
        memory.kernels = None
        return None
    table = None
    if done.doubt is None:
        if _is_selection(node.body):
            table = selected_rows(node.body, done.outcome, leaves)
        else:
            table = finished(prepared.kernels.stages.main, done.outcome, leaves, context)
            if isinstance(node.body, p.FilterRows) and p.aggregate_of(node.body) is not None:
                table = filter_rows(node.body, (table,), context)
    ended = time.perf_counter()
    size = sum(leaves.encoded(use.leaf, use.made).nbytes for use in prepared.uses)
    context.bytes_read += size
    loading = kernel_there - start - preparing
    receipt = PipelineReceipt(
        None,
        prepared.kernels.paths[-1],
        origin,
        leaves.rows(leaf_of(node.body)),
        size,
        ended - kernel_there,
        loading if leaves.loaded else 0.0,
        preparing,
        prepared.operations,
        prepared.kernels.stages.main,
        builds=launch.builds(prepared.kernels),
    )
    if table is None:
        assert done.doubt is not None
        return _unfused(node, inputs, done.doubt, context, receipt)
    context.receipts[id(node)] = lambda: receipt
    return table


def _unfused(
    node: p.Pipeline,
    inputs: tuple[Table, ...],
    reason: str,
    context: Context,
    receipt: PipelineReceipt | None = None,
) -> Table:
    """Run a body one operator at a time; raises `TooLarge` when it should rather run in chunks."""
    from .. import OPERATORS, num_bytes  # which list this module's operator too

    check_room(node.body, context)
    done = receipt or PipelineReceipt()
    context.receipts[id(node)] = lambda: dataclasses.replace(done, reason=reason)
    table: Table = run_operators(node.body, inputs, context, Operators(OPERATORS, num_bytes))
    return table


# Kernels


def _prepare(
    node: p.Pipeline, inputs: tuple[Table, ...], context: Context
) -> tuple[_Prepared, Leaves, Origin | None, float]:
    """Return the kernels for the columns as they are now, those of the last run if they still fit, and the seconds that took.

    Their origin is None while another thread compiles them.
    """
    memory = context.memory.pipeline(node)
    repeating, held = memory.feedback.repeating, memory.kernels
    if isinstance(held, _Prepared):
        leaves = Leaves(inputs, {use.made for use in held.uses}, repeating, context)
        if leaves.fits(held.uses, held.rows):
            if held.error is not None:
                memory.kernels = None  # the next run tries again
                raise held.error
            if held.origin is not None:
                launch.load(held.kernels)
            return held, leaves, None if held.origin is None else "memory", 0.0
    leaves = Leaves(inputs, _read(node.body), repeating, context)
    leaves.rows(leaf_of(node.body))
    start = time.perf_counter()
    made = _stages(node.body, leaves, context)
    kernels = launch.compiled(made, partial(concealed_tree, node.body), context)
    rows = tuple((leaf, leaves.rows(leaf)) for leaf in _leaves(node.body))
    prepared = _Prepared(launch.uses(made, leaves), rows, kernels, operations(made.main))
    total = sum(count for _, count in rows)
    most = UNFUSED_FIRST_ROWS * len(kernels.paths)
    if context.fuse == "auto" and total < most and not kernels.are_stored:
        memory.kernels = prepared
        threading.Thread(target=_fetch_later, args=(prepared,), daemon=True).start()
        return prepared, leaves, None, 0.0
    prepared.origin = max(launch.load(kernels), key=ORIGINS.index)
    memory.kernels = prepared
    return prepared, leaves, prepared.origin, time.perf_counter() - start


def _fetch_later(prepared: _Prepared) -> None:
    """Wait for the compiler in a thread of its own; the next run loads what it made, or raises what went wrong."""
    try:
        prepared.origin = max(launch.fetch(prepared.kernels), key=ORIGINS.index)
    except Exception as error:
        prepared.error = error


def _stages(body: p.Physical, leaves: Leaves, context: Context) -> Stages:
    if _is_selection(body):
        assert isinstance(body, p.FilterRows)
        return Stages((selected(body, leaves),), ())
    leaf = leaf_of(body)
    share, largest = ROWS_A_GROUP, LARGEST_GROUP_LIMIT
    groups = p.aggregate_of(body)
    if groups is not None and any(leaves.in_order(leaf, key) for key in groups.keys):
        share, largest = ROWS_A_GROUP_IN_ORDER, LARGEST_IN_ORDER
    limit = max(GROUP_LIMIT, min(leaves.rows(leaf) // share, largest))
    # The operators' grouping takes as long as hash tables do (SF1, 6 M rows, 0.8 M groups: 0.48 s of CPU time to 0.57 s)
    return stages(body, leaves, Limits(limit, may_hash=context.fuse == "always"))


def _is_selection(body: p.Physical) -> bool:
    """Whether rows come out as they lie in a scan, so that their order is kept."""
    while isinstance(body, p.FilterRows):
        body = body.input
    return isinstance(body, p.ParquetScan | p.MemoryScan)


def _leaves(body: p.Physical) -> list[p.Physical]:
    return [node for node in walk(body) if not node.children]


def _read(body: p.Physical) -> set[Column]:
    """The columns that expressions, joins and aggregates of a body read, besides those that it passes on."""
    found: set[Column] = set()
    for node in walk(body):
        match node:
            case p.FilterRows(predicate=expr):
                found.update(columns_of(expr))
            case p.ComputeColumns(items=items):
                found.update(c for _, expr in items for c in columns_of(expr))
            case p.HashJoin():
                found.update((*node.left_keys, *node.right_keys))
                found.update(() if node.residual is None else columns_of(node.residual))
            case p.NestedLoopJoin(condition=expr) if expr is not None:
                found.update(columns_of(expr))
            case p.HashAggregate():
                found.update(node.keys)
                found.update(c for _, call in node.aggregates for c in columns_of(call))
    return found
