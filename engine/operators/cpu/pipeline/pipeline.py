"""A pipeline's run by kernels on the CPU: from encoded columns by way of indexes to the result's (`operators.run_pipeline` says when)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from ....codegen.compile.kernel_files import at_once
from ....codegen.compile_pipeline import Limits, Stages, selected, stages
from ....codegen.cpu import host_functions, host_kernels
from ....codegen.cpu.hash_groups import DENSE
from ....codegen.cpu.host_functions import HostFunction
from ....codegen.cpu.host_indexes import build
from ....codegen.cpu.kept_rows import KeptRows, compared, kept_rows, zones_with, zones_within
from ....codegen.emit import operations
from ....codegen.indexes.layers import REPEATED, Buckets
from ....codegen.loop import Machine, Number
from ....codegen.program import Program, once
from ....codegen.ranges import I64_MAX
from ....codegen.typed_values import NotFusable
from ....plan import physical as p
from ....plan.device_costs import costs_of
from ....plan.expr import Column
from ....plan.pipeline_steps import PipelineSteps
from ....plan.text.concealed_text import concealed_tree
from ....records import dataclass
from ....storage.columns.encodings import Array
from ....storage.columns.row_zones import zones_of
from ...context import Context, Feedback, Origin, PipelineReceipt, latest
from ...known_inputs import KnownInputs
from ...pipeline_backend import Done, Retry, Void, compiling, of_every_run, of_one_run
from ..memory.ask_memory import ask_kernels
from ..rows import filter_rows
from ..table import Table
from .finish import finished, passing, selected_rows
from .first_rows import Bound, FirstRowsListing, Ranges
from .pipeline_inputs import Leaves

# Where rows come in the order of a key, each thread touches its own stretch of groups
ROWS_A_GROUP_IN_ORDER = 1
LARGEST_IN_ORDER = 1 << 24
# Rows of which it may pay to look which have keys that are looked for
ROWS_WORTH_A_LOOK = 1 << 17
# Rows that operators get through while a kernel compiles
UNFUSED_FIRST_ROWS = 10_000_000
CLOSE = "a value was close to 64 bits"
MANY = 1 << 31  # rows of a group from which on sums may not be exact
DROPPING = p.FilterRows | p.HashJoin | p.NestedLoopJoin


@dataclass(frozen=True)
class Kernels:
    """The kernels of `compile_pipeline.programs`, ready to be compiled, and their files."""

    stages: Stages
    functions: tuple[HostFunction, ...]
    shared: tuple[HostFunction, ...]
    paths: tuple[Path, ...]

    @cached_property
    def checked(self) -> int:
        """The slots of hashed indexes that are looked at again."""
        indexes = (made.index for made in self.stages.programs)
        return sum(i.slots for i in indexes if i is not None and i.unique and i.form is Buckets)

    @property
    def are_stored(self) -> bool:
        """Whether none of them has to be compiled."""
        return all(function.is_stored for function in (*self.functions, *self.shared))


@dataclass(frozen=True)
class Launched:
    """What the last kernel gives; or why its answer is in doubt, or which build sides' keys repeat against expectation.

    `left_out`: rows that it did not go through.
    """

    outcome: Any = None
    doubt: str | None = None
    repeating: tuple[int, ...] = ()
    left_out: int = 0


@dataclass
class PreparedPipeline:
    """Kernels made for these very columns of leaves with so many rows; other columns, after a file has changed, need others."""

    known: KnownInputs
    kernels: Kernels
    codes: Future[tuple[None, Origin]]
    receipt: PipelineReceipt
    are_loaded: bool = False


class Attempt:
    """One run of a pipeline by kernels: an `operators.pipeline_backend.PipelineAttempt`."""

    def __init__(
        self, node: p.Pipeline, inputs: tuple[Table, ...], context: Context, feedback: Feedback
    ) -> None:
        self._node, self._inputs, self._context = node, inputs, context
        self._feedback = feedback
        self._leaves: Leaves  # as soon as it is known which columns will be read

    def _leaves_of(self, wanted: Collection[Column], widens: bool = False) -> Leaves:
        return Leaves(self._inputs, wanted, self._feedback.repeating, self._context, widens)

    @property
    def loading(self) -> float:
        return self._leaves.loading

    def fits(self, kernels: PreparedPipeline) -> bool:
        known = kernels.known
        self._leaves = leaves = self._leaves_of(known.wanted)
        if leaves.find(known):
            return not (known.others or known.derived) or leaves.others_fit(known)
        if not leaves.fits(known):
            return False
        kernels.known = leaves.renewed(known)
        return True

    def compile(self, slotted: p.Pipeline | None) -> PreparedPipeline:
        steps, context = (slotted or self._node).steps, self._context
        self._leaves = leaves = self._leaves_of(steps.columns_read, slotted is not None)
        made = _stages(steps, self._node.cut, leaves, context)
        kernels = _kernels_of(made, cache(partial(concealed_tree, steps.body)), context)
        rows = tuple((chain.source, leaves.rows(chain.source)) for chain in steps.chains)
        few = sum(count for _, count in rows) < UNFUSED_FIRST_ROWS * len(kernels.paths)
        in_background = context.fuse == "auto" and few and not kernels.are_stored
        if not in_background:
            context.plain.clear()
        codes = compiling(partial(_fetch, kernels), in_background)
        known = leaves.known(_columns_read(made), [leaf for leaf, _ in rows])
        size = sum(column.nbytes for column in leaves.columns_of(known))
        receipt = of_every_run(made, kernels.paths, made.indexes, size, operations(made.main))
        return PreparedPipeline(known, kernels, codes, receipt)

    def load(self, kernels: PreparedPipeline) -> None:
        if not kernels.are_loaded:
            for function in kernels.kernels.functions:
                function.load()
            kernels.are_loaded = True

    def launch(self, kernels: PreparedPipeline) -> Done[Table] | Retry | Void:
        node, leaves, context = self._node, self._leaves, self._context
        stages = kernels.kernels.stages
        ask_kernels(node, stages, context)
        rows = [leaves.count(made.relations[0].leaf) for made in stages.programs]
        receipt, is_stored = kernels.receipt, bool(kernels.known.others)
        size = receipt.bytes
        if is_stored:  # kernels may be made for more rows than there are
            size = sum([column.nbytes for column in leaves.columns_of(kernels.known)])
        expected = kernels.kernels.checked + sum(rows)
        context.progress.expect(expected, size, counts_rows=True)
        done = _run(kernels.kernels, rows, leaves, context, node)
        if done.repeating:
            repeating = self._feedback.repeating.union(done.repeating)
            return Retry(replace(self._feedback, repeating=repeating))
        left_out = done.left_out
        if left_out:
            size -= left_out * sum(i.width for i in stages.main.inputs)
        context.bytes_read += size

        def facts() -> PipelineReceipt:
            *built, gone_through = rows
            found = of_one_run(receipt, built) if is_stored else receipt
            return replace(found, rows=gone_through - left_out, bytes=size)

        if done.doubt is not None:
            return Void(done.doubt, facts)
        cut = node.cut is not None
        if stages.main.selects:
            return Done(selected_rows(node.steps.chain, done.outcome, leaves, cut), facts)
        outcome, condition = done.outcome, node.steps.condition
        kept = None
        if condition is not None:
            kept = passing(stages.main, outcome, condition.predicate, context)
        table = finished(stages.main, outcome if kept is None else kept, leaves, context, cut)
        if condition is not None and kept is None:
            table = filter_rows(condition, (table,), context)
        return Done(table, facts)


# Of groups that are addressed directly, for each row that is expected to reach them: to clear and go through the rest costs as much as
# hashing.  SSB's Q4.3 at SF1 has 1.75 million numbers for some hundred rows: by hash it takes 14 ms of CPU time instead of 31
PLACES_A_ROW = 8


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
    share, largest, expected = costs.rows_a_group, costs.most_groups, None
    if groups is not None and any(leaves.in_order(leaf, key) for key in groups.keys):
        share, largest = ROWS_A_GROUP_IN_ORDER, LARGEST_IN_ORDER
    elif groups is not None and not any(call.distinct for _, call in groups.aggregates):
        expected = groups.input.estimate
    limit = min(leaves.rows(leaf) // share, largest)
    hash_limit = _hash_limit(steps, leaves, context)
    if expected is not None and expected * PLACES_A_ROW < limit:
        limit, hash_limit = int(expected * PLACES_A_ROW), I64_MAX
    return stages(steps, leaves, Limits(max(costs.group_limit, limit), hash_limit))


def _hash_limit(steps: PipelineSteps, leaves: Leaves, context: Context) -> int:
    """Return how many numbers of groups may be keys of hash tables.

    Where these are sparse, operators group as fast, unless groups have many rows (a million rows, 6,434 groups: 45 ms of CPU time by
    operators, 28 in tables).  Where they are dense, parts of them are put together without a hash: six million rows in no order and
    1.5 million groups take two quiet cores 106 ms, 155 by operators; with three more aggregates 133 and 144.
    """
    leaf, groups = steps.source, steps.groups
    if context.fuse == "always" or (groups is not None and leaves.repeat(leaf, groups.keys)):
        return I64_MAX
    return 0 if len(steps.chains) > 1 else DENSE * leaves.rows(leaf)


def _kernels_of(stages: Stages, describe: Callable[[], str], context: Context) -> Kernels:
    """Return the kernels; they are compiled when they are loaded."""
    made = [
        host_functions.compiled(each, describe, context.kernel_directory)
        for each in stages.programs
    ]
    functions, paths = zip(*made, strict=True)
    shared = host_kernels.shared_kernels(stages.main, context.kernel_directory)
    return Kernels(stages, functions, shared, paths)


def _fetch(kernels: Kernels) -> tuple[None, Origin]:
    """Bring the machine code into memory, compiled where it is not stored, and return where it came from."""
    functions = (*kernels.functions, *kernels.shared)
    missing = sum(not function.is_stored for function in functions)
    return None, latest(at_once(HostFunction.fetch, functions, missing))


def _columns_read(stages: Stages) -> list[tuple[p.Physical, Column]]:
    """Return the columns that the kernels read of leaves, each once."""
    read = {(id(leaf), c): (leaf, c) for made in stages.programs for leaf, c in made.read}
    return list(read.values())


def _arguments(made: Program, leaves: Leaves) -> list[Array]:
    """The arrays of the columns that a kernel reads, in the order of its parameters: codes, and a bitmap where there are NULLs."""
    arrays: list[Array] = []
    for leaf, column in made.read:
        arrays += leaves.columns[id(leaf), column.id].arrays
    return arrays


def _run(
    kernels: Kernels,
    counts: Sequence[int],
    leaves: Leaves,
    context: Context,
    node: p.Pipeline,
) -> Launched:
    """Run the kernels of a pipeline, each over so many rows."""
    *builds, main = zip(kernels.functions, kernels.stages.programs, counts, strict=True)
    memory: dict[str, Array] = {}
    for function, made, rows in builds:
        context.check()
        columns = _arguments(made, leaves)
        kept = _rows_kept(made, rows, memory, leaves) if rows >= ROWS_WORTH_A_LOOK else None
        deterministic = context.deterministic
        if build(function, made, columns, rows, memory, context.threads, deterministic, kept):
            return Launched(doubt=CLOSE)
        index = made.index
        assert index is not None
        if index.unique and memory[f"{index.name}_state"][REPEATED]:
            return Launched(repeating=(index.number,))
    context.check()
    return _main(*main, memory, leaves, context, node)


def _rows_kept(
    made: Program, rows: int, memory: dict[str, Array], leaves: Leaves
) -> KeptRows | None:
    """Return the only rows that may be in, by the zones of the columns that are compared, or looked for in indexes; None for all."""
    leaf = made.relations[0].leaf
    if made.ranking is not None or isinstance(leaf, p.Stored):
        return None
    asked: list[Array | None] = []
    for comparison in compared(made):
        column = leaves.columns[id(leaf), made.read[comparison.place][1].id]
        zones = zones_of(column)
        asked.append(None if zones is None else zones_within(column, zones, comparison))
    for key in made.kept_keys:
        zones = zones_of(leaves.columns[id(leaf), key.column.id])
        there = None if zones is None else zones_with(key.index, memory, zones, key.least, rows)
        asked.append(there)
    known = [there for there in asked if there is not None]
    found = np.logical_and.reduce(known) if known else None
    return None if found is None or found.all() else kept_rows(found, rows)


def _rows_of_sums(made: Program, outcome: host_kernels.Outcome) -> int:
    """The most rows of a group, where sums may not be exact for so many; counts always are."""
    if made.counted is None or not made.repeats or not _sums(made):
        return 0
    return int(outcome.arrays[made.counted].max(initial=0))


@once
def _sums(made: Program) -> bool:
    """Whether an accumulator sums integers, other than a count."""
    counts = (Number(1, Machine.I64), Number(0, Machine.I64))
    sums = (a for a in made.accumulators if a.fold == "add" and a.machine is Machine.I64)
    return not all(a.term in counts for a in sums)


def _main(
    function: HostFunction,
    made: Program,
    rows: int,
    memory: dict[str, Array],
    leaves: Leaves,
    context: Context,
    node: p.Pipeline,
) -> Launched:
    columns = _arguments(made, leaves)
    kept = _rows_kept(made, rows, memory, leaves) if rows >= ROWS_WORTH_A_LOOK else None
    left_out = 0 if kept is None else rows - kept.count
    if made.accumulators:
        taken, lock = 0, Lock()

        def ask(nbytes: int) -> None:
            nonlocal taken
            with lock:
                taken += nbytes
            context.ask(node, taken)

        given = columns, rows, context.threads, context.deterministic, memory, kept, ask
        outcome = host_kernels.run(function, made, *given)
        if _rows_of_sums(made, outcome) >= MANY:
            return Launched(doubt="a group has 2**31 rows or more")
        return Launched(outcome, CLOSE if outcome.doubt else None, left_out=left_out)
    found: list[Array] | Array | None
    if made.rows_out:
        ranges = host_kernels.ranges_of(rows, context.threads, kept)

        def listed(ranges: Ranges, bound: Bound = None) -> list[Array] | None:
            return host_kernels.list_rows(function, made, columns, ranges, memory, bound, kept)

        if made.bound is None or node.cut is None:
            found = listed(ranges)
        else:
            found = FirstRowsListing(made, node.cut, listed, leaves, context).rows(rows, ranges)
    else:
        found = host_kernels.select_rows(function, made, columns, rows, context.threads, kept)
    return Launched(found, CLOSE if found is None else None, left_out=left_out)
