"""A pipeline's run by kernels on the CPU: from encoded columns to the result's (`operators.run_pipeline` says when)."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial

from ....codegen.compile_pipeline import Limits, Stages, selected, stages
from ....codegen.listing import operations
from ....codegen.typed_values import NotFusable
from ....plan import physical as p
from ....plan.device_costs import costs_of
from ....plan.expr import Column
from ....plan.pipeline_steps import PipelineSteps
from ....plan.text.concealed_text import concealed_tree
from ...context import Context, Feedback, Origin, PipelineReceipt
from ...pipeline_backend import Done, Retry, Void, compiling, of_every_run, of_one_run
from ..memory.ask_memory import ask_kernels
from ..rows import filter_rows
from ..table import Table
from . import launch
from .finish import finished, selected_rows
from .pipeline_inputs import KnownInputs, Leaves

# Where rows come in the order of a key, each thread touches its own stretch of groups
ROWS_A_GROUP_IN_ORDER = 1
LARGEST_IN_ORDER = 1 << 24
# Rows that operators get through while a kernel compiles
UNFUSED_FIRST_ROWS = 10_000_000
DROPPING = p.FilterRows | p.HashJoin | p.NestedLoopJoin


@dataclass
class PreparedPipeline:
    """Kernels made for these very columns of leaves with so many rows; other columns, after a file has changed, need others."""

    known: KnownInputs
    kernels: launch.Kernels
    codes: Future[tuple[None, Origin]]
    receipt: PipelineReceipt


class Attempt:
    """One run of a pipeline by kernels: an `operators.pipeline_backend.PipelineAttempt`."""

    def __init__(
        self, node: p.Pipeline, inputs: tuple[Table, ...], context: Context, feedback: Feedback
    ) -> None:
        self._node, self._inputs, self._context = node, inputs, context
        self._feedback = feedback
        self._leaves: Leaves  # as soon as it is known which columns will be read

    def _found(self, wanted: Collection[Column], widens: bool = False) -> Leaves:
        return Leaves(self._inputs, wanted, self._feedback.repeating, self._context, widens)

    @property
    def loading(self) -> float:
        return self._leaves.loading

    def fits(self, kernels: PreparedPipeline) -> bool:
        known = kernels.known
        self._leaves = leaves = self._found(known.wanted)
        if leaves.find(known):
            return leaves.fits(known.other_uses, known.other_rows)
        if not leaves.fits(known.uses, known.rows):
            return False
        kernels.known = leaves.renewed(known)
        return True

    def compile(self, slotted: p.Pipeline | None) -> PreparedPipeline:
        steps, context = (slotted or self._node).steps, self._context
        self._leaves = leaves = self._found(steps.columns_read, slotted is not None)
        made = _stages(steps, self._node.cut, leaves, context)
        kernels = launch.compiled(made, partial(concealed_tree, steps.body), context)
        rows = tuple((chain.source, leaves.rows(chain.source)) for chain in steps.chains)
        few = sum(count for _, count in rows) < UNFUSED_FIRST_ROWS * len(kernels.paths)
        in_background = context.fuse == "auto" and few and not kernels.are_stored
        codes = compiling(partial(launch.fetch, kernels), in_background)
        known = leaves.known(launch.columns_read(made), [leaf for leaf, _ in rows])
        size = sum(column.nbytes for column in leaves.columns_of(known))
        receipt = of_every_run(made, kernels.paths, made.indexes, size, operations(made.main))
        return PreparedPipeline(known, kernels, codes, receipt)

    def load(self, kernels: PreparedPipeline) -> None:
        for function in kernels.kernels.functions:
            function.load()

    def launch(self, kernels: PreparedPipeline) -> Done[Table] | Retry | Void:
        node, leaves, context = self._node, self._leaves, self._context
        stages = kernels.kernels.stages
        ask_kernels(node, stages, context)
        rows = [leaves.count(made.relations[0].leaf) for made in stages.programs]
        receipt = self._receipt(kernels, rows)
        expected = kernels.kernels.checked + sum(rows)
        context.progress.expect(expected, receipt.bytes, counts_rows=True)
        done = launch.run(kernels.kernels, rows, leaves, context, node.cut)
        if done.repeating:
            repeating = self._feedback.repeating.union(done.repeating)
            return Retry(replace(self._feedback, repeating=repeating))
        context.bytes_read += receipt.bytes

        def facts() -> PipelineReceipt:
            return receipt

        if done.doubt is not None:
            return Void(done.doubt, facts)
        cut = node.cut is not None
        if stages.main.selects:
            return Done(selected_rows(node.steps.chain, done.outcome, leaves, cut), facts)
        table = finished(stages.main, done.outcome, leaves, context, cut)
        if node.steps.condition is not None:
            table = filter_rows(node.steps.condition, (table,), context)
        return Done(table, facts)

    def _receipt(self, kernels: PreparedPipeline, rows: list[int]) -> PipelineReceipt:
        """Return what is known before a run through so many rows: kernels may be made for more stored ones than there are."""
        if not kernels.known.reads_stored_rows:
            return kernels.receipt
        size = sum(column.nbytes for column in self._leaves.columns_of(kernels.known))
        *built, gone_through = rows
        return replace(of_one_run(kernels.receipt, built), rows=gone_through, bytes=size)


def _stages(
    steps: PipelineSteps, first: p.FirstRows | None, leaves: Leaves, context: Context
) -> Stages:
    if first is not None and steps.groups is None:
        try:
            return stages(steps, leaves, Limits(0), first.order)
        except NotFusable:
            if not any(isinstance(n.node, DROPPING) for n in steps.chain.steps):
                raise  # operators need no row numbers of all rows
    if steps.is_selection:
        return Stages((selected(steps.chain, leaves),), ())
    leaf, groups = steps.source, steps.groups
    costs = costs_of("cpu")
    share, largest = costs.rows_a_group, costs.most_groups
    if groups is not None and any(leaves.in_order(leaf, key) for key in groups.keys):
        share, largest = ROWS_A_GROUP_IN_ORDER, LARGEST_IN_ORDER
    limit = max(costs.group_limit, min(leaves.rows(leaf) // share, largest))
    # The operators' grouping takes as long as hash tables do (SF1, 6 M rows, 0.8 M groups: 0.48 s of CPU time to 0.57 s), and where
    # groups are few twice as long (a million rows, 6,434 groups: 45 ms to 28)
    may_hash = context.fuse == "always" or (groups is not None and leaves.repeat(leaf, groups.keys))
    return stages(steps, leaves, Limits(limit, may_hash=may_hash))
