"""The kernels of a pipeline for the columns of one run: generated, compiled, laid out in memory, and kept while they fit (`KnownInputs`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen import index_checks
from ....codegen.compile.kernel_files import KernelFile, at_once, kernel_file
from ....codegen.compile_pipeline import Limits, Stages, stages
from ....codegen.cuda import device_kernels, emit_groups, emit_picks
from ....codegen.cuda.accumulator_layout import Layout, layout
from ....codegen.emit import operations
from ....codegen.groups.conditions import Condition, condition_of
from ....codegen.handwritten import group_kernels
from ....codegen.indexes.layers import Buckets, Index
from ....codegen.loop import Machine
from ....codegen.program import Program
from ....codegen.ranges import I64_MAX
from ....codegen.row_sources import RowSource
from ....codegen.typed_values import Input, NotFusable
from ....plan import physical as p
from ....plan.device_costs import costs_of
from ....plan.expr import Column
from ....plan.text.concealed_text import concealed_tree
from ....records import dataclass
from ....storage.columns.encodings import EncodedColumn
from ...context import Context, Feedback, Origin, latest
from ...known_inputs import KnownInputs
from ...pipeline_backend import compiling, of_every_run
from ..memory.buffers import blank_of
from . import launch
from .finish import Finisher, wanted_of
from .late_arguments import Constants, RowsOf, constants_of, late_constants, part
from .launch import Given, Launch, Launches
from .picking import picking, short_arrays
from .pipeline_inputs import Relations
from .ready_pipeline import ComingOut, Ready, ResultMemory, coming_out_of, in_their_order, remark_of
from .regions import BufferSpan, Region, Regions, with_buckets
from .unpack_counters import short_results, unpacking, with_packed_counts

GROUP_LIMIT = costs_of("gpu").group_limit  # whose accumulators travel to the host
# Elements of accumulators that travel, 1 MB: TPC-DS Q07's 51,000 groups of four averages took 4.8 ms, its rows alone 0.4 (SF10, H200)
MOST_SENT = 1 << 17
LEAST_DENSE = 1 << 22  # groups addressed directly on the device, however few rows there are
DENSE_A_ROW = 8
MOST_DENSE, BYTES_A_DENSE, DENSE_A_GROUP = 1 << 30, 256, 4  # hash tables take as much
LEAST_SLOTS = 1 << 16
LEAST_LISTED = 1 << 16

Codes = tuple[tuple[bytes, ...], Origin]


class Shared:
    """What texts that differ in constants alone share of a pipeline: how the one that came first has it laid out, with what runs had found."""

    def __init__(self) -> None:
        self._laid: tuple[Feedback, Ready] | None = None

    def keep(self, learnt: Feedback, ready: Ready) -> None:
        self._laid = learnt, ready

    def find(self, learnt: Feedback) -> Ready | None:
        laid = self._laid
        return laid[1] if laid is not None and laid[0] == learnt else None


@dataclass
class CompiledPipeline:
    """The kernels of a pipeline, made for what they read; `ready` is there once all are compiled.

    `columns` are those of groups; `condition` is what these are tested for in device memory; `remark` says what is particular to its groups.
    """

    known: KnownInputs
    stages: Stages
    files: tuple[KernelFile, ...]
    codes: Future[Codes]
    operations: int
    columns: tuple[Column, ...]
    condition: Condition | None = None
    remark: str | None = None
    ready: Ready | None = None
    finisher: Finisher | None = None
    shared: Shared = field(default_factory=Shared)

    @property
    def constants(self) -> tuple[Constants, tuple[DeviceBuffer, ...]]:
        """What kernels take of the text, and the memory of their tables."""
        grouping, condition = self.stages.main.grouping, self.condition
        if grouping is not None and grouping.ordered is not None:
            condition = grouping.ordered.condition
        parameters = () if condition is None else condition.parameters
        return constants_of(self.stages.programs, parameters)


def generated(
    node: p.Pipeline,
    relations: Relations,
    context: Context,
    learnt: Feedback,
    estimate: float | None,
) -> CompiledPipeline:
    """Generate a pipeline's kernels and begin to compile those that are not on disk; raises `NotFusable`."""
    rows = relations.rows(node.steps.source)
    dense = min(MOST_DENSE, max(LEAST_DENSE, DENSE_A_ROW * rows))
    if context.memory_limit is not None:
        few = max(context.memory_limit // BYTES_A_DENSE, int(DENSE_A_GROUP * (estimate or 0)))
        dense = min(dense, few)
    limits, memory = Limits(GROUP_LIMIT, I64_MAX, dense), launch.shared_memory()
    made = stages(node.steps, relations, limits).made_for(memory)
    made = with_packed_counts(made, estimate, learnt.count_bits)
    condition, untested = _condition(node.steps.condition, made.main)
    if not learnt.long_groups:
        made = in_their_order(made, condition, relations)
    main, grouping = made.main, made.main.grouping
    groups = node.steps.groups if condition is None else node
    columns = () if groups is None else groups.columns
    if grouping is not None and grouping.distinct and grouping.groups > GROUP_LIMIT:
        raise NotFusable(f"count(DISTINCT ...) here has more than {GROUP_LIMIT} combinations")
    if context.deterministic and any(a.machine is Machine.F64 for a in main.accumulators):
        raise NotFusable("float sums would depend on the order in which threads finish")
    where, describe = (
        (context.kernel_directory, launch.architecture()),
        partial(concealed_tree, node.body),
    )
    files = [device_kernels.kernel_file(program, describe, *where) for program in made.programs]
    if any(index.form is Buckets and index.unique for index in made.indexes):
        files.append(index_checks.cuda_kernel(*where))
    if _has_many_groups(main):
        if condition is not None:
            source = emit_groups.source(condition, main, describe())
            signature = emit_groups.signature(condition, main)
            files.append(kernel_file(emit_groups.NAME, source, signature, *where))
        names = group_kernels.needed(condition is not None, bool(layout(main).packed))
        short = short_arrays(main)
        files += [group_kernels.group_kernel(name, *where, short) for name in names]
        wanted = wanted_of(main, columns)
        source, signature = emit_picks.source(wanted, describe()), emit_picks.signature(wanted)
        files.append(kernel_file(emit_picks.NAME, source, signature, *where))
    missing = sum(not file.is_compiled for file in files)
    codes = compiling(
        partial(_machine_code, files, missing), context.fuse == "auto" and missing > 0
    )
    remark = remark_of(main, untested)
    return CompiledPipeline(
        relations.known(), made, tuple(files), codes, operations(main), columns, condition, remark
    )


def _condition(filtered: p.FilterRows | None, main: Program) -> tuple[Condition | None, str | None]:
    """The condition on groups in device memory, if there is one, or why it is not tested there."""
    if filtered is None or not _has_many_groups(main):
        return None, None
    try:
        return condition_of(filtered.predicate, main), None
    except NotFusable as reason:
        return None, f"groups are tested after the kernels: {reason.message}"


def _has_many_groups(main: Program) -> bool:
    """Whether the accumulators stay in device memory."""
    where, grouping = layout(main), main.grouping
    if where.sized or where.groups > GROUP_LIMIT:
        return True
    elements = where.groups * len(main.accumulators)
    return grouping is not None and not grouping.distinct and elements > MOST_SENT


def _machine_code(files: Sequence[KernelFile], missing: int) -> Codes:
    """Find the machine code or compile it, several at a time."""
    made = at_once(KernelFile.machine_code, files, missing)
    return tuple(code for code, _ in made), latest(origin for _, origin in made)


def laid_out(
    prepared: CompiledPipeline, relations: Relations, learnt: Feedback, estimate: float | None
) -> Ready:
    """Load the machine code and lay the buffers out, or take how they lie for another text.

    All but constants is the same there: 28 of TPC-H's pipelines were laid out anew for each text, in 0.7 ms each (SF10, one H200).
    """
    laid = prepared.shared.find(learnt)
    if laid is None:
        codes, _ = prepared.codes.result()
        made = _Builder(prepared, relations, learnt, estimate, codes).build(prepared)
        prepared.shared.keep(learnt, made)
        return made
    constants, held = prepared.constants
    launches = replace(laid.launches, constants=constants, held=held)
    programs = prepared.stages.programs
    builds = zip(laid.receipt.builds, programs, strict=False)
    receipt = replace(
        laid.receipt,
        program=programs[-1],
        builds=tuple(replace(build, program=program) for build, program in builds),
    )
    return replace(laid, launches=launches, receipt=receipt)


class _Builder:
    """The launches of a pipeline while they are put together."""

    def __init__(
        self,
        prepared: CompiledPipeline,
        relations: Relations,
        learnt: Feedback,
        estimate: float | None,
        codes: Sequence[bytes],
    ) -> None:
        self.made, self.relations, self.learnt = prepared.stages, relations, learnt
        self.indexes = with_buckets(self.made.indexes, learnt.built)
        self.condition, self.columns = prepared.condition, prepared.columns
        self.estimate, self.codes = estimate, codes
        # Of kernels that are the same for all programs
        fixed = list(zip(prepared.files, codes, strict=True))[len(self.made.programs) :]
        self.fixed = {file.name: code for file, code in fixed}
        self.regions = Regions()
        self.nothing = BufferSpan(Region.SMALL, 0, 0, 8)
        self.steps: list[Launch] = []
        known = prepared.known
        self.reads = {read.key: number for number, read in enumerate(known.reads)}
        self.leaves = {id(leaf): number for number, (leaf, *_) in enumerate(known.leaves)}

    def build(self, prepared: CompiledPipeline) -> Ready:
        made = self.made
        buffers = [buffer for index in self.indexes for buffer in index.buffers]
        spans = self.regions.indexes(buffers)
        states = tuple(
            self._build_step(number, index, code, spans)
            for number, (index, code) in enumerate(zip(self.indexes, self.codes, strict=False))
        )
        main = made.main
        sink = self._sink(main)
        number = len(made.programs) - 1
        given = self._given(number, spans)
        given |= {"out_i": sink.out_i, "out_f": sink.out_f, "counter": sink.counter}
        given |= {"keys": sink.keys, "state": sink.full, "out_n": sink.out_n}
        if sink.unpacking is not None:
            given |= {"packed": sink.unpacking.packed, "lost": sink.unpacking.lost}
        if isinstance(sink.picking, ComingOut):
            given |= sink.picking.given
        for relation, span in zip(main.rows_out, sink.lists, strict=False):
            given[f"out_row{relation}"] = span
        self._add(number, self.codes[number], sink.where, given)
        if sink.unpacking is not None:
            self.steps += sink.unpacking.steps
        if sink.picking is not None:
            self.steps += sink.picking.steps()
        blank = blank_of(self.regions)
        calls = launch.calls_of(self.steps, self.regions, blank)
        launches = Launches(calls, self.regions, blank, *prepared.constants)
        paths = [file.path for file in prepared.files]
        read = [pair for program in made.programs for pair in self._read(program)]
        fixed = sum(column.nbytes for place, column in read if place is None)
        known = of_every_run(made, paths, self.indexes, fixed, prepared.operations)
        known = replace(known, bytes=known.bytes + sum(build.bytes for build in known.builds))
        varying = tuple(place for place, _ in read if place is not None)
        source = main.relations[0].leaf
        stored = self.leaves[id(source)] if self.relations.varies(source) else None
        return Ready(launches, sink, self.indexes, states, known, stored, varying)

    def _build_step(
        self, number: int, index: Index, code: bytes, spans: dict[str, BufferSpan]
    ) -> BufferSpan:
        """Add the launch that fills an index, and after it the one that looks for repeated keys where those matter."""
        where = layout(self.made.programs[number])
        state = self.regions.small(_blank(where.identities("out_i"), 1, 1))
        spans[f"{index.name}_state"] = state
        given = self._given(number, spans) | {"out_i": state, "out_f": self.nothing}
        self._add(number, code, where, given)
        if index.form is Buckets and index.unique:
            heads, links, numbers, *_ = (spans[buffer.name] for buffer in index.buffers)
            arrays = {"heads": heads, "links": links, "numbers": numbers, "state": state}
            self.steps.append(
                launch.prepared_check(self.fixed[index_checks.NAME], index.slots, arrays)
            )
        return state

    def _add(self, number: int, code: bytes, where: Layout, given: dict[str, Given]) -> None:
        program = self.made.programs[number]
        leaf = program.relations[0].leaf
        rows = self.relations.rows(leaf)
        if self.relations.varies(leaf):
            given["rows"] = RowsOf(self.leaves[id(leaf)])
        else:
            given["rows"] = rows
        self.steps.append(launch.prepared(program, code, where, rows, given))

    def _given(self, number: int, spans: dict[str, BufferSpan]) -> dict[str, Given]:
        """Columns, buffers and constants by the names of a program's parameters."""
        program = self.made.programs[number]
        given: dict[str, Given] = {b.name: spans[b.name] for b in program.buffers}
        given |= late_constants(number, (*program.parameters, *program.tables))
        for source, relation in _columns(program):
            read, column = self.relations.encoded(relation, source.column)
            name, place = program.names[source.column], self.reads[read.key]
            scanned = None if read.encoded is None else column
            given[name] = part(place, scanned, False)
            if source.nullable:
                given[f"{name}_bits"] = part(place, scanned, True)
        return given

    def _read(self, program: Program) -> Iterator[tuple[int | None, EncodedColumn]]:
        """The columns that a program reads, with their places among all that are read where each run has others."""
        for source, relation in _columns(program):
            read, column = self.relations.encoded(relation, source.column)
            yield self.reads[read.key] if read.encoded is None else None, column

    def _sink(self, main: Program) -> ResultMemory:
        where, grouping = layout(main), main.grouping
        if main.rows_out:
            return self._lists(main, where)
        if grouping is not None and grouping.ordered is not None:
            return self._coming_out(main, where)
        groups = where.groups
        keys = full = None
        if grouping is not None and grouping.hashed:
            groups = self._slots(main)
            keys, full = self.regions.keys(groups), self.regions.small(_blank([], 1, 1))
        elif grouping is not None and grouping.row is not None:
            groups = self.relations.rows(main.relations[grouping.row].leaf)
        if where.sized:
            where = where.with_groups(groups)
        integers, doubles = where.identities("out_i"), where.identities("out_f")
        if not _has_many_groups(main):
            out_i = self.regions.small(_blank(integers, groups, 1))
            out_f = self.regions.small(_blank(doubles, groups, 0))
            return ResultMemory(where, groups, out_i, out_f, out_i.part(out_i.length - 1, 1))
        out_i = self.regions.accumulators(where.identities("out_i", alike=True), groups, 1)
        out_f = self.regions.accumulators(doubles, groups)
        doubt = self.regions.report(out_i.part(out_i.length - 1, 1))
        out_n = short_results(where, groups, self.regions)
        unpacked = unpacking(where.packed, groups, out_n, self.regions, self.fixed)
        spans = {"out_i": out_i, "out_f": out_f, "out_n": out_n}
        conditioned = self.condition, wanted_of(main, self.columns)
        picked = picking(main, where, groups, spans, keys, self.regions, self.fixed, *conditioned)
        arrays = out_i, out_f, doubt, keys, full
        return ResultMemory(where, groups, *arrays, picking=picked, out_n=out_n, unpacking=unpacked)

    def _coming_out(self, main: Program, where: Layout) -> ResultMemory:
        """A sink of groups that come out of the kernel one by one."""
        out_i, listed = self.regions.small(_blank([], 1, 1)), self.learnt.listed
        wanted = wanted_of(main, self.columns)
        found = coming_out_of(main, self.relations, listed, self.regions, wanted)
        lists, counter = (found.numbers,), found.counter
        return ResultMemory(where, 1, out_i, self.nothing, out_i, None, None, lists, counter, found)

    def _lists(self, main: Program, where: Layout) -> ResultMemory:
        """A sink of row numbers: of as many as the last run found, or as are expected."""
        length = self.learnt.listed
        if length is None:
            rows = self.relations.rows(main.relations[0].leaf)
            expected = int(2 * self.estimate) if self.estimate is not None else rows
            length = expected if main.repeats else min(expected, rows)
            length = max(length, min(LEAST_LISTED, rows))
        out_i = self.regions.small(_blank([], 1, 1))
        return ResultMemory(
            where,
            1,
            out_i,
            self.nothing,
            out_i,
            lists=tuple(self.regions.results(length, 4) for _ in main.rows_out),
            counter=self.regions.small(_blank([], 1, 1)),
        )

    def _slots(self, main: Program) -> int:
        """Slots of the hash table: twice as many as groups are expected, which are no more than rows unless these repeat."""
        if self.learnt.slots is not None:
            return self.learnt.slots
        rows = max(self.relations.rows(main.relations[0].leaf), 1)
        expected = rows if self.estimate is None else int(self.estimate)
        return power_of_two(max(2 * min(expected, rows), LEAST_SLOTS))


def _columns(program: Program) -> Iterator[tuple[Input, RowSource]]:
    """The columns that a program reads, and their relations."""
    for source in program.inputs:
        yield source, program.relations[0]
    for element in program.elements:
        yield element.input, program.relations[element.relation]


def power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()


def _blank(identities: Sequence[int | float], groups: int, more: int) -> Any:
    """A small array: `groups` elements for each identity, and `more` zeros."""
    kind = np.float64 if any(isinstance(i, float) for i in identities) else np.int64
    return np.append(np.repeat(np.array(identities, kind), groups), np.zeros(more, kind))
