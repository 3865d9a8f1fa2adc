"""Pipelines: generated kernels over encoded columns and indexes, or the body's operators where no kernel holds it."""

from __future__ import annotations

import dataclasses
import time
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np
import pylibcudf as plc

from ....codegen.compile.compiler import NotCompiled
from ....codegen.compile.kernel_files import compiler_refusal
from ....codegen.groups.results import result_registers
from ....codegen.typed_values import NotFusable
from ....errors import MemoryLimitError
from ....plan import physical as p
from ....plan.node import walk
from ....stopping import wait
from ...context import Context, Origin, PipelineReceipt
from ...materialize_build_side import apart, run_apart
from ...plan_memory import Feedback, PipelineMemory, Refused, is_lasting
from ...run_unfused import Operators, run_operators
from ...streaming import check_room, unfused_chunks
from ..columns import INT32
from ..memory.buffers import Memory
from ..memory.device import is_out_of_memory, on_device
from ..memory.upload import on_host
from ..rows import filter_rows
from ..table import Table, check_rows, only
from .buckets import far_off
from .compiled_pipeline import CompiledPipeline, Ready, generated, laid_out
from .finish import finisher_of
from .gather import late_columns
from .ordered_groups import ComingOut
from .pipeline_inputs import Relations
from .receipts import of_one_run
from .regions import BufferSpan

ATTEMPTS = 8  # each of which learns something that the next one needs
GROWTH = 4
MOST_FOLDED = 1 << 31  # values of a sum in two parts
ROWS, REPEATED = 0, 2  # of the state of an index: between them are NULL keys, behind them doubts

DOUBT = "a value was close to 64 bits"
SHORT = "there is too little memory for its indexes and groups"


class _Unfused(Exception):
    """A run of kernels gave no answer; `receipt` says what they did if they ran."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.receipt: PipelineReceipt | None = None


class _Again(Exception):
    """A run found out something that the kernels have to be made, or the memory laid out for."""


@on_device
def pipeline(node: p.Pipeline, inputs: tuple[Table, ...], context: Context) -> Table:
    """Run a pipeline fused when kernels hold it, else one operator at a time; the result is the same."""
    memory = context.memory.pipeline(node)
    parts = memory.apart
    if parts is not None:
        return run_apart(parts, node, inputs, context, pipeline, _unfused)
    rows = tuple(table.num_rows for table in inputs)
    if memory.refused is not None and memory.refused.rows == rows:
        return _in_parts(node, inputs, memory.refused.reason, context)
    try:
        return _fused(node, inputs, context)
    except NotFusable as refused:
        parts = memory.apart = apart(node, refused)
        if parts is None:
            if is_lasting(node):
                memory.refused = Refused(rows, refused.message)
            return _in_parts(node, inputs, refused.message, context)
    except _Unfused as found:
        reason, receipt = found.reason, found.receipt
    # Outside of the handlers, since an error keeps what was allocated before memory ran out
    if parts is not None:
        return run_apart(parts, node, inputs, context, pipeline, _unfused)
    return _unfused(node, inputs, reason, context, receipt)


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
    operators = Operators(OPERATORS, num_bytes)
    table: Table = run_operators(node.body, inputs, context, operators)
    return table


def _in_parts(node: p.Pipeline, inputs: tuple[Table, ...], reason: str, context: Context) -> Table:
    """Run the last operator of a body that no kernel holds, over pipelines of what is below it as far as that joins."""
    from .. import OPERATORS, num_bytes  # which list this module's operator too

    parts = context.memory.pipeline(node).parts
    for number, child in enumerate(node.body.children):
        if number not in parts and any(isinstance(n, p.HashJoin) for n in walk(child)):
            parts[number] = p.Pipeline(
                child, node.inputs, device=child.device, estimate=child.estimate
            )
    if not parts:
        return _unfused(node, inputs, reason, context)
    check_room(node.body, context)
    operators = Operators(OPERATORS, num_bytes)
    tables: list[Table] = []
    for number, child in enumerate(node.body.children):
        if number in parts:
            tables.append(pipeline(parts[number], inputs, context))
        else:
            tables.append(run_operators(child, inputs, context, operators))
    kernels = [context.receipts.pop(id(part))() for part in parts.values()]
    fused = f"{sum(r.fused for r in kernels)} of {len(kernels)} parts below run in kernels"
    done = PipelineReceipt(f"{reason}; {fused}")
    context.receipts[id(node)] = lambda: done
    table: Table = OPERATORS[type(node.body)](node.body, tuple(tables), context)
    return table


# Kernels


def _fused(node: p.Pipeline, inputs: tuple[Table, ...], context: Context) -> Table:
    """Run a pipeline's kernels; raises `NotFusable`, and `_Unfused` where only this run has no answer."""
    learnt = context.memory.pipeline(node).feedback
    for _ in range(ATTEMPTS):
        context.check()
        try:
            return _run(node, inputs, context, learnt)
        except _Again:
            continue
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            # The first time, cached columns go, and the operator runs again
            if learnt.short_of_memory:
                raise _Unfused(SHORT) from error
            learnt.short_of_memory = True
            raise
    raise _Unfused("its result did not settle")


def _run(node: p.Pipeline, inputs: tuple[Table, ...], context: Context, learnt: Feedback) -> Table:
    start = time.perf_counter()
    relations = Relations(inputs, context, learnt.repeating)
    prepared, ready, origin = _prepared(node, relations, context, learnt)
    if ready is None:
        raise _Unfused("the kernel is being compiled")
    launched = time.perf_counter()
    _hold(node, ready, context)
    try:
        memory, words = ready.launches.run(relations.columns)
    finally:
        context.hold(node, -ready.launches.nbytes)
    context.bytes_read += ready.receipt.bytes
    states = ready.states_in(words)
    done = partial(of_one_run, ready.receipt, [state[ROWS] for state in states], origin)
    loading, preparing = relations.loading, launched - start - relations.loading
    try:
        _check(prepared, ready, words, states, context.memory.pipeline(node))
        table = _result(node.body, prepared, ready, memory, words, relations)
    except _Unfused as found:
        found.receipt = done(0.0, loading, preparing)
        raise
    filtered = isinstance(node.body, p.FilterRows) and p.aggregate_of(node.body) is not None
    if filtered and prepared.condition is None:
        table = filter_rows(node.body, (table,), context)
    if prepared.remark is not None:
        context.remarks[id(node)] = prepared.remark
    learnt.short_of_memory = False
    seconds = time.perf_counter() - launched
    context.receipts[id(node)] = partial(done, seconds, loading, preparing)
    return table


def _hold(node: p.Pipeline, ready: Ready, context: Context) -> None:
    """Count the memory of indexes and groups towards the limit until the kernels have run."""
    size = ready.launches.nbytes
    try:
        context.hold(node, size)
    except MemoryLimitError as error:
        context.hold(node, -size)
        raise _Unfused(SHORT) from error


def _prepared(
    node: p.Pipeline, relations: Relations, context: Context, learnt: Feedback
) -> tuple[CompiledPipeline, Ready | None, Origin]:
    """Return the kernels for these columns, those of the last run if they fit, their launches, and where their code came from.

    There are no launches while a thread compiles, which is waited for where operators would have to run in chunks: TPC-H SF100's
    Q21 takes 1.2 s under 20 GB then, and more than 25 without.  Another run may lay them out anew meanwhile: these serve this one.
    """
    memory = context.memory.pipeline(node)
    held = memory.kernels
    origin: Origin = "memory"
    if not isinstance(held, CompiledPipeline) or not relations.find(held.known):
        held = generated(node, relations, context, learnt, _estimate(node.body))
        memory.kernels = held
        made = held.codes.done() and held.codes.exception() is None
        origin = held.codes.result()[1] if made else "compiler"
    ready = held.ready
    if not held.codes.done() and unfused_chunks(node.body, context) is not None:
        compiled: Future[None] = Future()
        held.codes.add_done_callback(lambda _: compiled.set_result(None))
        wait(compiled)
    if ready is None and held.codes.done():
        if isinstance(error := held.codes.exception(), NotCompiled):
            memory.kernels = None  # the next run tries again
            raise _Unfused(compiler_refusal(error))
        ready = held.ready = laid_out(held, relations, learnt, _estimate(node.body))
    return held, ready, origin


def _estimate(body: p.Physical) -> float | None:
    """How many groups are expected, or rows that come out."""
    groups = p.aggregate_of(body)
    return body.estimate if groups is None else groups.estimate


def _check(
    prepared: CompiledPipeline,
    ready: Ready,
    words: Any,
    states: list[list[int]],
    memory: PipelineMemory,
) -> None:
    """Look at what the kernels reported; raises `_Again` or `_Unfused` where the answer is void."""
    learnt = memory.feedback
    if any(state[-1] for state in states):
        raise _Unfused(DOUBT)
    indexes = zip(prepared.stages.indexes, states, strict=True)
    repeating = {i.number for i, state in indexes if i.unique and state[REPEATED]}
    if repeating <= learnt.repeating and repeating:
        raise _Unfused("keys of a build side repeat")
    if repeating:
        learnt.repeating |= repeating
        memory.kernels = None
        raise _Again
    sink = ready.sink
    if _values(words, sink.doubt)[-1]:
        raise _Unfused(DOUBT)
    if sink.full is not None and _values(words, sink.full)[0]:
        learnt.slots, prepared.ready = GROWTH * sink.groups, None
        raise _Again
    if sink.unpacking is not None and _values(words, sink.unpacking.lost)[0]:
        learnt.count_bits = 2 * sink.unpacking.bits
        memory.kernels = None
        raise _Again
    if isinstance(sink.picking, ComingOut) and _values(words, sink.picking.too_long)[0]:
        learnt.long_groups = True
        memory.kernels = None
        raise _Again
    if sink.counter is not None:
        count = int(_values(words, sink.counter)[0])
        if count > sink.lists[0].length:
            learnt.listed, prepared.ready = check_rows(count, "The join"), None
            raise _Again
    better = far_off(ready.indexes, [state[ROWS] for state in states], learnt.built)
    if better:
        learnt.built |= better
        prepared.ready = None  # the next run lays its memory out for them


def _result(
    body: p.Physical,
    prepared: CompiledPipeline,
    ready: Ready,
    memory: Memory,
    words: Any,
    relations: Relations,
) -> Table:
    main, sink = prepared.stages.main, ready.sink
    if sink.counter is not None and sink.picking is None:
        count = int(_values(words, sink.counter)[0])
        rows = {
            number: memory.column(span.part(0, count), INT32)
            for number, span in zip(main.rows_out, sink.lists, strict=True)
        }
        if main.rows_out == (0,) and count > 1:
            rows[0] = _ascending(rows[0])  # as operators give them
        return Table(late_columns(main, relations, rows, count), count)
    if sink.picking is not None:
        count, bounds = sink.picking.found(_values(words, sink.picking.state))
        if main.counted in bounds and bounds[main.counted][1] >= MOST_FOLDED:
            raise _Unfused(f"a group has {MOST_FOLDED:,} rows or more")
        groups = p.aggregate_of(body)
        assert groups is not None
        columns = groups.columns if prepared.condition is None else body.columns
        finisher = finisher_of(main, sink.picking, columns)
        return only(finisher.table(memory, count, bounds, relations), columns)
    spans = {"out_i": sink.out_i, "out_f": sink.out_f}
    places = sink.results
    arrays = []
    for number in range(len(main.accumulators)):
        array, row = places[number]
        values = _values(words, spans[array].part(row * sink.groups, sink.groups))
        arrays.append(values.view(np.float64) if array == "out_f" else values)
    if main.counted is not None and int(arrays[main.counted].max()) >= MOST_FOLDED:
        raise _Unfused(f"a group has {MOST_FOLDED:,} rows or more")
    return on_host(*result_registers(main, arrays))


def _ascending(rows: plc.Column) -> plc.Column:
    order, nulls = [plc.types.Order.ASCENDING], [plc.types.NullOrder.AFTER]
    return plc.sorting.sort(plc.Table([rows]), order, nulls).columns()[0]


def _values(words: Any, span: BufferSpan) -> Any:
    """An array in the small buffer."""
    return words[span.start // 8 : span.start // 8 + span.length]
