"""The sides of a join that does not fit into device memory: cut into parts by their keys, and put together again.

On the host they lie as they lie on the device, in memory that it copies to and from by itself: while one piece is copied, the next
one is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pylibcudf as plc

from ....plan.arrow.arrow_arrays import array_from
from ....plan.arrow.whole_bytes import whole_bytes
from ....plan.expr import Column
from ....records import dataclass
from ...spill_area import SpilledPiece
from ...spilling import PARTS, PIECE_BYTES
from .. import columns as col, table as tables
from ..dictionaries import Coded, Held
from ..memory import link
from ..memory.device import is_out_of_memory
from ..table import Table, check_rows, device_type

Op = plc.binaryop.BinaryOperator
ASCENDING, NO_NULLS = [plc.types.Order.ASCENDING], [plc.types.NullOrder.AFTER]
FEWEST_ROWS = 1 << 10  # of a piece, whatever little memory there is


def parted(
    table: Table, keys: Sequence[Column], columns: Sequence[Column]
) -> Iterator[SpilledPiece]:
    """Yield the rows of a table, some at a time, in the order of their parts; an empty table as one piece.

    Pieces become smaller where the device has no memory to bring them into that order.
    """
    if not table.num_rows:
        yield SpilledPiece(_nothing(columns), [0] * (PARTS + 1))
        return
    step = max(1, table.num_rows * PIECE_BYTES // max(1, tables.num_bytes(table)))
    start = 0
    before: _Moving | None = None
    try:
        while start < table.num_rows or before is not None:
            rows = tables.slice_rows(table, start, step)
            needed = before is None and step <= FEWEST_ROWS
            cut = _cut(rows, keys, columns, needed) if rows.num_rows else None
            if cut is not None:
                start += step
            elif before is None:
                step //= 4
            done = None if before is None else before.landed(columns)
            before = None if cut is None else _Moving(*cut)
            del cut
            if done is not None:
                yield done
    finally:
        link.wait()  # before the memory of what is being copied belongs to someone else


def piece_of(table: Table, bounds: Sequence[int], columns: Sequence[Column]) -> SpilledPiece:
    """Return a table whose rows lie in the order of parts already."""
    if not table.num_rows:
        return SpilledPiece(_nothing(columns), bounds)
    try:
        return _Moving(tables.plc_table(table, columns), bounds).landed(columns)
    finally:
        link.wait()


def unparted(rows: Sequence[pa.RecordBatch], columns: Sequence[Column]) -> Table:
    """Return rows of pieces as a table; raises `MemoryError` when the device has no room for it."""
    filled = [batch for batch in rows if batch.num_rows]
    count = check_rows(sum(batch.num_rows for batch in filled), "A part of a join")
    try:
        held = {
            c.id: _on_device([batch.column(i) for batch in filled], device_type(c.type))
            for i, c in enumerate(columns)
        }
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise MemoryError(str(error)) from error
    # Else the rows could go, and others be written over them, before they are read
    plc.utils.CUDF_DEFAULT_STREAM.synchronize()
    return Table(held, count)


def part_numbers(keys: Sequence[plc.Column]) -> plc.Column:
    """Return the part (INT32) of each row: the same for keys that are equal in SQL, 0 where one of them is NULL."""
    return parts_of_hashes(key_hashes(keys), keys, col.INT32)


def parts_of_hashes(
    hashes: plc.Column, keys: Sequence[plc.Column], data_type: plc.DataType
) -> plc.Column:
    """Return the same of keys whose hashes are known."""
    numbers = col.cast(
        col.binary(hashes, col.scalar(PARTS, col.UINT32), Op.MOD, col.UINT32), data_type
    )
    for key in keys:
        if key.null_count():
            numbers = col.select(plc.unary.is_valid(key), numbers, col.scalar(0, data_type))
    return numbers


def key_hashes(keys: Sequence[Held]) -> plc.Column:
    """Return hashes (UINT32) that are the same for keys that are equal in SQL, and anything where one of them is NULL."""
    return _hashes([_hashed_text(key) for key in keys])


def _hashed_text(key: Held) -> plc.Column:
    """Return a key with the hash of each text in its place, as of codes those of the dictionary."""
    if isinstance(key, Coded):
        return key.spread(text_hashes(key.domain()))
    return text_hashes(key) if key.type().id() == col.STRING else col.as_key(key)


def text_hashes(texts: plc.Column) -> plc.Column:
    """Return what stands for texts in the hashes of keys."""
    return _hashes([texts])


def _hashes(columns: Sequence[plc.Column]) -> plc.Column:
    return plc.hashing.murmurhash3_x86_32(plc.Table(list(columns)))


# To the host


@dataclass
class _Lying:
    """A column as it lies, and where its buffers will be: bits of those that have NULL, ends of strings, values."""

    column: plc.Column
    places: list[slice]

    def landed(self, landing: link.PinnedLanding) -> pa.Array:
        buffers: list[pa.Buffer | None] = [*landing.buffers(self.places)]
        if not self.column.null_count():
            buffers.insert(0, None)
        kind, rows = _resting(self.column), self.column.size()
        return pa.Array.from_buffers(kind, rows, buffers, self.column.null_count())


class _Moving:
    """Rows on their way to the host; the device's memory is kept meanwhile."""

    def __init__(self, rows: plc.Table, bounds: Sequence[int]) -> None:
        self._bounds, self._landing = bounds, link.PinnedLanding()
        # Bits count from the beginning of a buffer
        whole = [c.copy() if c.offset() else c for c in rows.columns()]
        self._columns = [_Lying(column, _places(column, self._landing)) for column in whole]
        self._landing.begin()

    def landed(self, columns: Sequence[Column]) -> SpilledPiece:
        """Wait, and let go of the device's memory."""
        link.wait()
        arrays = [column.landed(self._landing) for column in self._columns]
        self._columns.clear()
        batch = pa.RecordBatch.from_arrays(arrays, [str(c.id) for c in columns])
        return SpilledPiece(batch, self._bounds, self._landing.pinned)


def _cut(
    rows: Table, keys: Sequence[Column], columns: Sequence[Column], needed: bool
) -> tuple[plc.Table, list[int]] | None:
    """Return rows in the order of their parts and where these begin; None without memory for it, unless it is `needed`."""
    try:
        numbers = plc.Table([part_numbers([rows[key] for key in keys])])
        # Not `partitioning.partition`, which gave wrong DECIMAL128 beside a BIGINT (libcudf 26.10, H200)
        order = plc.sorting.stable_sorted_order(numbers, ASCENDING, NO_NULLS)
        ordered = plc.copying.gather(numbers, order, tables.DONT_CHECK)
        wanted = plc.Table([col.sequence(PARTS + 1)])
        bounds = plc.search.lower_bound(ordered, wanted, ASCENDING, NO_NULLS)
        picked = tables.plc_table(tables.gather(rows, order, columns), columns)
        return picked, bounds.to_arrow().to_pylist()
    except (MemoryError, RuntimeError) as error:
        if needed or not is_out_of_memory(error):
            raise
        return None


def _places(column: plc.Column, landing: link.PinnedLanding) -> list[slice]:
    """Have a column's buffers copied, in Arrow's order."""
    rows, kind, places = column.size(), column.type().id(), []
    if column.null_count():
        places.append(landing.add(int(column.null_mask().ptr), -(-rows // 8)))
    if kind == col.STRING:
        ends, text = column.child(0), column.data()
        width = col.width_of(ends.type().id())
        begin = int(ends.data().ptr) + int(ends.offset()) * width
        places.append(landing.add(begin, (rows + 1) * width))
        places.append(landing.add(0 if text is None else int(text.ptr), _size(text)))
        return places
    places.append(landing.add(int(column.data().ptr), rows * col.width_of(kind)))
    return places


def _size(span: plc.gpumemoryview | None) -> int:
    return 0 if span is None else int(span.size)


def _resting(column: plc.Column) -> pa.DataType:
    """The Arrow type of a column on the host: of the same bits."""
    if column.type().id() != col.STRING:
        return _type_of_bits(column.type())
    wide = column.child(0).type().id() == plc.TypeId.INT64
    return pa.large_string() if wide else pa.string()


def _type_of_bits(data_type: plc.DataType) -> pa.DataType:
    kind = data_type.id()
    if kind == col.STRING:
        return pa.string()
    if kind == col.DECIMAL128:
        return pa.decimal128(38, -data_type.scale())
    return pa.from_numpy_dtype(col.NUMBERS[kind])


def _nothing(columns: Sequence[Column]) -> pa.RecordBatch:
    arrays = [array_from([], _type_of_bits(device_type(c.type))) for c in columns]
    return pa.RecordBatch.from_arrays(arrays, [str(c.id) for c in columns])


def _on_device(arrays: Sequence[pa.Array], data_type: plc.DataType) -> plc.Column:
    """Copy the arrays of a column, one after the other, to the device."""
    if not arrays:
        return col.empty(data_type)
    if any(pa.types.is_large_string(array.type) for array in arrays):
        arrays = [array.cast(pa.large_string()) for array in arrays]
    column = plc.Column.from_arrow(whole_bytes(pa.chunked_array(arrays)))
    return column if col.same_type(column.type(), data_type) else col.reinterpret(column, data_type)
