"""A pipeline that is ready to run on the GPU: its launches, and where in their buffers lies what a run has found out;
and whether its groups come out in the order of their rows.

All that can be said before a run is worked out once here: a run looks at a few words of the small buffer, by their places.

How a column lies is found out when a kernel could first make use of it, and kept with the column.

TPC-H SF10, hot on an H200, takes 2 % longer without it, Q18 1.4 times as long (`benchmarks.micro.ablate`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pylibcudf as plc

from ....codegen.compile_pipeline import Stages
from ....codegen.cuda.accumulator_layout import Layout, Place, layout
from ....codegen.cuda.emit_picks import Wanted
from ....codegen.cuda.emit_sorted import COUNT, TOO_LONG, given as constant
from ....codegen.groups.conditions import Condition, element
from ....codegen.groups.ordered import bounds, coming_out, has_all_rows, in_order, key_of
from ....codegen.indexes.layers import REPEATED, Index
from ....codegen.loop import Machine
from ....codegen.program import Program
from ....plan import physical as p
from ....plan.arrow.arrow_arrays import array_from
from ....records import dataclass
from ....storage.columns.encodings import Array, EncodedColumn, numbers
from ...context import PipelineReceipt
from ..aggregate.groups import is_sorted, pick
from ..columns import FLOAT64, INT64
from ..memory.buffers import Memory
from ..table import check_rows
from .late_arguments import CONDITION, RunInputs, late_constants
from .launch import Given, Launch, Launches
from .picking import Bounds, PickedGroups, Picking
from .pipeline_inputs import Relations
from .regions import BufferSpan, Regions
from .unpack_counters import Unpacking

LEAST_ROWS = 1 << 20  # fewer take a table of groups little time
HEAD = 1 << 16  # rows that tell most columns which are not sorted
SAMPLE = 1 << 14
# Rows of a group on average: a thread reads on to the end of its last group, and long ones make the others of its warp wait
MOST_ROWS_A_GROUP = 16
SPARE = 1.25  # times the groups that a sample lets expect
LEAST_ROOM = 1 << 16
SELECTED = 1 / 64  # of the groups, of which a condition leaves so many at first sight

_shares: WeakKeyDictionary[EncodedColumn, float] = WeakKeyDictionary()


def in_their_order(made: Stages, condition: Condition | None, relations: Relations) -> Stages:
    """Have the main kernel make use of the order of its rows, where these lie in that of the only group key.

    Without a condition all groups come out, for which places are taken before their values are known: then all rows must
    count.
    """
    main = made.main
    key = key_of(main)
    if key is None or not _has_place(main, condition):
        return made
    if _share(main, relations, key.column) * MOST_ROWS_A_GROUP < 1:
        return made
    return replace(made, programs=(*made.programs[:-1], in_order(main, key, condition)))


def _has_place(main: Program, condition: Condition | None) -> bool:
    """Whether a kernel may take its rows in order, and the table is the same one whenever it runs."""
    where = layout(main)
    if isinstance(main.relations[0].leaf, p.Stored) or where.cut is not None:
        return False
    return where.place is Place.GLOBAL and (condition is not None or has_all_rows(main))


def remark_of(program: Program, untested: str | None) -> str | None:
    """What is particular to a program's groups, for people; `untested` says why no kernel tests a condition on them."""
    grouping = program.grouping
    if grouping is None or grouping.ordered is None:
        return untested
    made = f"groups are made in the order of {grouping.ordered.key.column.name}, without a table"
    return made if untested is None else f"{made}; {untested}"


def _share(program: Program, relations: Relations, column: Any) -> float:
    _, encoded = relations.encoded(program.relations[0], column)
    if encoded.rows < LEAST_ROWS:
        return 0.0
    if encoded not in _shares:
        _shares[encoded] = starting(encoded)
    return _shares[encoded]


def still_in_order(program: Program, relations: Relations) -> bool:
    """Whether rows lie as the kernel that was made for others of them goes through them."""
    grouping, relation = program.grouping, program.relations[0]
    if grouping is None or grouping.ordered is None or not relations.varies(relation.leaf):
        return True
    return _ascends(relations.encoded(relation, grouping.ordered.key.column)[1])


def _ascends(encoded: EncodedColumn) -> bool:
    (head,) = plc.copying.slice(encoded.codes, [0, min(HEAD, encoded.rows)])
    return is_sorted(head) and is_sorted(encoded.codes)


def starting(encoded: EncodedColumn) -> float:
    """Return at what share of a column's rows another value begins, guessed from a sample, if its codes ascend, else 0."""
    codes = encoded.codes
    if not _ascends(encoded):
        return 0.0
    # At random, or a column whose values repeat regularly would look the same in all places
    places = np.random.default_rng(0).integers(0, max(encoded.rows - 1, 1), SAMPLE, np.int32)
    after = np.minimum(places + 1, encoded.rows - 1).astype(np.int32)
    one, other = (numbers(pick(codes, _column(p)).to_arrow()) for p in (places, after))
    return float((one != other).mean())


def _column(values: Any) -> plc.Column:
    return plc.Column.from_arrow(array_from(values))


@dataclass(frozen=True)
class ComingOut:
    """The groups that a kernel has written one after the other, as `picking.Picking` gives those that it picks.

    `counter` says how many there are, and whether one was too long; `arrays` are accumulators by number.
    """

    program: Program
    numbers: BufferSpan
    arrays: Mapping[int, tuple[BufferSpan, plc.DataType]]
    counter: BufferSpan
    wanted: Wanted

    @property
    def state(self) -> BufferSpan:
        return self.counter.part(COUNT, 1)

    @property
    def too_long(self) -> BufferSpan:
        return self.counter.part(TOO_LONG, 1)

    def steps(self) -> tuple[Launch, ...]:
        """Return the launches after the kernel: none."""
        return ()

    @property
    def given(self) -> dict[str, Given]:
        """What the kernel writes to, and the constants of the condition, by the names of its parameters."""
        grouping = self.program.grouping
        assert grouping is not None
        assert grouping.ordered is not None
        condition = grouping.ordered.condition
        parameters = () if condition is None else condition.parameters
        found = {f"out_{element(n)}": span for n, (span, _) in self.arrays.items()}
        found |= {"numbers": self.numbers, "counter": self.counter}
        constants = late_constants(CONDITION, parameters)
        return {**found, **{constant(name): value for name, value in constants.items()}}

    def found(self, words: Array) -> tuple[int, dict[int, Bounds]]:
        """Return how many groups there are, and intervals that hold accumulators: wide ones, which serve few groups.

        Where all groups come out, who reads them measures first: a narrow domain spares more time than that takes.
        """
        count = check_rows(int(words[0]), "The aggregate")
        grouping = self.program.grouping
        assert grouping is not None
        assert grouping.ordered is not None
        few = count > 0 and grouping.ordered.condition is not None
        return count, bounds(self.program) if few else {}

    def pick(self, memory: Memory, count: int) -> PickedGroups:
        """Return what is there of `count` groups: some accumulators and, if they are wanted, numbers, which are values of the only key."""
        arrays = ((n, *self.arrays[n]) for n in self.wanted.wide)
        accumulators = {n: memory.column(span, kind, count) for n, span, kind in arrays}
        components = tuple(
            memory.column(self.numbers, INT64, count) for _ in self.wanted.components
        )
        return PickedGroups(components, accumulators)


def coming_out_of(
    program: Program, relations: Relations, listed: int | None, regions: Regions, wanted: Wanted
) -> ComingOut:
    """Lay out room for the groups that are expected, or for so many as the last run `listed`."""
    assert program.grouping is not None
    assert program.grouping.ordered is not None
    rows = program.relations[0].rows
    if listed is None:
        key, condition = program.grouping.ordered.key, program.grouping.ordered.condition
        expected = rows * _share(program, relations, key.column) * SPARE
        expected *= 1.0 if condition is None else SELECTED
        listed = min(max(int(expected), LEAST_ROOM), rows)
    arrays = {}
    for n in coming_out(program):
        machine = program.accumulators[n].machine
        arrays[n] = regions.results(listed, 8), FLOAT64 if machine is Machine.F64 else INT64
    counter = regions.small(np.zeros(2, np.int64))
    return ComingOut(program, regions.results(listed, 8), arrays, counter, wanted)


@dataclass(frozen=True)
class ResultMemory:
    """Where the main kernel's results lie: accumulators of `groups` groups, or lists of rows.

    `doubt`, `counter` and `full` are words of the small buffer.  `picking`: accumulators are in device memory after the run.
    """

    where: Layout
    groups: int
    out_i: BufferSpan
    out_f: BufferSpan
    doubt: BufferSpan
    keys: BufferSpan | None = None
    full: BufferSpan | None = None
    lists: tuple[BufferSpan, ...] = ()
    counter: BufferSpan | None = None
    picking: Picking | ComingOut | None = None
    out_n: BufferSpan | None = None
    unpacking: Unpacking | None = None

    @cached_property
    def _parts(self) -> list[tuple[slice, bool]]:
        """The words of each of the program's accumulators in the small buffer, and whether they are doubles."""
        results, parts = self.where.results(), []
        for number in range(len(results)):
            array, row = results[number]
            is_double = array == "out_f"
            start = (self.out_f if is_double else self.out_i).start // 8 + row * self.groups
            parts.append((slice(start, start + self.groups), is_double))
        return parts

    def accumulators(self, words: Array) -> list[Array]:
        """Return the program's accumulators, of few groups, among the words of the small buffer."""
        return [words[at].view(np.float64) if double else words[at] for at, double in self._parts]


@dataclass(frozen=True)
class Ready:
    """The launches of a pipeline and where their results lie; `states` of indexes: rows, NULL keys, repeated keys, doubts.

    `receipt` counts the bytes that all runs read.  What is another one in each run is named by its place in what the kernels are known
    to read: the leaf whose rows the main kernel goes through, if those are stored, and columns.
    """

    launches: Launches
    sink: ResultMemory
    indexes: tuple[Index, ...]
    states: tuple[BufferSpan, ...]
    receipt: PipelineReceipt
    stored: int | None
    varying: tuple[int, ...]

    @cached_property
    def varies(self) -> bool:
        """Whether runs read other rows, or columns of another size."""
        return self.stored is not None or bool(self.varying)

    def read(self, run: RunInputs) -> tuple[int, int]:
        """Return the rows that the main kernel goes through in a run, and the bytes that all kernels read."""
        rows, size = self.receipt.rows, self.receipt.bytes
        if self.stored is not None:
            rows = run.count_at(self.stored)
        for number in self.varying:
            size += run.column_at(number).nbytes
        return rows, size

    @cached_property
    def _reported(self) -> tuple[Array, int]:
        """The places of words: the rows of each index, so many, then all that are 0 unless a run has to be looked at."""
        sink, states = self.sink, self.states
        notices = [span.part(span.length - 1, 1) for span in (*states, sink.doubt)]
        indexes = zip(self.indexes, states, strict=True)
        notices += [state.part(REPEATED, 1) for index, state in indexes if index.unique]
        lost = None if sink.unpacking is None else sink.unpacking.lost
        too_long = sink.picking.too_long if isinstance(sink.picking, ComingOut) else None
        notices += [span for span in (sink.full, lost, too_long) if span is not None]
        places = np.array([span.start // 8 for span in (*states, *notices)], np.int64)
        return places, len(states)

    def report(self, words: Array) -> tuple[list[int], bool]:
        """Return the rows of each index, and whether something is to be noticed, from the words of the small buffer."""
        places, count = self._reported
        found = words[places].tolist()
        return found[:count], any(found[count:])

    def states_in(self, words: Array) -> list[list[int]]:
        """Return the states among the words of the small buffer."""
        return [words[s.start // 8 : s.start // 8 + s.length].tolist() for s in self.states]
