"""Arguments of kernels that are others in each run, or in each text of new constants: what launches that are laid out once lack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Protocol

import numpy as np
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.loop import Machine
from ....codegen.program import Program
from ....codegen.typed_values import Parameter, TableParameter
from ....records import dataclass
from ....storage.columns.encodings import EncodedColumn
from ..memory.link import ALIGNMENT
from .driver_calls import Argument, Late

Constants = Mapping[Late, Argument]


class RunInputs(Protocol):
    """What a run reads, by the places of columns and leaves among those that its kernels are known to read."""

    def column_at(self, number: int) -> EncodedColumn: ...

    def count_at(self, number: int) -> int: ...


@dataclass(frozen=True)
class ColumnPart(Late):
    """The codes or the bitmap of a column, which may be another one in each run."""

    number: int
    bitmap: bool

    def of(self, run: RunInputs) -> int:
        column = run.column_at(self.number)
        span = column.validity if self.bitmap else column.codes.data()
        return int(span.ptr) if span is not None and span.ptr else address(column, self.bitmap)


@dataclass(frozen=True)
class RowsOf(Late):
    """How many rows a leaf has, which may be others in each run."""

    leaf: int

    def of(self, run: RunInputs) -> int:
        return run.count_at(self.leaf)


@dataclass(frozen=True)
class TextConstant(Late):
    """A constant of a text, or where a table of its constants lies: what a kernel takes as `name`, the number `of` it or of `CONDITION`."""

    of: int
    name: str


CONDITION = -1


def address(column: EncodedColumn, bitmap: bool) -> int:
    """Return where a column's codes or its bitmap begin; never nowhere, since a kernel may look before it knows that no row is there."""
    span = column.validity if bitmap else column.codes.data()
    found = 0 if span is None else int(span.ptr)
    return found or int(_nothing().ptr)


def part(number: int, scanned: EncodedColumn | None, bitmap: bool) -> Argument:
    """A column's codes or its bitmap: where they lie, if it is a scan's, since a run looks for the very same (`Relations.find`)."""
    return ColumnPart(number, bitmap) if scanned is None else address(scanned, bitmap)


@cache
def _nothing() -> DeviceBuffer:
    return DeviceBuffer.to_device(np.zeros(ALIGNMENT, np.uint8))


def late_constants(
    of: int, parameters: Iterable[Parameter | TableParameter]
) -> dict[str, Argument]:
    """Return parameters as each text completes them."""
    return {each.name: TextConstant(of, each.name) for each in parameters}


def constants_of(
    programs: Sequence[Program], condition: Sequence[Parameter]
) -> tuple[Constants, tuple[DeviceBuffer, ...]]:
    """Return what kernels take of a text, and the memory of their tables, which goes to the device in one copy."""
    found = {CONDITION: scalars(condition)}
    found |= {number: scalars(program.parameters) for number, program in enumerate(programs)}
    constants: dict[Late, Argument] = {
        TextConstant(of, name): value
        for of, named in found.items()
        for name, value in named.items()
    }
    tables = [(TextConstant(n, t.name), t) for n, p in enumerate(programs) for t in p.tables]
    arrays = [np.ascontiguousarray(t.array, dtype=t.machine.value) for _, t in tables]
    ends = [*accumulate(array.nbytes + -array.nbytes % ALIGNMENT for array in arrays)]
    if not ends or not ends[-1]:
        return constants | dict.fromkeys([name for name, _ in tables], 0), ()
    memory = np.zeros(ends[-1], np.uint8)
    for array, start in zip(arrays, [0, *ends], strict=False):
        memory[start : start + array.nbytes] = array.view(np.uint8)
    buffer = DeviceBuffer.to_device(memory)
    starts = zip(tables, [0, *ends], strict=False)
    return constants | {name: buffer.ptr + start for (name, _), start in starts}, (buffer,)


def scalars(parameters: Sequence[Parameter]) -> dict[str, Argument]:
    """Scalar arguments: Python's numbers are passed as 8 bytes, NumPy's as they are."""
    wide = (Machine.I64, Machine.F64)
    return {
        p.name: p.value if p.machine in wide else getattr(np, p.machine.value)(p.value)
        for p in parameters
    }
