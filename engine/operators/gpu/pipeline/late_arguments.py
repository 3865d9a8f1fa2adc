"""Arguments of kernels that are others in each run, or in each text of new constants: what launches that are laid out once lack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.loop import Machine
from ....codegen.program import Program
from ....codegen.typed_values import Parameter, TableParameter
from ....storage.columns.encodings import Array, EncodedColumn
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
        return address(run.column_at(self.number), self.bitmap)


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
    """Return what kernels take of a text, and the memory of their tables."""
    found: dict[Late, Argument] = {
        TextConstant(CONDITION, name): value for name, value in scalars(condition).items()
    }
    held = []
    for number, program in enumerate(programs):
        tables, buffer = _tables(program)
        if buffer is not None:
            held.append(buffer)
        for name, value in {**scalars(program.parameters), **tables}.items():
            found[TextConstant(number, name)] = value
    return found, tuple(held)


def scalars(parameters: Sequence[Parameter]) -> dict[str, Argument]:
    """Scalar arguments: Python's numbers are passed as 8 bytes, NumPy's as they are."""
    wide = (Machine.I64, Machine.F64)
    return {
        p.name: p.value if p.machine in wide else getattr(np, p.machine.value)(p.value)
        for p in parameters
    }


def _tables(program: Program) -> tuple[dict[str, int], DeviceBuffer | None]:
    """Put all tables into one buffer; return where each begins."""
    parts: list[Array] = []
    starts: dict[str, int] = {}
    size = 0
    for table in program.tables:
        values = np.ascontiguousarray(table.array, dtype=table.machine.value).view(np.uint8)
        starts[table.name] = size
        padding = -len(values) % ALIGNMENT
        parts += [values, np.zeros(padding, np.uint8)]
        size += len(values) + padding
    if not size:
        return dict.fromkeys(starts, 0), None
    buffer = DeviceBuffer.to_device(np.concatenate(parts))
    return {name: buffer.ptr + start for name, start in starts.items()}, buffer
