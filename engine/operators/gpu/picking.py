"""The groups that exist among an aggregate's slots in device memory: counted and measured behind the kernel, picked when their number is known.

What is counted comes with the other small results, so that nothing waits for it: memory is taken for the groups that there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ...codegen.handwritten import group_kernels as kernels
from ...codegen.loop import Machine
from ...codegen.steps import Program
from ...codegen.targets.places import Layout
from . import launch
from .buffers import Memory
from .columns import FLOAT64, INT32, INT64, empty
from .launch import Launch
from .regions import Regions, Span
from .table import check_rows

I64_MAX = 2**63 - 1
WARP = 32
COUNT_WORD, FIRST_LOW = 0, 1  # of the state: how many groups there are, then extremes in pairs

Bounds = tuple[int, int]


@dataclass(frozen=True)
class Picking:
    """How groups are picked from slots; `flags`: what says whether a slot holds one, keys if `keyed`, else counts of rows.

    `arrays` are accumulators by number, `state` a small array: their count, and the extremes of those `measured`.
    """

    program: Program
    slots: int
    flags: Span
    keyed: bool
    arrays: Mapping[int, tuple[Span, plc.DataType]]
    places: Span
    state: Span
    measured: tuple[int, ...]
    codes: Mapping[str, bytes]

    def steps(self) -> tuple[Launch, Launch]:
        """Return the launches that count and measure."""
        values = [self.arrays[number][0] for number in self.measured]
        values += [self.flags] * (kernels.MEASURED - len(values))
        given = self._ranges | {"counts": self.places, "state": self.state}
        given |= {"measured": len(self.measured)}
        given |= {f"values{i}": span for i, span in enumerate(values)}
        name = kernels.PLACES
        return self._launch(kernels.COUNT, given), launch.prepared_block(
            self.codes[name], name, kernels.SIGNATURES[name], given
        )

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
        found: dict[int, plc.Column] = {}
        rounds = max(-(-len(wide) // kernels.WIDE), -(-len(narrow) // kernels.NARROW), 1)
        for turn in range(rounds):
            some = wide[turn * kernels.WIDE :][: kernels.WIDE]
            others = narrow[turn * kernels.NARROW :][: kernels.NARROW]
            given = self._ranges | {"places": self.places, "keyed": int(self.keyed), "base": base}
            given |= {"numbers32": numbers.address, "numbers64": numbers.address}
            given |= {"width": 0 if turn else numbers.width}
            given |= {"wide": len(some), "narrow": len(others)}
            for i in range(kernels.WIDE + kernels.NARROW):
                given |= {f"from{i}": numbers.address, f"to{i}": numbers.address}
            for place, number in [*enumerate(some), *enumerate(others, kernels.WIDE)]:
                span, data_type = self.arrays[number]
                target = _Target(data_type if place < kernels.WIDE else INT32, count)
                given |= {f"from{place}": span, f"to{place}": target.address}
                found[number] = target.column()
            if count:
                self._launch(kernels.PICK, given).run(memory, {})
        return Groups(numbers.column(), found, self.codes[kernels.KEY], single)

    @property
    def _ranges(self) -> dict[str, Any]:
        warps, share = kernels.ranges(self.slots)
        least = 0 if self.keyed else 1
        return {
            "slots": self.slots,
            "warps": warps,
            "share": share,
            "flags": self.flags,
            "least": least,
        }

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
) -> Picking:
    """Lay out the picking of groups from `slots` slots; `spans` are the arrays of accumulators by name, `keys` a hash table's."""
    grouping = program.grouping
    assert grouping is not None
    types = {"out_i": INT64, "out_f": FLOAT64}
    arrays = {
        number: (spans[array].part(row * slots, slots), types[array])
        for number, (array, row) in where.results().items()
    }
    numbers = [grouping.rows, *(n for folded in program.folded for n in folded.accumulators)]
    whole = [n for n in dict.fromkeys(numbers) if program.accumulators[n].machine is Machine.I64]
    warps, _ = kernels.ranges(slots)
    state = np.array([0, *([I64_MAX, -I64_MAX - 1] * kernels.MEASURED)], np.int64)
    return Picking(
        program,
        slots,
        arrays[grouping.rows][0] if keys is None else keys,
        keys is not None,
        arrays,
        regions.large(warps, 8),
        regions.small(state),
        tuple(whole[: kernels.MEASURED]),
        codes,
    )
