"""The groups that exist among an aggregate's slots in device memory: counted and measured behind the kernel, picked when their number is known.

What is counted comes with the other small results, so that nothing waits for it: memory is taken for the groups that there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.cuda import emit_groups
from ....codegen.cuda.accumulator_layout import WARP, Layout, layout
from ....codegen.groups.conditions import Condition, element
from ....codegen.handwritten import group_kernels as kernels
from ....codegen.loop import Machine
from ....codegen.program import Program
from ....codegen.ranges import I64_MAX
from ....plan.expr import Column
from ....storage.columns.encodings import Array
from ..columns import FLOAT64, INT32, INT64, empty
from ..dictionaries import INT8, INT16
from ..memory.buffers import Memory
from ..table import check_rows
from . import launch
from .launch import LateArgument, Launch
from .regions import ALIGNMENT, BufferSpan, Regions

if TYPE_CHECKING:
    from .finish import Finisher

COUNT_WORD, FIRST_LOW = 0, 1  # of the state: how many groups there are, then extremes in pairs
TYPES = {1: INT8, 2: INT16, 4: INT32, 8: INT64}

Bounds = tuple[int, int]
# How the columns of results are made of the groups, by these columns
Finishers: TypeAlias = "dict[tuple[Column, ...], Finisher]"


@dataclass(frozen=True)
class Component:
    """A part of the groups' numbers: number // stride % size, or what is left of it with a `size` of 0, `low` more, as an integer of `width` bytes."""

    stride: int
    size: int
    low: int
    width: int


@dataclass(frozen=True)
class Wanted:
    """What is picked of groups: components of their numbers, and of accumulators `wide` ones as they are and `narrow` ones as INT32."""

    components: tuple[Component, ...]
    wide: tuple[int, ...]
    narrow: tuple[int, ...]


@dataclass(frozen=True)
class PickedGroups:
    """What was picked of the groups that exist: components of their numbers, and accumulators by number."""

    components: tuple[plc.Column, ...]
    accumulators: Mapping[int, plc.Column]


@dataclass(frozen=True)
class Picking:
    """How groups are picked from slots; `flags`: what says whether a slot holds one, keys if `keyed`, else what is above 0 there.

    Where there is a condition, those that do not fulfil it are no groups.  `bits` mark the slots of groups.  `arrays` are
    accumulators by number, `state` a small array: their count, and the extremes of those `measured`.
    """

    program: Program
    condition: Condition | None
    slots: int
    flags: BufferSpan
    keyed: bool
    bits: BufferSpan
    arrays: Mapping[int, tuple[BufferSpan, plc.DataType]]
    places: BufferSpan
    state: BufferSpan
    measured: tuple[int, ...]
    codes: Mapping[str, bytes]
    finishers: Finishers = field(default_factory=dict, repr=False)

    def steps(self) -> tuple[Launch, ...]:
        """Return the launches that mark, count and measure."""
        values = [self.arrays[number][0] for number in self.measured]
        values += [self.flags] * (kernels.MEASURED - len(values))
        given = self._ranges | self._flags | {"counts": self.places, "state": self.state}
        given |= {"measured": len(self.measured)}
        given |= {f"values{i}": span for i, span in enumerate(values)}
        name = kernels.PLACES
        places = launch.prepared_block(self.codes[name], name, kernels.SIGNATURES[name], given)
        if self.condition is None:
            return self._launch(kernels.COUNT, given), places
        return self._test(self.condition), self._launch(kernels.MEASURE, given), places

    def _test(self, condition: Condition) -> Launch:
        """The launch that marks the groups for which the condition holds."""
        given = {"slots": self.slots, "bits": self.bits, **self._flags}
        given |= {f"all_{element(n)}": self.arrays[n][0] for n in condition.accumulators}
        given |= launch.scalars(condition.parameters)
        name, signature = emit_groups.NAME, emit_groups.signature(condition, self.program)
        turns = -(-self.slots // emit_groups.LOADS)
        return launch.prepared_fixed(self.codes[name], name, signature, turns, given)

    def found(self, words: Array) -> tuple[int, dict[int, Bounds]]:
        """Return how many groups there are, and the extremes of measured accumulators, from the words of the state."""
        count = int(words[COUNT_WORD])
        pairs = words[FIRST_LOW:].reshape(-1, 2).tolist()
        bounds = {n: (low, high) for n, (low, high) in zip(self.measured, pairs, strict=False)}
        return check_rows(count, "The aggregate"), bounds if count else {}

    def picks(self, wanted: Wanted) -> Picks:
        """Prepare to pick something of the groups."""
        short = [n for n in wanted.wide if self.arrays[n][1] is INT32]
        wide = [n for n in wanted.wide if n not in short]
        targets = [_Target(TYPES[c.width], c.width) for c in wanted.components]
        # What one launch takes of each kind, and the type that it becomes
        kinds = {
            "wide": (wide, kernels.WIDE, None),
            "narrow": (wanted.narrow, kernels.NARROW, INT32),
            "short": (short, kernels.SHORT, INT64),
        }
        most = [(len(numbers), most) for numbers, most, _ in kinds.values()]
        most.append((len(wanted.components), kernels.COMPONENTS))
        launches, numbers = [], []
        for turn in range(max(-(-count // once) for count, once in most)):
            given = self._components(wanted.components, turn)
            place = 0
            for name, (arrays, once, becomes) in kinds.items():
                now = arrays[turn * once :][:once]
                given[name] = len(now)
                for i in range(place, place + once):
                    given |= {f"from{i}": self.flags, f"to{i}": 0}
                for i, number in enumerate(now, place):
                    span, lying = self.arrays[number]
                    given |= {f"from{i}": span, f"to{i}": LateArgument(1 + len(targets))}
                    targets.append(_Target(becomes or lying, 4 if becomes is INT32 else 8))
                    numbers.append(number)
                place += once
            launches.append(self._launch(kernels.PICK, given))
        return Picks(tuple(launches), tuple(targets), tuple(numbers))

    def _components(self, components: Sequence[Component], turn: int) -> dict[str, launch.Given]:
        """What a launch is given besides arrays: those of the components that are its turn."""
        first = turn * kernels.COMPONENTS
        now = components[first:][: kernels.COMPONENTS]
        given = self._ranges | {"places": self.places, "flags": self.flags}
        given |= {"keyed": int(self.keyed and bool(now)), "components": len(now)}
        given |= {f"result{8 * width}": LateArgument(0) for width in kernels.WIDTHS}
        for i in range(kernels.COMPONENTS):
            given |= {f"{name}{i}": 0 for name in kernels.COMPONENT}
        for i, part in enumerate(now):
            below = kernels.divisor(part.stride)
            above = kernels.divisor(part.stride * part.size) if part.size else (0, 0)
            told = (*below, *above, part.size, part.low, part.width, LateArgument(1 + first + i))
            given |= {f"{n}{i}": value for n, value in zip(kernels.COMPONENT, told, strict=True)}
        return given

    @property
    def _ranges(self) -> dict[str, launch.Given]:
        warps, share = kernels.ranges(self.slots)
        return {"slots": self.slots, "warps": warps, "share": share, "bits": self.bits}

    @property
    def _flags(self) -> dict[str, launch.Given]:
        return {"flags": self.flags, "least": 0 if self.keyed else 1}

    def _launch(self, name: str, given: Mapping[str, launch.Given]) -> Launch:
        turns = given["warps"] * WARP
        return launch.prepared_fixed(self.codes[name], name, kernels.SIGNATURES[name], turns, given)


@dataclass(frozen=True)
class Picks:
    """Launches that pick something of groups; `targets` are components of the groups' numbers, then accumulators of these `numbers`."""

    launches: tuple[Launch, ...]
    targets: tuple[_Target, ...]
    numbers: tuple[int, ...]

    def run(self, memory: Memory, count: int) -> PickedGroups:
        """Pick what is wanted of `count` groups, into one buffer."""
        if count and self.targets:
            columns = self._picked(memory, count)
        else:
            columns = [empty(target.type) for target in self.targets]
        components = len(columns) - len(self.numbers)
        accumulators = dict(zip(self.numbers, columns[components:], strict=True))
        return PickedGroups(tuple(columns[:components]), accumulators)

    def _picked(self, memory: Memory, count: int) -> list[plc.Column]:
        starts, size = [], 0
        for target in self.targets:
            starts.append(size)
            size += -(-count * target.width // ALIGNMENT) * ALIGNMENT
        buffer = DeviceBuffer(size=size, stream=plc.utils.CUDF_DEFAULT_STREAM)
        given = [int(buffer.ptr), *starts]
        for step in self.launches:
            step.run(memory, {}, given)
        whole = plc.gpumemoryview(buffer)
        return [
            plc.Column(
                target.type,
                count,
                whole.byte_slice(slice(start, start + count * target.width)),
                None,
                0,
                0,
                [],
            )
            for target, start in zip(self.targets, starts, strict=True)
        ]


@dataclass(frozen=True)
class _Target:
    """A column that a kernel fills, of values of `width` bytes."""

    type: plc.DataType
    width: int


def picking(
    program: Program,
    where: Layout,
    slots: int,
    spans: Mapping[str, BufferSpan],
    keys: BufferSpan | None,
    regions: Regions,
    codes: Mapping[str, bytes],
    condition: Condition | None,
) -> Picking:
    """Lay out the picking of groups from `slots` slots; `spans` are the arrays of accumulators by name, `keys` a hash table's."""
    grouping = program.grouping
    assert grouping is not None
    types = {"out_i": INT64, "out_f": FLOAT64, "out_n": INT32}
    arrays = {
        number: (spans[array].part(row * slots, slots), types[array])
        for number, (array, row) in where.results().items()
    }
    warps, share = kernels.ranges(slots)
    state = np.array([0, *([I64_MAX, -I64_MAX - 1] * kernels.MEASURED)], np.int64)
    return Picking(
        program,
        condition,
        slots,
        arrays[grouping.rows][0] if keys is None else keys,
        keys is not None,
        regions.large(warps * share // kernels.WORD, 4),
        arrays,
        regions.large(warps, 8),
        regions.small(state),
        _measured(program),
        codes,
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
