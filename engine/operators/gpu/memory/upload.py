"""Small tables from the host to the device in one copy, where `table.to_device` takes several a column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pylibcudf as plc
from cuda.bindings import runtime
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.groups.results import Registers
from ....plan.arrow.arrow_arrays import truth_values
from ....plan.expr import Column
from ....plan.types import DataType, Kind
from ....storage.columns.encodings import Array
from ..columns import INT32, empty
from ..dictionaries import Held
from ..table import Table, device_type, to_device
from .buffers import FROM_HOST, check, stream_handle
from .host_table import Arrays, HostColumns
from .link import ALIGNMENT

PADDING = np.zeros(ALIGNMENT, np.uint8)


class Staging:
    """Host bytes that go to the device together; what a place in them becomes is made after the copy."""

    def __init__(self) -> None:
        self.parts: list[Array] = []
        self.size = 0

    def add(self, values: Array) -> slice:
        """Append an array and return where its bytes are."""
        data = np.ascontiguousarray(values).view(np.uint8)
        padding = -data.nbytes % ALIGNMENT
        self.parts += [data, PADDING[:padding]]
        place = slice(self.size, self.size + data.nbytes)
        self.size += data.nbytes + padding
        return place

    def copied(self) -> DeviceBuffer:
        """Copy them, in the order of the stream.

        Such a copy has read the host's memory when it returns, unless that is pinned.  RMM's own waits besides until the device has it.
        """
        values = np.concatenate(self.parts)
        buffer = DeviceBuffer(size=values.nbytes, stream=plc.utils.CUDF_DEFAULT_STREAM)
        given = buffer.ptr, values.ctypes.data, values.nbytes, FROM_HOST, stream_handle()
        check(runtime.cudaMemcpyAsync(*given)[0])
        return plc.gpumemoryview(buffer)


def on_host(held: Iterable[tuple[Column, pa.Array | Registers]], rows: int) -> Table:
    """Return what lies on the host as a table whose columns are uploaded when an operator asks for one."""
    return Table(HostColumns(held, uploaded), rows)


def uploaded(arrays: Arrays) -> Mapping[int, Held]:
    rows = len(next(iter(arrays.values())))
    return upload(arrays, rows).columns


def row_numbers(rows: Array) -> plc.Column:
    """Return row numbers as a column to gather by."""
    return column_of(rows.astype(np.int32), None, INT32)


def column_of(values: Array, valid: Array | None, data_type: plc.DataType) -> plc.Column:
    """Return values of a fixed width, in that of their type, as a column, NULL where not `valid`."""
    staging = Staging()
    place, bits, nulls = staging.add(values), None, 0
    if valid is not None and not valid.all():
        bits = staging.add(np.packbits(valid, bitorder="little"))
        nulls = len(valid) - int(np.count_nonzero(valid))
    memory = staging.copied()
    bitmap = None if bits is None else memory.byte_slice(_padded(bits))
    return plc.Column(data_type, len(values), memory.byte_slice(place), bitmap, nulls, 0, [])


def upload(arrays: Mapping[Column, pa.Array], rows: int) -> Table:
    """Return host arrays, in the Arrow types of results, as a table in physical form."""
    if not rows:
        return Table({c.id: empty(device_type(c.type)) for c in arrays}, 0)
    staging = Staging()
    places = {
        c: _staged(array, c.type, staging)
        for c, array in arrays.items()
        if c.type.kind is not Kind.NULL
    }
    memory = staging.copied() if staging.size else None
    columns = {}
    for column, array in arrays.items():
        if column.type.kind is Kind.NULL:
            columns[column.id] = to_device(array, column.type)
            continue
        columns[column.id] = _column(memory, places[column], array, column.type)
    return Table(columns, rows)


def _staged(array: pa.Array, data_type: DataType, staging: Staging) -> list[slice]:
    """Put a column's values, its bitmap if there are NULLs, and a string's offsets into the staging memory."""
    places = []
    if data_type.kind is Kind.VARCHAR:
        _, ends, characters = array.buffers()
        offsets = np.frombuffer(ends, np.int32)[array.offset : array.offset + len(array) + 1]
        data = np.frombuffer(characters or b"", np.uint8)[offsets[0] : offsets[-1]]
        places = [staging.add(data), staging.add(offsets - offsets[0])]
    else:
        places = [staging.add(_values(array, data_type))]
    if array.null_count:
        places.append(staging.add(np.packbits(truth_values(array.is_valid()), bitorder="little")))
    return places


def _values(array: pa.Array, data_type: DataType) -> Array:
    """Values in the width that they have on the device; what lies under NULLs is anything."""
    if data_type.kind is Kind.BOOLEAN:
        return np.asarray(array.fill_null(False)).astype(np.uint8)
    width = 16 if data_type.is_decimal else array.type.bit_width // 8
    start = array.offset * width
    values = np.frombuffer(array.buffers()[1], np.uint8)[start : start + len(array) * width]
    if data_type.is_decimal and not data_type.is_wide_decimal:
        return values.view(np.int64)[::2]
    return values


def _column(
    memory: DeviceBuffer, places: list[slice], array: pa.Array, data_type: DataType
) -> plc.Column:
    rows, nulls = len(array), array.null_count
    bitmap = memory.byte_slice(_padded(places[-1])) if nulls else None
    children = []
    if data_type.kind is Kind.VARCHAR:
        offsets = memory.byte_slice(places[1])
        children = [plc.Column(INT32, rows + 1, offsets, None, 0, 0, [])]
    data = memory.byte_slice(places[0])
    return plc.Column(device_type(data_type), rows, data, bitmap, nulls, 0, children)


def _padded(place: slice) -> slice:
    """Bitmaps are as long as libcudf makes them: a multiple of 64 bytes."""
    return slice(place.start, place.stop + -(place.stop - place.start) % ALIGNMENT)
