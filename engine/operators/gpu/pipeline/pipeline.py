"""A pipeline's run by kernels on the GPU: over encoded columns and indexes to the result (`operators.run_pipeline` says when)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pylibcudf as plc

from ....codegen.groups.results import result_registers
from ....codegen.indexes.layers import REPEATED
from ....errors import MemoryLimitError
from ....plan import physical as p
from ....storage.columns.encodings import Array
from ...context import Context, Feedback, PipelineReceipt
from ...pipeline_backend import SHORT, Done, Retry, Void, of_one_run
from ..columns import INT32
from ..memory.buffers import Memory, give_back
from ..memory.device import make_room
from ..memory.host_table import HostColumns, note
from ..memory.upload import uploaded
from ..rows import filter_rows
from ..table import Table, check_rows, only
from .compiled_pipeline import CompiledPipeline, generated, laid_out
from .finish import Finisher
from .gather import late_columns
from .pipeline_inputs import Relations
from .ready_pipeline import ComingOut, Ready, still_in_order
from .regions import BufferSpan, far_off

GROWTH = 4
MOST_FOLDED = 1 << 31  # values of a sum in two parts

DOUBT = "a value was close to 64 bits"
MANY = f"a group has {MOST_FOLDED:,} rows or more"


class Attempt:
    """One run of a pipeline by kernels: an `operators.pipeline_backend.PipelineAttempt`."""

    def __init__(
        self, node: p.Pipeline, inputs: tuple[Table, ...], context: Context, feedback: Feedback
    ) -> None:
        self._node, self._context, self._feedback = node, context, feedback
        self._relations = Relations(inputs, context, feedback.repeating)
        self.loading = 0.0

    def fits(self, kernels: CompiledPipeline) -> bool:
        relations = self._relations
        if not relations.find(kernels.known):
            return False
        return not self._context.chunk or still_in_order(kernels.stages.main, relations)

    def compile(self, slotted: p.Pipeline | None) -> CompiledPipeline:
        node = slotted or self._node
        self._relations.forget(widens=slotted is not None)
        made = generated(node, self._relations, self._context, self._feedback, _estimate(node))
        self.loading = self._relations.loading
        return made

    def load(self, kernels: CompiledPipeline) -> None:
        if kernels.ready is None:
            self._laid_out(kernels)

    def _laid_out(self, kernels: CompiledPipeline) -> Ready:
        """Lay out launches; another run may do so anew meanwhile: these serve this one."""
        estimate = _estimate(self._node)
        made = kernels.ready = laid_out(kernels, self._relations, self._feedback, estimate)
        return made

    def launch(self, kernels: CompiledPipeline) -> Done[Table] | Retry | Void:
        node, context, relations = self._node, self._context, self._relations
        ready = kernels.ready or self._laid_out(kernels)
        is_limited = context.memory_limit is not None
        if is_limited:
            if not _hold(node, ready, context):
                return Void(SHORT)
            make_room(ready.launches.nbytes, context)
        try:
            memory, words = ready.launches.run(relations)
        finally:
            if is_limited:
                context.hold(node, -ready.launches.nbytes)
        rows, size = ready.receipt.rows, ready.receipt.bytes
        if ready.varies:
            rows, size = ready.read(relations)
        context.bytes_read += size
        built, is_noticed = ready.report(words)
        facts = partial(_facts, ready.receipt, built, rows, size)
        asks = is_noticed or ready.sink.counter is not None
        found = self._checked(kernels, ready, words) if asks else None
        if type(found) is Retry:
            return found
        table = found or _result(node, kernels, ready, memory, words, relations)
        give_back(memory.working)
        self.loading = relations.loading
        if isinstance(table, str):
            return Void(table, facts)
        condition = node.steps.condition
        if condition is not None and kernels.condition is None:
            table = filter_rows(condition, (table,), context)
        if kernels.remark is not None:
            context.remarks[id(node)] = kernels.remark
        known = self._feedback.built
        better = far_off(ready.indexes, built, known) if built else None
        if not better:
            return Done(table, facts)
        kernels.ready = None  # the next run lays its memory out for them
        return Done(table, facts, replace(self._feedback, built={**known, **better}))

    def _checked(self, kernels: CompiledPipeline, ready: Ready, words: Array) -> Retry | str | None:
        """Look at what the kernels reported: what to make them for, or why their answer is in doubt; None where it holds."""
        learnt, sink, states = self._feedback, ready.sink, ready.states_in(words)
        if any(state[-1] for state in states):
            return DOUBT
        indexes = zip(kernels.stages.indexes, states, strict=True)
        repeating = {i.number for i, state in indexes if i.unique and state[REPEATED]}
        if repeating <= learnt.repeating and repeating:
            return "keys of a build side repeat"
        if repeating:
            return Retry(replace(learnt, repeating=learnt.repeating | repeating))
        if _values(words, sink.doubt)[-1]:
            return DOUBT
        if sink.full is not None and _values(words, sink.full)[0]:
            kernels.ready = None
            return Retry(replace(learnt, slots=GROWTH * sink.groups), other_kernels=False)
        if sink.unpacking is not None and _values(words, sink.unpacking.lost)[0]:
            return Retry(replace(learnt, count_bits=2 * sink.unpacking.bits))
        if isinstance(sink.picking, ComingOut) and _values(words, sink.picking.too_long)[0]:
            return Retry(replace(learnt, long_groups=True))
        if sink.counter is not None:
            count = int(_values(words, sink.counter)[0])
            if count > sink.lists[0].length:
                kernels.ready = None
                listed = check_rows(count, "The join")
                return Retry(replace(learnt, listed=listed), other_kernels=False)
        return None


def _facts(known: PipelineReceipt, built: Sequence[int], rows: int, size: int) -> PipelineReceipt:
    return replace(of_one_run(known, built), rows=rows, bytes=size)


def _hold(node: p.Pipeline, ready: Ready, context: Context) -> bool:
    """Count the memory of indexes and groups towards the limit until the kernels have run; say whether there is room for it."""
    size = ready.launches.nbytes
    try:
        context.hold(node, size)
    except MemoryLimitError:
        context.hold(node, -size)
        return False
    return True


def _estimate(node: p.Pipeline) -> float | None:
    """How many groups are expected, or rows that come out."""
    return (node.steps.groups or node.body).estimate


def _result(
    node: p.Pipeline,
    prepared: CompiledPipeline,
    ready: Ready,
    memory: Memory,
    words: Array,
    relations: Relations,
) -> Table | str:
    """Return the table, or why it is in doubt."""
    main, sink = prepared.stages.main, ready.sink
    if sink.counter is not None and sink.picking is None:
        count = int(_values(words, sink.counter)[0])
        rows = {
            number: memory.column(span, INT32, count)
            for number, span in zip(main.rows_out, sink.lists, strict=True)
        }
        if main.rows_out == (0,) and count > 1:
            rows[0] = _ascending(rows[0])  # as operators give them
        context = relations.context
        columns = late_columns(main, relations, rows, count, context=context)
        if type(columns) is HostColumns:
            note(node, count, context)
        return Table(columns, count)
    if sink.picking is not None:
        count, bounds = sink.picking.found(_values(words, sink.picking.state))
        if main.counted in bounds and bounds[main.counted][1] >= MOST_FOLDED:
            return MANY
        finisher = prepared.finisher  # other texts share the picking, and not the program
        if finisher is None or finisher.picking is not sink.picking or finisher.program is not main:
            finisher = prepared.finisher = Finisher(main, prepared.columns, sink.picking)
        made = finisher.table(memory, count, bounds, relations)
        more = main.late and len(made.columns) > len(prepared.columns)
        return only(made, prepared.columns) if more else made
    arrays = sink.accumulators(words)
    if main.counted is not None and int(arrays[main.counted].max()) >= MOST_FOLDED:
        return MANY
    results, length = result_registers(main, arrays)
    return Table(HostColumns(results, uploaded), length)


def _ascending(rows: plc.Column) -> plc.Column:
    order, nulls = [plc.types.Order.ASCENDING], [plc.types.NullOrder.AFTER]
    return plc.sorting.sort(plc.Table([rows]), order, nulls).columns()[0]


def _values(words: Array, span: BufferSpan) -> Any:
    """An array in the small buffer."""
    return words[span.start // 8 : span.start // 8 + span.length]
