"""Small tables from the device to the host: all buffers in one turn, and one wait, where libcudf waits for each of them.

What lies as codes goes as codes and becomes values here, which spares the device a call for each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pylibcudf as plc

from ...codegen.groups.results import Registers
from ...plan.expr import Column
from ...plan.types import DataType, Kind
from ...plan.types import to_arrow as arrow_type
from ...storage.encodings import Dictionary, Encoding, Narrow
from . import table as tables
from .buffers import LANDING_BYTES, landed
from .dictionaries import Coded
from .late import LateColumns
from .small import HostColumns
from .stored import strings_of
from .table import Table
from .upload import uploaded

MOST_ROWS = 1 << 15
MOST_BYTES = LANDING_BYTES
ALIGNMENT = 64
WIDE = 16  # bytes of a DECIMAL128
STRING, INT32, DECIMAL128 = plc.TypeId.STRING, plc.TypeId.INT32, plc.TypeId.DECIMAL128
NUMBERS = {
    plc.TypeId.BOOL8: np.uint8,
    plc.TypeId.INT8: np.int8,
    plc.TypeId.INT16: np.int16,
    plc.TypeId.INT32: np.int32,
    plc.TypeId.INT64: np.int64,
    plc.TypeId.UINT8: np.uint8,
    plc.TypeId.UINT16: np.uint16,
    plc.TypeId.UINT32: np.uint32,
    plc.TypeId.UINT64: np.uint64,
    plc.TypeId.FLOAT32: np.float32,
    plc.TypeId.FLOAT64: np.float64,
    plc.TypeId.TIMESTAMP_DAYS: np.int32,
    plc.TypeId.TIMESTAMP_MICROSECONDS: np.int64,
    plc.TypeId.DECIMAL64: np.int64,
}


def to_arrow(table: Table, columns: Sequence[Column]) -> pa.Table:
    """Return `columns` on the host, in the Arrow types of `plan.types.to_arrow`."""
    held = on_host(table, columns) if columns else None
    return tables.to_arrow(table, columns) if held is None else held.to_arrow(columns)


def on_host(
    table: Table, columns: Sequence[Column], most_rows: int = MOST_ROWS
) -> HostColumns | None:
    """Return columns of a small table on the host, or None for a table that is not small."""
    if isinstance(table.columns, HostColumns):
        return table.columns if table.num_rows <= most_rows else None
    if not table.num_rows:
        empty = {c: pa.array([], arrow_type(c.type)) for c in columns}
        return HostColumns(empty, uploaded)
    if table.num_rows > most_rows or _expected_bytes(table, columns) > MOST_BYTES:
        return None
    landing = Landing()
    parts = [_added(part, landing) for part in _lying(table, columns)]
    if landing.size > MOST_BYTES or not all(parts):
        return None
    memory = landing.landed()
    return HostColumns({p.column: p.held(memory) for p in parts if p is not None}, uploaded)


class Landing:
    """Pieces of device memory that go to the host together, through memory that the device writes to without the host's help."""

    def __init__(self) -> None:
        self.pieces: list[tuple[int, int, int]] = []
        self.size = 0

    def add(self, address: int, size: int) -> slice:
        """Have bytes copied and return where they will be."""
        place = slice(self.size, self.size + size)
        if size:
            self.pieces.append((self.size, address, size))
        self.size += size + -size % ALIGNMENT
        return place

    def landed(self) -> Any:
        """Copy, wait, and return the bytes."""
        return landed(self.pieces, self.size)


@dataclass
class _Part:
    """A column on its way: as it lies, what its codes mean, and where its buffers will be."""

    column: Column
    lying: plc.Column
    encoding: Encoding | None = None
    strings: Any = None
    data: slice = field(default_factory=lambda: slice(0))
    bits: slice | None = None
    ends: slice | None = None

    @property
    def rows(self) -> int:
        return int(self.lying.size())

    def held(self, memory: Any) -> pa.Array | Registers:
        """The values as in registers; those that have no such form in the Arrow type of results."""
        data_type, valid = self.column.type, self._valid(memory)
        if data_type.kind is Kind.NULL:
            return pa.nulls(self.rows)
        if self.strings is None and self.lying.type().id() in (STRING, DECIMAL128):
            return self._as_it_lies(memory, valid, data_type)
        numbers = self._numbers(memory)
        if isinstance(self.encoding, Narrow):
            numbers = numbers.astype(np.int64) * self.encoding.step + self.encoding.base
        return Registers(numbers, valid, data_type, self.strings)

    def _numbers(self, memory: Any) -> Any:
        return memory[self.data].view(NUMBERS[self.lying.type().id()])

    def _valid(self, memory: Any) -> Any:
        if self.bits is None:
            return None
        first = self.lying.offset() % 8
        bits = np.unpackbits(memory[self.bits], bitorder="little")
        return bits[first : first + self.rows].astype(np.bool_)

    def _as_it_lies(self, memory: Any, valid: Any, data_type: DataType) -> pa.Array:
        bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
        buffers = [bitmap, pa.py_buffer(memory[self.data])]
        if self.ends is not None:
            buffers.insert(1, pa.py_buffer(memory[self.ends]))
        return pa.Array.from_buffers(arrow_type(data_type), self.rows, buffers)


def _lying(table: Table, columns: Sequence[Column]) -> list[_Part]:
    """Columns as they lie in memory, those that are late as codes of their relations."""
    held = table.columns
    late = held.lying(c.id for c in columns) if isinstance(held, LateColumns) else {}
    parts = []
    for column in columns:
        found, encoding = held[column.id] if column.id not in late else late[column.id], None
        if isinstance(held, LateColumns) and column.id in late:
            fetch = held.fetches[column.id][1]
            encoding = fetch.encoding
            if encoding is None:
                found = fetch.decode(found)
        if isinstance(found, Coded):
            parts.append(_Part(column, found.codes, None, strings_of(found.keys)))
        else:
            strings = encoding.values if isinstance(encoding, Dictionary) else None
            parts.append(_Part(column, found, encoding, strings))
    return parts


def _added(part: _Part, landing: Landing) -> _Part | None:
    """Have a column's buffers copied; None for strings that libcudf addresses with 64 bits."""
    lying, rows, kind = part.lying, part.rows, part.lying.type().id()
    first = int(lying.offset())
    if lying.null_count():
        start = first // 8
        part.bits = landing.add(int(lying.null_mask().ptr) + start, -(-(first + rows) // 8) - start)
    if kind != STRING:
        width = WIDE if kind == DECIMAL128 else np.dtype(NUMBERS[kind]).itemsize
        part.data = landing.add(int(lying.data().ptr) + first * width, rows * width)
        return part
    ends, characters = lying.child(0), lying.data()
    if ends.type().id() != INT32:
        return None
    width = np.dtype(np.int32).itemsize
    part.ends = landing.add(
        int(ends.data().ptr) + (int(ends.offset()) + first) * width, (rows + 1) * width
    )
    if characters is not None:
        part.data = landing.add(int(characters.ptr), int(characters.size))
    return part


def _expected_bytes(table: Table, columns: Sequence[Column]) -> int:
    """About how many bytes columns take, those that are late by the size of what they are picked from."""
    held, size = table.columns, 0
    for column in columns:
        if isinstance(held, LateColumns) and column.id not in held.there:
            lying = held.fetches[column.id][1].lying
            size += lying.device_buffer_size() * table.num_rows // max(lying.size(), 1)
        else:
            found = held[column.id]
            size += (found.codes if isinstance(found, Coded) else found).device_buffer_size()
    return int(size)
