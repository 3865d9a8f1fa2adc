"""The groups that exist among an aggregate's slots in device memory: counted and measured behind the kernel, picked when their number is known.

What is counted comes with the other small results, so that nothing waits for it: memory is taken for the groups that there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ...codegen.groups.conditions import Condition, element
from ...codegen.handwritten import group_kernels as kernels
from ...codegen.loop import Machine
from ...codegen.steps import Program
from ...codegen.targets import emit_groups
from ...codegen.targets.places import Layout, layout
from . import launch
from .buffers import Memory
from .columns import FLOAT64, INT32, INT64, empty
from .launch import Late, Launch
from .regions import Regions, Span
from .table import check_rows

I64_MAX = 2**63 - 1
WARP = 32
COUNT_WORD, FIRST_LOW = 0, 1  # of the state: how many groups there are, then extremes in pairs

Bounds = tuple[int, int]
# A launch, and of the accumulators that it picks their numbers and the types that they become
Pick = tuple[Launch, tuple[tuple[int, plc.DataType], ...]]


@dataclass(frozen=True)
class Picking:
    """How groups are picked from slots; `flags`: what says whether a slot holds one, keys if `keyed`, else what is above 0 there.

    Where there is a condition, those that do not fulfil it are no groups.  `bits` mark the slots of groups.  `arrays` are
    accumulators by number, `state` a small array: their count, and the extremes of those `measured`.
    """

    program: Program
    condition: Condition | None
    slots: int
    flags: Span
    keyed: bool
    bits: Span
    arrays: Mapping[int, tuple[Span, plc.DataType]]
    places: Span
    state: Span
    measured: tuple[int, ...]
    codes: Mapping[str, bytes]
    _picks: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[Pick, ...]] = field(
        default_factory=dict, repr=False
    )

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

    def found(self, words: Any) -> tuple[int, dict[int, Bounds]]:
        """Return how many groups there are, and the extremes of measured accumulators, from the words of the state."""
        count = int(words[COUNT_WORD])
        pairs = words[FIRST_LOW:].reshape(-1, 2).tolist()
        bounds = {n: (low, high) for n, (low, high) in zip(self.measured, pairs, strict=False)}
        return check_rows(count, "The aggregate"), bounds if count else {}

    def picked(
        self, memory: Memory, count: int, wide: Sequence[int], narrow: Sequence[int]
    ) -> Groups:
        """Return the numbers of the groups and accumulators: `wide` ones, and `narrow` ones as INT32."""
        grouping = self.program.grouping
        assert grouping is not None
        alone = [k.low for k in grouping.keys if k.values is None and not k.nullable]
        single = len(alone) == len(grouping.keys) == 1
        base = alone[0] if single else 0
        numbers = _Target(INT64 if grouping.row is None else INT32, count)
        asked = tuple(wide), tuple(narrow)
        if asked not in self._picks:
            self._picks[asked] = self._prepared(*asked, numbers.width, base)
        found: dict[int, plc.Column] = {}
        for step, taken in self._picks[asked]:
            targets = [_Target(becomes, count) for _, becomes in taken]
            if count:
                step.run(memory, {}, [numbers.address, *(t.address for t in targets)])
            found |= {n: t.column() for (n, _), t in zip(taken, targets, strict=True)}
        return Groups(numbers.column(), found, self.codes[kernels.KEY], single)

    def _prepared(
        self, wide: Sequence[int], narrow: Sequence[int], width: int, base: int
    ) -> tuple[Pick, ...]:
        """The launches that pick, which each run gives the places of numbers and of what they take."""
        short = [n for n in wide if self.arrays[n][1] is INT32]
        wide = [n for n in wide if n not in short]
        # What one launch takes of each kind, and the type that it becomes
        kinds = {
            "wide": (wide, kernels.WIDE, None),
            "narrow": (narrow, kernels.NARROW, INT32),
            "short": (short, kernels.SHORT, INT64),
        }
        rounds = max(1, *(-(-len(wanted) // most) for wanted, most, _ in kinds.values()))
        picks: list[Pick] = []
        for turn in range(rounds):
            taken: list[tuple[int, plc.DataType]] = []
            given = self._ranges | {"places": self.places, "flags": self.flags}
            given |= {"keyed": int(self.keyed), "base": base}
            given |= {"numbers32": Late(0), "numbers64": Late(0), "width": 0 if turn else width}
            place = 0
            for name, (wanted, most, becomes) in kinds.items():
                now = wanted[turn * most :][:most]
                given[name] = len(now)
                for i in range(place, place + most):
                    given |= {f"from{i}": Late(0), f"to{i}": Late(0)}
                for i, number in enumerate(now, place):
                    span, lying = self.arrays[number]
                    taken.append((number, becomes or lying))
                    given |= {f"from{i}": span, f"to{i}": Late(len(taken))}
                place += most
            picks.append((self._launch(kernels.PICK, given), tuple(taken)))
        return tuple(picks)

    @property
    def _ranges(self) -> dict[str, Any]:
        warps, share = kernels.ranges(self.slots)
        return {"slots": self.slots, "warps": warps, "share": share, "bits": self.bits}

    @property
    def _flags(self) -> dict[str, Any]:
        return {"flags": self.flags, "least": 0 if self.keyed else 1}

    def _launch(self, name: str, given: Mapping[str, Any]) -> Launch:
        turns = given["warps"] * WARP
        return launch.prepared_fixed(self.codes[name], name, kernels.SIGNATURES[name], turns, given)


@dataclass(frozen=True)
class Groups:
    """The groups that exist: their numbers, and accumulators by number.

    `single`: the numbers are the values of the only key.
    """

    numbers: plc.Column
    accumulators: Mapping[int, plc.Column]
    key_code: bytes
    single: bool

    @property
    def count(self) -> int:
        return int(self.numbers.size())

    def component(self, stride: int, size: int, low: int) -> plc.Column:
        """Return a component of the groups' numbers, `low` more than it was (INT64)."""
        target = _Target(INT64, self.count)
        if self.count:
            numbers = int(self.numbers.data().ptr)
            given = {"rows": self.count, "numbers": numbers, "values": target.address}
            given |= {"stride": stride, "size": size, "low": low}
            name = kernels.KEY
            step = launch.prepared_fixed(
                self.key_code, name, kernels.SIGNATURES[name], self.count, given
            )
            step.run_alone()
        return target.column()


class _Target:
    """A column that a kernel is about to fill."""

    def __init__(self, data_type: plc.DataType, rows: int) -> None:
        self.type, self.rows = data_type, rows
        self.width = 4 if data_type.id() == INT32.id() else 8
        self.buffer = DeviceBuffer(size=rows * self.width, stream=plc.utils.CUDF_DEFAULT_STREAM)
        self.address = int(self.buffer.ptr)

    def column(self) -> plc.Column:
        if not self.rows:
            return empty(self.type)
        return plc.Column(self.type, self.rows, plc.gpumemoryview(self.buffer), None, 0, 0, [])


def picking(
    program: Program,
    where: Layout,
    slots: int,
    spans: Mapping[str, Span],
    keys: Span | None,
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
