"""How a pipeline runs, the same on each backend, and what becomes of one that no kernels hold.

    look up ─ known kernels fit ────────────► launch ─► done
       │                                   ▲     ├────► retry: the run found out what its kernels, or their memory, have to be made for
       └─ else generate ─► compile ─► load ┘     └────► void: the answer is in doubt, or there is no room
                 │            └───────────────────────► void: a thread still compiles, or the compiler failed
                 ├─► split: a build side becomes a pipeline of its own, for all runs to come
                 └─► refused: operators run, for all runs whose inputs have as many rows

A retry starts at the top, with what was found out in the pipeline's memory.  Of what is void operators run the body once.  Of what is
refused they run the last operator alone, over pipelines of what is below it, as far as that joins.

Pipelines of which one build side is a pipeline of its own, since its joins multiply its rows: a build side's index knows a row by its number in the leaf.  Where joins of the side find several rows for one of the leaf's, that
number says too little: another pipeline lists the rows of the side first, and each then has a number again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Generic, cast

from ..codegen.compile.compiler import NotCompiled
from ..codegen.compile.kernel_files import compiler_refusal
from ..codegen.typed_values import Multiplied, NotFusable
from ..plan import physical as p
from ..plan.expr import Value
from ..plan.node import transform_up
from ..plan.pipeline_steps import steps_of
from ..plan.shapes.plan_model import ShapedPart
from ..records import dataclass
from ..stopping import wait
from .column_tiers import Lift
from .context import (
    Apart,
    Context,
    Feedback,
    Origin,
    PipelineMemory,
    PipelineReceipt,
    Refused,
    ShapeMemory,
    is_lasting,
)
from .host_memory import NoRoom
from .pipeline_backend import (
    SHORT,
    Done,
    Facts,
    K,
    PipelineAttempt,
    PipelineBackend,
    Retry,
    Void,
)
from .run_unfused import Operator, Operators, T, run_operators
from .scan_runs import selected
from .streaming import TooLarge, check_room, run_meanwhile, run_pipeline, unfused_chunks

ATTEMPTS = 8  # each of which learns something that the next one needs

COMPILING = "the kernel is being compiled"
UNSETTLED = "its result did not settle"
REMARK = "a build side that its joins multiply is stored first"
FROM_MEMORY: Origin = "memory"


def pipelines(
    operators: Operators[T],
    attempt: Callable[[p.Pipeline, tuple[T, ...], Context, Feedback], PipelineAttempt[T, K]],
    lift: Lift,
    is_out_of_memory: Callable[[Exception], bool] = lambda error: False,
    settled: Callable[[T], T] = lambda table: table,
    prepared: Callable[[Operator[T]], Operator[T]] = lambda operator: operator,
    store_columns: Callable[[p.ParquetScan, Context], None] = lambda scan, context: None,
) -> Operator[T]:
    """Return a backend's operator for pipelines, in chunks where their columns do not fit; `prepared` makes the device ready for one run."""

    def pipeline(node: p.Pipeline, inputs: tuple[T, ...], context: Context) -> T:
        return run_fused(node, inputs, context, backend)

    kinds = attempt, is_out_of_memory, settled, lift, store_columns
    backend = PipelineBackend(operators, prepared(pipeline), *kinds)
    return partial(run_pipeline, backend=backend)


def run_fused(
    node: p.Pipeline, inputs: tuple[T, ...], context: Context, backend: PipelineBackend[T, K]
) -> T:
    """Run a pipeline by kernels where they hold it, else one operator at a time; the result is the same.

    Raises `TooLarge` when its operators should rather run in chunks.
    """
    if context.fuse == "never":  # a chunk, or a side of it, that no kernel holds
        return run_operators(node.body, inputs, context, backend.operators)
    return _Run(node, inputs, context, backend, context.memory.pipeline(node)).table()


@dataclass(frozen=True, slots=True)
class _Shape(Generic[K]):
    """What other texts have left, and the values of this one's constants."""

    memory: ShapeMemory[K]
    values: Sequence[Value]
    node: p.Pipeline

    @classmethod
    def of(cls, part: ShapedPart[p.Physical], node: p.Pipeline, context: Context) -> _Shape[K]:
        return cls(cast("ShapeMemory[K]", context.memory.shape(part.part)), part.values, node)

    def kernels(self, attempt: PipelineAttempt[T, K]) -> tuple[K, bool]:
        """Return kernels of another text with this one's constants, where they fit, or new ones; and whether they are another's.

        Raises `NotFusable`, which serves other texts too where no rows of other pipelines are read.
        """

        def fits(made: K | NotFusable) -> bool:
            if isinstance(made, NotFusable):
                return True
            with suppress(NotFusable):
                failed = made.codes.done() and made.codes.exception() is not None
                return not failed and attempt.fits(made)
            return False

        def make(slotted: p.Pipeline) -> K | NotFusable:
            try:
                return attempt.compile(slotted)
            except NotFusable as reason:
                if self.node.inputs or isinstance(reason, Multiplied) or not is_lasting(self.node):
                    raise
                return reason

        known = self.memory.kernels
        found = known.find(self.values, fits)
        is_known = found is not None
        if found is None:
            try:
                found = known.make(self.values, make)
            except NotFusable:  # which names nodes with slots, or counts rows that are not there
                found = attempt.compile(None)
        if isinstance(found, NotFusable):
            raise NotFusable(found.message)
        return found, is_known


@dataclass(slots=True)
class _Run(Generic[T, K]):
    """One run of a pipeline, with what earlier ones left."""

    node: p.Pipeline
    inputs: tuple[T, ...]
    context: Context
    backend: PipelineBackend[T, K]
    memory: PipelineMemory[K]

    def table(self) -> T:
        memory, refused = self.memory, self.memory.refused
        remembered: Apart | Refused | None = memory.apart
        if refused is not None and refused.rows == self._rows():
            remembered = refused
        # Operators run outside of the handlers of errors, which keep what was allocated before memory ran out
        match remembered or self._outcome():
            case Done(table=table):
                return table
            case Void(reason=reason, facts=facts):
                return self._run_unfused(reason, facts or PipelineReceipt)
            case Refused(reason=reason):
                return self._run_over_parts(reason)
            case found:
                return self._split(found)

    # Kernels

    def _shape(self) -> _Shape[K] | None:
        """What other texts have left, for runs that have no kernels of their own or find out what others should know."""
        part = self.context.shaped.get(id(self.node))
        return None if part is None else _Shape.of(part, self.node, self.context)

    def _rows(self) -> tuple[int, ...]:
        return tuple(table.num_rows for table in self.inputs)

    def _outcome(self) -> Done[T] | Void | Apart | Refused:
        """Run kernels until they give an answer, or it is clear that they do not."""
        memory = self.memory
        if memory.kernels is None and (shape := self._shape()) is not None:
            memory.feedback = shape.memory.feedback
        for attempts in range(ATTEMPTS):
            if attempts:  # who runs the node has just looked
                self.context.check()
            try:
                outcome = self._attempt()
            except NotFusable as refused:
                return self._split_or_refuse(refused)
            except NotCompiled as error:
                return Void(compiler_refusal(error))
            except (MemoryError, RuntimeError) as error:
                if not self.backend.is_out_of_memory(error):
                    raise
                # The first time, cached columns go, and the operator runs again
                if not memory.short_of_memory:
                    memory.short_of_memory = True
                    raise
                chunk = self.context.chunk.get(id(self.node.steps.source))
                if chunk is not None and sum(len(part.groups) for part in selected(chunk.scan)) > 1:
                    raise NoRoom(SHORT) from None  # a smaller chunk needs less
                return Void(SHORT)
            if type(outcome) is not Retry:
                return outcome
            self._learn(outcome.feedback)
            if outcome.other_kernels:
                memory.kernels = memory.compiled = None
                if (shape := self._shape()) is not None:
                    shape.memory.kernels.clear()
        return Void(UNSETTLED)

    def _split_or_refuse(self, refused: NotFusable) -> Apart | Refused:
        memory = self.memory
        memory.apart = apart(self.node, refused)
        if memory.apart is not None:
            return memory.apart
        found = Refused(self._rows(), refused.message)
        if is_lasting(self.node):
            memory.refused = found
        return found

    def _attempt(self) -> Done[T] | Retry | Void:
        memory, compiling = self.memory, 0.0
        attempt = self.backend.attempt(self.node, self.inputs, self.context, memory.feedback)
        kernels, origin = memory.kernels, FROM_MEMORY
        if kernels is not None and not attempt.fits(kernels):
            kernels = None
        if kernels is None or memory.compiled is not kernels:
            start = time.perf_counter()
            found = self._kernels(attempt, kernels)
            if found is None:
                return Void(COMPILING)
            kernels, origin = found
            attempt.load(kernels)
            memory.compiled = kernels
            compiling = time.perf_counter() - start - attempt.loading
        launched = time.perf_counter()
        outcome = attempt.launch(kernels)
        if type(outcome) is Retry or outcome.facts is None:
            return outcome
        times = time.perf_counter() - launched, attempt.loading, compiling
        facts = partial(_with_times, outcome.facts, origin, *times)
        if type(outcome) is Void:
            return Void(outcome.reason, facts)
        memory.short_of_memory = False
        if outcome.feedback is not None:
            self._learn(outcome.feedback)
        self.context.receipts[id(self.node)] = facts
        return outcome

    def _learn(self, feedback: Feedback) -> None:
        self.memory.feedback = feedback
        if (shape := self._shape()) is not None:
            shape.memory.feedback = feedback

    def _kernels(
        self, attempt: PipelineAttempt[T, K], kernels: K | None
    ) -> tuple[K, Origin] | None:
        """Return kernels for these columns, those of the last run or another text if they fit, and where their code came from.

        There are none while a thread compiles them, which is waited for where operators would have to run in chunks: TPC-H SF100's
        Q21 takes a GPU 1.2 s under 20 GB then, and more than 25 without.
        """
        memory, known, shape = self.memory, kernels is not None, self._shape()
        if kernels is None:
            made = (attempt.compile(None), False) if shape is None else shape.kernels(attempt)
            kernels, known = made
            memory.kernels, memory.compiled = kernels, None
        codes = kernels.codes
        if not codes.done():
            if unfused_chunks(self.node.steps, self.context) is None:
                return None
            with suppress(NotCompiled):
                wait(codes)
        error = codes.exception()
        if error is not None:
            memory.kernels = None  # the next run tries again
            raise error
        return kernels, FROM_MEMORY if known else codes.result()[1]

    # Operators

    def _run_unfused(self, reason: str, facts: Facts = PipelineReceipt) -> T:
        """Run the body one operator at a time."""
        node, context = self.node, self.context
        check_room(node.steps, context)
        made = None
        if reason == COMPILING:
            made = run_meanwhile(node, self.inputs, context, self.backend)
        table, chunks = made or (self._run_operators(node.body), 0)
        context.receipts[id(node)] = lambda: replace(facts(), reason=reason, chunks=chunks)
        return table

    def _run_over_parts(self, reason: str) -> T:
        """Run the last operator of a body that no kernel holds, over pipelines of what is below it as far as that joins or drops most rows."""
        node, context, backend = self.node, self.context, self.backend
        parts = self.memory.parts
        for number, child in enumerate(node.body.children):
            if number not in parts and ((steps := steps_of(child)).joins or steps.drops_most):
                placed = {"device": child.device, "estimate": child.estimate}
                # What another thread was faster with stays
                parts.setdefault(number, p.Pipeline(steps, node.inputs, **placed))
        if not parts:
            return self._run_unfused(reason)
        check_room(node.steps, context)
        made: T | None = None
        tables: list[T] = []
        held = 0
        shares = context.progress.parts(len(node.body.children) + 1)
        try:
            for number, child in enumerate(node.body.children):
                context.progress.within(shares[number])
                part = parts.get(number)
                table: T = (
                    self._run_operators(child)
                    if part is None
                    else backend.pipeline(part, self.inputs, context)
                )
                tables.append(table)
                size = backend.operators.num_bytes(table)
                held += size
                context.hold(node, size)
            context.progress.within(shares[-1])
            made = backend.operators.by_node[type(node.body)](node.body, tuple(tables), context)
        except TooLarge:  # whose chunks may be those of another scan
            tables.clear()
        finally:
            context.hold(node, -held)
        receipts = [context.receipts.pop(id(part), PipelineReceipt) for part in parts.values()]
        if made is None:
            return self._run_unfused(reason)
        kernels = [receipt() for receipt in receipts]
        fused = f"{sum(r.fused for r in kernels)} of {len(kernels)} parts below run in kernels"
        done = PipelineReceipt(f"{reason}; {fused}")
        context.receipts[id(node)] = lambda: done
        return made

    def _split(self, parts: Apart) -> T:
        """Run the build side that is a pipeline of its own, then the rest of the body over its rows."""
        context, run, stored = self.context, self.backend.pipeline, None
        first_share, last_share = context.progress.parts(2)
        with suppress(TooLarge):  # whose chunks are those of another scan
            context.progress.within(first_share)
            stored = run(parts.side, self.inputs, context)
        context.progress.within(last_share)
        if stored is None:
            return self._run_unfused("a build side has to be read in chunks")
        table: T = run(parts.rest, (*self.inputs, stored), context)
        first, last = (context.receipts.pop(id(part)) for part in (parts.side, parts.rest))
        context.remarks[id(self.node)] = REMARK
        context.receipts[id(self.node)] = lambda: together(first(), last())
        return table

    def _run_operators(self, body: p.Physical) -> T:
        return run_operators(body, self.inputs, self.context, self.backend.operators)


def _with_times(
    facts: Facts, origin: Origin, seconds: float, loading: float, preparing: float
) -> PipelineReceipt:
    compiling = max(0.0, preparing)
    return replace(
        facts(), origin=origin, seconds=seconds, load_seconds=loading, compile_seconds=compiling
    )


def apart(node: p.Pipeline, refused: NotFusable) -> Apart | None:
    """Return a pipeline in two that no kernels hold as one; None where that is not for the rows of a part of its body."""
    if not isinstance(refused, Multiplied):
        return None
    side = refused.side
    if not any(chain.node is side for chain in node.steps.chains):
        return None
    placement: Any = {"device": node.device, "reason": node.reason}
    stored = p.Stored(len(node.inputs), side.columns, estimate=side.estimate, **placement)
    body = transform_up(node.body, lambda part: stored if part is side else None)
    first = p.Pipeline(steps_of(side), node.inputs, estimate=side.estimate, **placement)
    inputs = (*node.inputs, first)
    return Apart(first, p.Pipeline(steps_of(body), inputs, estimate=node.estimate, **placement))


def together(first: PipelineReceipt, last: PipelineReceipt) -> PipelineReceipt:
    """What both did; the kernel is that of the last."""
    reasons = dict.fromkeys(r.reason for r in (first, last) if r.reason is not None)
    return replace(
        last,
        reason="; ".join(reasons) or None,
        bytes=first.bytes + last.bytes,
        seconds=first.seconds + last.seconds,
        load_seconds=first.load_seconds + last.load_seconds,
        compile_seconds=first.compile_seconds + last.compile_seconds,
        builds=(*first.builds, *last.builds),
    )
