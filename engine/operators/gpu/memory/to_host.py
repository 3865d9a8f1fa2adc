"""Small tables from the device to the host: all buffers in one turn, and one wait, where libcudf waits for each of them.

What lies as codes goes as codes and becomes values here, which spares the device a call for each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa
import pylibcudf as plc

from ....codegen.groups.results import Registers
from ....plan.arrow.arrow_arrays import array_from
from ....plan.expr import Column
from ....plan.types import to_arrow as arrow_type
from ....records import dataclass
from ....storage.columns.encodings import Array
from .. import table as tables
from ..columns import NUMBERS, STRING, address_of, width_of
from ..dictionaries import Coded
from ..late_materialization import LateColumns
from ..table import Table
from . import fetch_rows
from .buffers import LANDING_BYTES, landed
from .host_table import HostColumns
from .host_values import INT32, Lying, bitmap_of, host_values, lying_of
from .link import ALIGNMENT
from .upload import row_numbers, uploaded

MOST_ROWS = fetch_rows.MOST_ROWS
MOST_BYTES = LANDING_BYTES
BYTES_A_NUMBER = 8


def to_arrow(table: Table, columns: Sequence[Column]) -> pa.Table:
    """Return `columns` on the host, in the Arrow types of `plan.types.to_arrow`."""
    lying = table.columns
    if columns and type(lying) is HostColumns and table.num_rows <= MOST_ROWS:
        return lying.to_arrow(columns)
    held = on_host(table, columns) if columns else None
    return tables.to_arrow(table, columns) if held is None else held.to_arrow(columns)


def arrow_bytes(table: Table, columns: Sequence[Column]) -> int:
    """Return how many bytes of the host columns take as Arrow has them, about; those that are still to be fetched as numbers."""
    if type(table.columns) is HostColumns:
        return 0
    more = sum(c.type.is_decimal and not c.type.is_wide_decimal for c in columns)
    size = tables.num_bytes(table) + more * BYTES_A_NUMBER * table.num_rows
    return max(size, BYTES_A_NUMBER * table.num_rows * len(columns))


def on_host(
    table: Table, columns: Sequence[Column], most_rows: int = MOST_ROWS
) -> HostColumns | None:
    """Return columns of a small table on the host, or None for a table that is not small."""
    if type(table.columns) is HostColumns:
        return table.columns if table.num_rows <= most_rows else None
    if not table.num_rows:
        empty = [(c, array_from([], arrow_type(c.type))) for c in columns]
        return HostColumns(empty, uploaded)
    if table.num_rows > most_rows:
        return None
    if fetch_rows.saves(table, columns):
        found = fetch_rows.fetched(table, columns, MOST_BYTES)
        if found is not None:
            return found
    if _expected_bytes(table, columns) > MOST_BYTES:
        return None
    landing = Landing()
    parts = [_added(part, landing) for part in _lying(table, columns)]
    if landing.size > MOST_BYTES or not all(parts):
        return None
    memory = landing.landed()
    return HostColumns([(p.column, p.held(memory)) for p in parts if p is not None], uploaded)


def picked_on_host(
    table: Table, columns: Sequence[Column], rows: plc.Column | Array
) -> HostColumns | None:
    """Return columns at row numbers (INT32, or on the host) on the host, or None where they are not small."""
    found = fetch_rows.fetched(table, columns, MOST_BYTES, rows)
    if found is None:
        numbers = rows if isinstance(rows, plc.Column) else row_numbers(rows)
        found = on_host(tables.gather(table, numbers, columns), columns)
    return found


def leading(
    table: Table, columns: Sequence[Column], keys: plc.Column, descending: bool, count: int
) -> HostColumns | None:
    """Return `fetch_rows.leading`, as far as memory for it is kept ready."""
    return fetch_rows.leading(table, columns, keys, descending, count, MOST_BYTES)


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

    def landed(self) -> Array:
        """Copy, wait, and return the bytes."""
        return landed(self.pieces, self.size)


def numbers_on_host(*columns: plc.Column) -> list[Array]:
    """Return the values of a few rows of a fixed width, anything where NULL, with one wait."""
    landing, places = Landing(), []
    for column in columns:
        width = width_of(column.type().id())
        places.append(landing.add(address_of(column, width), column.size() * width))
    memory = landing.landed()
    return [
        memory[place].view(NUMBERS[column.type().id()])
        for place, column in zip(places, columns, strict=True)
    ]


@dataclass
class _CopiedPart:
    """A column on its way: as it lies, and where its buffers will be."""

    column: Column
    lying: Lying
    data: slice = field(default_factory=lambda: slice(0))
    bits: slice | None = None
    ends: slice | None = None

    def held(self, memory: Array) -> pa.Array | Registers:
        """The values as in registers; those that have no such form in the Arrow type of results."""
        column, valid = self.lying.column, self._valid(memory)
        if self.ends is None:
            data = memory[self.data]
            return host_values(self.column.type, self.lying, column.size(), data, valid)
        buffers = [pa.py_buffer(memory[self.ends]), pa.py_buffer(memory[self.data])]
        arrow = arrow_type(self.column.type)
        return pa.Array.from_buffers(arrow, column.size(), [bitmap_of(valid), *buffers])

    def _valid(self, memory: Array) -> Array | None:
        if self.bits is None:
            return None
        column = self.lying.column
        first = column.offset() % 8
        bits = np.unpackbits(memory[self.bits], bitorder="little")
        return bits[first : first + column.size()].astype(np.bool_)


def _lying(table: Table, columns: Sequence[Column]) -> list[_CopiedPart]:
    """Columns as they lie in memory, those that are late as codes of their relations."""
    held = table.columns
    late = held.lying(c.id for c in columns) if type(held) is LateColumns else {}
    parts = []
    for column in columns:
        found, encoding = held[column.id] if column.id not in late else late[column.id], None
        if type(held) is LateColumns and column.id in late:
            fetch = held.fetches[column.id][1]
            encoding = fetch.encoding
            if encoding is None:
                found = fetch.decode(found)
        parts.append(_CopiedPart(column, lying_of(found, encoding)))
    return parts


def _added(part: _CopiedPart, landing: Landing) -> _CopiedPart | None:
    """Have a column's buffers copied; None for strings that libcudf addresses with 64 bits."""
    lying = part.lying.column
    rows, kind, first = int(lying.size()), lying.type().id(), int(lying.offset())
    if lying.null_count():
        start = first // 8
        part.bits = landing.add(int(lying.null_mask().ptr) + start, -(-(first + rows) // 8) - start)
    if kind != STRING:
        width = width_of(kind)
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
        if type(held) is LateColumns and column.id not in held.there:
            lying = held.fetches[column.id][1].lying
            size += lying.device_buffer_size() * table.num_rows // max(lying.size(), 1)
        else:
            found = held[column.id]
            size += (found.codes if isinstance(found, Coded) else found).device_buffer_size()
    return int(size)
