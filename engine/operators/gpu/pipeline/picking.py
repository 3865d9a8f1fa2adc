"""The groups that exist among an aggregate's slots in device memory: counted, measured and picked behind the kernel.

What is counted comes with the other small results, so that nothing waits for it.  Memory is taken for as many groups as there may be, at
most `MOST_PICKED`: only where there are more are they picked by a launch of their own, after a wait of the device for the host, of
72 to 178 us in 9 of TPC-H's pipelines, of which 2 have so many (SF10 on an H200).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import accumulate

import numpy as np
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.compile.compiler import Signature
from ....codegen.cuda import emit_groups, emit_picks
from ....codegen.cuda.accumulator_layout import WARP, Layout, layout
from ....codegen.cuda.emit_picks import Wanted
from ....codegen.groups.conditions import Condition, element
from ....codegen.handwritten import group_kernels as kernels
from ....codegen.loop import Machine
from ....codegen.program import Program
from ....codegen.ranges import I64_MAX
from ....records import dataclass
from ....storage.columns.encodings import Array
from ..columns import FLOAT64, INT32, INT64
from ..dictionaries import INT8, INT16
from ..memory.buffers import Memory
from ..table import check_rows
from . import launch
from .driver_calls import LateArgument
from .late_arguments import CONDITION, late_constants
from .launch import Launch
from .regions import ALIGNMENT, BufferSpan, Regions

COUNT_WORD, FIRST_LOW = 0, 1  # of the state: how many groups there are, then extremes in pairs
TYPES = {"int8": INT8, "int16": INT16, "int32": INT32, "int64": INT64, "float64": FLOAT64}

MOST_PICKED = 1 << 17  # groups that are picked before it is known how many there are

Bounds = tuple[int, int]


@dataclass(eq=False)
class PickedGroups:
    """What was picked of the groups that exist: components of their numbers, and accumulators by number."""

    components: tuple[plc.Column, ...]
    accumulators: Mapping[int, plc.Column]


@dataclass(frozen=True)
class Picking:
    """How groups are picked from slots; `flags`: what says whether a slot holds one, keys if `keyed`, else what is above 0 there.

    Where there is a condition, those that do not fulfil it are no groups.  `bits` mark the slots of groups.  `arrays` are
    accumulators by number, `state` a small array: their count, and the extremes of those `measured`.  `results` is what is picked.
    """

    program: Program
    condition: Condition | None
    slots: int
    flags: BufferSpan
    keyed: bool
    bits: BufferSpan
    arrays: Mapping[int, BufferSpan]
    places: BufferSpan
    state: BufferSpan
    measured: tuple[int, ...]
    codes: Mapping[str, bytes]
    wanted: Wanted
    results: tuple[BufferSpan, ...]

    def steps(self) -> tuple[Launch, ...]:
        """Return the launches that mark, count, measure, and pick as many groups as there is room for."""
        values = [self.arrays[number] for number in self.measured]
        values += [self.flags] * (kernels.MEASURED - len(values))
        given = self._ranges | self._flags | {"counts": self.places, "state": self.state}
        given |= {"measured": len(self.measured)}
        given |= {f"values{i}": span for i, span in enumerate(values)}
        name = kernels.PLACES
        places = launch.prepared_block(self.codes[name], name, kernels.SIGNATURES[name], given)
        picks = (self._pick(self.results[0].length, *self.results),) if self.results else ()
        if self.condition is None:
            return self._launch(kernels.COUNT, given), places, *picks
        return self._test(self.condition), self._launch(kernels.MEASURE, given), places, *picks

    def _test(self, condition: Condition) -> Launch:
        """The launch that marks the groups for which the condition holds."""
        given = {"slots": self.slots, "bits": self.bits, **self._flags}
        given |= {f"all_{element(n)}": self.arrays[n] for n in condition.accumulators}
        given |= late_constants(CONDITION, condition.parameters)
        name, signature = emit_groups.NAME, emit_groups.signature(condition, self.program)
        turns = -(-self.slots // emit_groups.LOADS)
        return launch.prepared_fixed(self.codes[name], name, signature, turns, given)

    def found(self, words: Array) -> tuple[int, dict[int, Bounds]]:
        """Return how many groups there are, and the extremes of measured accumulators, from the words of the state."""
        count = int(words[COUNT_WORD])
        pairs = words[FIRST_LOW:].reshape(-1, 2).tolist()
        bounds = {n: (low, high) for n, (low, high) in zip(self.measured, pairs, strict=False)}
        return check_rows(count, "The aggregate"), bounds if count else {}

    def pick(self, memory: Memory, count: int) -> PickedGroups:
        """Return what is wanted of `count` groups, which the run has picked as far as there was room for them."""
        if self.results and count > self.results[0].length:
            columns = self._pick_all(memory, count)
        else:
            pairs = zip(self.types, self.results, strict=True)
            columns = [memory.column(span, kind, count) for kind, span in pairs]
        components = len(self.wanted.components)
        numbers = (*self.wanted.wide, *self.wanted.narrow)
        accumulators = dict(zip(numbers, columns[components:], strict=True))
        return PickedGroups(tuple(columns[:components]), accumulators)

    def _pick_all(self, memory: Memory, count: int) -> list[plc.Column]:
        """Pick all groups into one buffer, which was not known to be so large."""
        sizes = [count * span.width for span in self.results]
        starts = [0, *accumulate(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)]
        buffer = DeviceBuffer(size=starts.pop(), stream=plc.utils.CUDF_DEFAULT_STREAM)
        begin = int(buffer.ptr)
        self._picks_all.run(memory, [count, *(begin + start for start in starts)])
        whole = plc.gpumemoryview(buffer)
        return [
            plc.Column(kind, count, whole.byte_slice(slice(start, start + size)), None, 0, 0, [])
            for kind, start, size in zip(self.types, starts, sizes, strict=True)
        ]

    @cached_property
    def types(self) -> tuple[plc.DataType, ...]:
        """Those of what is picked."""
        return tuple(TYPES[kind] for kind in self.wanted.results)

    @cached_property
    def _picks_all(self) -> Launch:
        return self._pick(*map(LateArgument, range(1 + len(self.results))))

    def _pick(self, room: launch.Given, *results: launch.Given) -> Launch:
        """The launch that writes what is wanted of as many groups as there is room for."""
        wanted = self.wanted
        given: dict[str, launch.Given] = {**self._ranges, "places": self.places, "keys": self.flags}
        given |= {f"low{i}": part.low for i, part in enumerate(wanted.components)}
        given |= {f"from{n}": self.arrays[n] for n in (*wanted.wide, *wanted.narrow)}
        given |= {"room": room, **{f"to{i}": result for i, result in enumerate(results)}}
        return self._launch(emit_picks.NAME, given, emit_picks.signature(wanted))

    @property
    def _ranges(self) -> dict[str, launch.Given]:
        warps, share = kernels.ranges(self.slots)
        return {"slots": self.slots, "warps": warps, "share": share, "bits": self.bits}

    @property
    def _flags(self) -> dict[str, launch.Given]:
        return {"flags": self.flags, "least": 0 if self.keyed else 1}

    def _launch(
        self, name: str, given: Mapping[str, launch.Given], signature: Signature | None = None
    ) -> Launch:
        turns, signature = given["warps"] * WARP, signature or kernels.SIGNATURES[name]
        return launch.prepared_fixed(self.codes[name], name, signature, turns, given)


def picking(
    program: Program,
    where: Layout,
    slots: int,
    spans: Mapping[str, BufferSpan],
    keys: BufferSpan | None,
    regions: Regions,
    codes: Mapping[str, bytes],
    condition: Condition | None,
    wanted: Wanted,
) -> Picking:
    """Lay out the picking of groups from `slots` slots; `spans` are the arrays of accumulators by name, `keys` a hash table's."""
    grouping = program.grouping
    assert grouping is not None
    arrays = {
        number: spans[array].part(row * slots, slots)
        for number, (array, row) in where.results().items()
    }
    warps, share = kernels.ranges(slots)
    state = np.array([0, *([I64_MAX, -I64_MAX - 1] * kernels.MEASURED)], np.int64)
    return Picking(
        program,
        condition,
        slots,
        arrays[grouping.rows] if keys is None else keys,
        keys is not None,
        regions.working(warps * share // kernels.WORD, 4),
        arrays,
        regions.working(warps, 8),
        regions.small(state),
        _measured(program),
        codes,
        wanted,
        tuple(
            regions.results(min(slots, MOST_PICKED), np.dtype(kind).itemsize)
            for kind in wanted.results
        ),
    )


def _measured(program: Program) -> tuple[int, ...]:
    """The accumulators of which extremes are found."""
    assert program.grouping is not None
    numbers = [program.grouping.rows, *(n for f in program.folded for n in f.accumulators)]
    whole = [n for n in dict.fromkeys(numbers) if program.accumulators[n].machine is Machine.I64]
    return tuple(whole[: kernels.MEASURED])


def short_arrays(program: Program) -> frozenset[str]:
    """The parameters of kernels that count and measure for which arrays of 32 bits are given."""
    grouping, places = program.grouping, layout(program).results()
    assert grouping is not None
    given = {f"values{i}": number for i, number in enumerate(_measured(program))}
    given |= {} if grouping.hashed else {"flags": grouping.rows}
    return frozenset(name for name, number in given.items() if places[number][0] == "out_n")
