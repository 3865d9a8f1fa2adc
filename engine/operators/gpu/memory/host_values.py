"""Values on the host of what came from the device as it lay there: codes become values here, which spares the device a call a column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pylibcudf as plc

from ....codegen.groups.results import Registers
from ....codegen.handwritten.row_kernels import Job
from ....plan.node import Once
from ....plan.types import DataType, Kind, to_arrow as arrow_type
from ....records import dataclass
from ....storage.columns.encodings import Array, Encoding
from ..columns import DECIMAL128, NUMBERS, STRING, address_of, width_of
from ..dictionaries import Coded, Held
from ..pipeline.stored import strings_of

INT32 = plc.TypeId.INT32


@dataclass(eq=False)
class Lying:
    """A column as it lies on the device, and what its codes mean."""

    column: plc.Column
    encoding: Encoding | None = None
    strings: pa.Array | None = None

    @Once
    def kind(self) -> plc.TypeId:
        return self.column.type().id()

    @Once
    def job(self) -> Job | None:
        """How the kernel of `fetch_rows` finds all rows of it; None where there are none, and for types that it does not know."""
        column, width = self.column, width_of(self.kind)
        if not column.size():
            return None
        first, data = int(column.offset()), column.data()
        if self.kind == STRING:
            ends = column.child(0)
            width = 4 if ends.type().id() == INT32 else 8
            start = address_of(ends, width) + first * width
            job = Job(1, width, start, 0 if data is None else int(data.ptr), 0, 0, 0)
        elif width:
            job = Job(0, width, int(data.ptr) + first * width, 0, 0, 0, 0)
        else:
            return None
        if column.null_count():
            job.bits, job.first, job.valid = int(column.null_mask().ptr), first, 0
        return job

    @Once
    def average(self) -> float:
        """Bytes of a text."""
        data = self.column.data() if self.kind == STRING else None
        return 0.0 if data is None else data.size / max(self.column.child(0).size() - 1, 1)


def lying_of(held: Held, encoding: Encoding | None = None) -> Lying:
    """Return what there is to copy of a column."""
    if isinstance(held, Coded):
        return Lying(held.codes, None, strings_of(held.keys))
    return Lying(held, encoding, None if encoding is None else encoding.values)


def host_values(
    data_type: DataType, lying: Lying, rows: int, data: Array, valid: Array | None
) -> pa.Array | Registers:
    """Return values of a fixed width as in registers, those that have no such form in the Arrow type of results.

    `data` are their bytes, `valid` is None where no value is NULL.
    """
    kind = lying.kind
    if data_type.kind is Kind.NULL:
        return pa.nulls(rows)
    if kind == DECIMAL128:
        return pa.Array.from_buffers(
            arrow_type(data_type), rows, [bitmap_of(valid), pa.py_buffer(data)]
        )
    numbers = data.view(NUMBERS[kind])
    if lying.encoding is not None:
        numbers = lying.encoding.registers(numbers)
    return Registers(numbers, valid, data_type, lying.strings)


def bitmap_of(valid: Array | None) -> pa.Buffer | None:
    """Return truth values as Arrow has them."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
