"""A pipeline that is ready to run on the GPU: its launches, and where in their buffers lies what a run has found out.

All that can be said before a run is worked out once here: a run looks at a few words of the small buffer, by their places.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....codegen.cuda.accumulator_layout import Layout
from ....codegen.indexes.layers import REPEATED, Index
from ....storage.columns.encodings import Array
from ...context import PipelineReceipt
from .late_arguments import RunInputs
from .launch import Launches
from .ordered_groups import ComingOut
from .picking import Picking
from .regions import BufferSpan
from .unpack_counters import Unpacking


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

    def read(self, run: RunInputs) -> tuple[int, int]:
        """Return the rows that the main kernel goes through in a run, and the bytes that all kernels read."""
        rows, size = self.receipt.rows, self.receipt.bytes
        if self.stored is not None:
            rows = run.count_at(self.stored)
        if self.varying:
            size += sum([run.column_at(number).nbytes for number in self.varying])
        return rows, size

    @cached_property
    def _reported(self) -> Array:
        """The places of words: the rows of each index, then all that are 0 unless a run has to be looked at."""
        sink, states = self.sink, self.states
        notices = [span.part(span.length - 1, 1) for span in (*states, sink.doubt)]
        indexes = zip(self.indexes, states, strict=True)
        notices += [state.part(REPEATED, 1) for index, state in indexes if index.unique]
        lost = None if sink.unpacking is None else sink.unpacking.lost
        too_long = sink.picking.too_long if isinstance(sink.picking, ComingOut) else None
        notices += [span for span in (sink.full, lost, too_long) if span is not None]
        return np.array([span.start // 8 for span in (*states, *notices)], np.int64)

    def report(self, words: Array) -> tuple[list[int], bool]:
        """Return the rows of each index, and whether something is to be noticed, from the words of the small buffer."""
        found = words[self._reported].tolist()
        count = len(self.states)
        return found[:count], any(found[count:])

    def states_in(self, words: Array) -> list[list[int]]:
        """Return the states among the words of the small buffer."""
        return [words[s.start // 8 : s.start // 8 + s.length].tolist() for s in self.states]
