"""The GPU backend's table: pylibcudf columns by column id, in physical form, and how rows are picked from it.

Physical forms: DECIMAL of up to 18 digits is DECIMAL64, a wider one DECIMAL128; DATE is TIMESTAMP_DAYS, what counts ticks (TIME
and timestamps, with a zone or without) libcudf's timestamp of that unit; VARCHAR is STRING, or `dictionaries.Coded` where scans
found few different strings; NULL is an all-null BOOL8.  INTERVAL has no column.  libcudf counts rows in int32 and knows no precision, only a scale, which is the
negative of ours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.interop import ColumnMetadata

from ...codegen.groups.results import Registers
from ...errors import ExecutionError
from ...plan.arrow.whole_bytes import whole_bytes
from ...plan.expr import Column
from ...plan.types import TICKS, DataType, Kind, to_arrow as arrow_type
from ...records import dataclass
from ...storage.columns.device_encode import DURATIONS, TIMESTAMPS
from .columns import INT32, INT64, cast, empty, null_column, reinterpret
from .dictionaries import Coded, Held, codes_of_all, plain
from .late_materialization import LateColumns
from .memory.device import synchronize
from .memory.host_table import HostColumns

MAX_ROWS = (1 << 31) - 1
NULLIFY = plc.copying.OutOfBoundsPolicy.NULLIFY
DONT_CHECK = plc.copying.OutOfBoundsPolicy.DONT_CHECK

_TYPES = {
    Kind.NULL: plc.TypeId.BOOL8,
    Kind.BOOLEAN: plc.TypeId.BOOL8,
    Kind.TINYINT: plc.TypeId.INT8,
    Kind.SMALLINT: plc.TypeId.INT16,
    Kind.INTEGER: plc.TypeId.INT32,
    Kind.BIGINT: plc.TypeId.INT64,
    Kind.UTINYINT: plc.TypeId.UINT8,
    Kind.USMALLINT: plc.TypeId.UINT16,
    Kind.UINTEGER: plc.TypeId.UINT32,
    Kind.UBIGINT: plc.TypeId.UINT64,
    Kind.FLOAT: plc.TypeId.FLOAT32,
    Kind.DOUBLE: plc.TypeId.FLOAT64,
    Kind.DATE: plc.TypeId.TIMESTAMP_DAYS,
    **{kind: TIMESTAMPS[ticks] for kind, ticks in TICKS.items()},
    Kind.VARCHAR: plc.TypeId.STRING,
}


@dataclass(eq=False)
class Table:
    """Columns of equal length by `Column.id`; `num_rows` counts rows of a table without columns too.

    `table[column]` is a column of libcudf, which costs a gather for strings that lie as codes; `columns` holds them as they lie.
    A kernel's result lies on the host (`host_table.HostColumns`), or in the relations that it joined (`late_materialization.LateColumns`), until an
    operator asks for one of its columns.
    """

    columns: Mapping[int, Held] = field(repr=False)
    num_rows: int

    def __getitem__(self, column: Column) -> plc.Column:
        return plain(self.columns[column.id])


@functools.cache
def device_type(data_type: DataType) -> plc.DataType:
    """Return the libcudf type in which operators expect `data_type`."""
    if data_type.is_decimal:
        wide = data_type.is_wide_decimal
        width = plc.TypeId.DECIMAL128 if wide else plc.TypeId.DECIMAL64
        return plc.DataType(width, -data_type.scale)
    return plc.DataType(_TYPES[data_type.kind])


def unsupported_type(data_type: DataType) -> str | None:
    """Return why no device column holds `data_type`, or None."""
    if data_type.is_enum:  # whose results are dictionaries of Arrow
        return "ENUM columns"
    return None if data_type.is_decimal or data_type.kind in _TYPES else f"{data_type} columns"


def plc_table(table: Table, columns: Iterable[Column]) -> plc.Table:
    """Return some columns of a table as libcudf wants them."""
    wanted = list(columns)
    fetch(table, [c.id for c in wanted])
    return plc.Table([table[c] for c in wanted], num_rows=table.num_rows)


def check_rows(count: int, what: str) -> int:
    """Return `count`; raises `ExecutionError` when no libcudf column has so many rows."""
    if count > MAX_ROWS:
        raise ExecutionError(
            f"{what} makes {count:,} rows, and a table on the GPU holds {MAX_ROWS:,}: "
            "filter or aggregate earlier, or run the query with device='cpu'."
        )
    return count


def gather(
    table: Table, rows: plc.Column, columns: Iterable[Column] | None = None, nullify: bool = False
) -> Table:
    """Return the rows at `rows` (INT32, no NULL); with `nullify` a row number out of bounds gives a row of NULLs."""
    ids = list(table.columns) if columns is None else [c.id for c in columns]
    if not ids:
        return Table({}, rows.size())
    if nullify:
        fetch(table, ids)  # row numbers have no NULL
        if not table.num_rows:
            source = _lying(table, ids)
            none = [null_column(rows.size(), c.type()) for c in source.columns()]
            return Table(_like(table, ids, none), rows.size())
    policy = NULLIFY if nullify else DONT_CHECK
    return _picked(table, ids, lambda lying: plc.copying.gather(lying, rows, policy))


def keep_rows(table: Table, mask: plc.Column, columns: Iterable[Column] | None = None) -> Table:
    """Return the rows where a BOOL8 mask is TRUE, neither FALSE nor NULL."""
    ids = list(table.columns) if columns is None else [c.id for c in columns]
    if not ids:
        return Table({}, count_true(mask))
    return _picked(table, ids, lambda t: plc.stream_compaction.apply_retention_mask(t, mask))


def only(table: Table, columns: Iterable[Column]) -> Table:
    """Return some columns of a table."""
    return renamed(table, [(c, c) for c in columns])


def renamed(table: Table, pairs: Iterable[tuple[Column, Column]]) -> Table:
    """Return columns of a table under other identities, given as (new, old)."""
    held = table.columns
    if type(held) is HostColumns:
        return Table(held.renamed(pairs), table.num_rows)
    if type(held) is LateColumns:
        return Table(held.renamed((new.id, old.id) for new, old in pairs), table.num_rows)
    return Table({new.id: held[old.id] for new, old in pairs}, table.num_rows)


def _picked(table: Table, ids: Sequence[int], pick: Callable[[plc.Table], plc.Table]) -> Table:
    """Return what a function that picks rows picks of columns, or of the row numbers at which they are to be fetched."""
    held = table.columns
    if type(held) is not LateColumns:
        picked = pick(_lying(table, ids))
        return Table(_like(table, ids, picked.columns()), picked.num_rows())
    late = held.only(ids)
    there = Table(late.there, table.num_rows)
    rows = [place.numbers(table.num_rows) for place in late.places]
    picked = pick(plc.Table([*_lying(there, list(late.there)).columns(), *rows]))
    values, rows = picked.columns()[: len(late.there)], picked.columns()[len(late.there) :]
    columns = late.with_places(rows, _like(there, list(late.there), values))
    return Table(columns, picked.num_rows())


def fetch(table: Table, ids: Iterable[int]) -> None:
    """Fetch late columns together before they are asked for one by one."""
    if type(table.columns) is LateColumns:
        table.columns.fetch(ids)


def _lying(table: Table, ids: Sequence[int]) -> plc.Table:
    """Return columns as they lie, codes for strings that have them."""
    held = [table.columns[i] for i in ids]
    return plc.Table([h.codes if isinstance(h, Coded) else h for h in held])


def _like(table: Table, ids: Sequence[int], columns: Sequence[plc.Column]) -> dict[int, Held]:
    """Return rows of what `_lying` gave as columns of a table."""
    made: dict[int, Held] = {}
    for i, column in zip(ids, columns, strict=True):
        source = table.columns[i]
        made[i] = Coded(column, source.keys) if isinstance(source, Coded) else column
    return made


def count_true(mask: plc.Column) -> int:
    """Return how many values of a BOOL8 column are TRUE."""
    if not mask.size():
        return 0
    total = plc.reduce.reduce(mask, plc.aggregation.sum(), INT64)
    return total.to_py() or 0


def slice_rows(table: Table, offset: int, count: int | None = None) -> Table:
    """Return `count` rows from `offset` on without copying; beyond the end there are none."""
    start = min(offset, table.num_rows)
    length = table.num_rows - start if count is None else min(count, table.num_rows - start)
    if length == table.num_rows or not table.columns:
        return Table(table.columns, length)
    if type(table.columns) is HostColumns:
        return Table(table.columns.take(slice(start, start + length)), length)
    bounds = [start, start + length]
    return _picked(table, list(table.columns), lambda lying: plc.copying.slice(lying, bounds)[0])


def concat_columns(columns: Sequence[plc.Column]) -> plc.Column:
    """Return columns of one type, one after the other."""
    check_rows(sum(c.size() for c in columns), "Concatenation")
    filled = [c for c in columns if c.size()]
    if len(filled) <= 1:
        return filled[0] if filled else columns[0]
    return plc.concatenate.concatenate(filled)


def concat_held(parts: Sequence[Held]) -> Held:
    """Return columns one after the other; codes into the same keys stay codes."""
    coded = codes_of_all(parts)
    if coded is None:
        return concat_columns([plain(part) for part in parts])
    codes = [c.codes for c in coded]
    if any(c.type().id() != codes[0].type().id() for c in codes):
        codes = [cast(c, INT32) for c in codes]  # extremes of codes have 32 bits
    return Coded(concat_columns(codes), coded[0].keys)


def to_arrow(table: Table, columns: Sequence[Column]) -> pa.Table:
    """Return `columns` on the host, in the Arrow types of `plan.types.to_arrow`."""
    if not columns:
        return _without_columns(table.num_rows)
    if type(table.columns) is HostColumns:
        return table.columns.to_arrow(columns)
    fetch(table, [c.id for c in columns])
    moved = [_for_host(table[c], c.type) for c in columns]
    # Column by column: that of a whole table imports pandas, 0.3 s of a new process
    host = [
        held.to_arrow(ColumnMetadata(c.name, precision=c.type.precision or None))
        for held, c in zip(moved, columns, strict=True)
    ]
    chunks = [
        _exact(pa.chunked_array([array]), arrow_type(c.type))
        for array, c in zip(host, columns, strict=True)
    ]
    return pa.table(chunks, schema=pa.schema([(c.name, arrow_type(c.type)) for c in columns]))


def from_arrow(table: pa.Table, columns: Sequence[Column]) -> Table:
    """Return a host table on the device; column i becomes `columns[i]`."""
    check_rows(table.num_rows, "Moving a table to the GPU")
    moved = {c.id: to_device(table.column(i), c.type) for i, c in enumerate(columns)}
    return Table(moved, table.num_rows)


def to_device(array: pa.ChunkedArray | pa.Array, data_type: DataType) -> plc.Column:
    """Copy a host column of any representation of `data_type` to the device, in its physical form."""
    if isinstance(array, pa.Array):
        array = pa.chunked_array([array])
    if data_type.kind is Kind.NULL:
        return null_column(len(array), device_type(data_type))
    if not len(array):
        return empty(device_type(data_type))
    if pa.types.is_decimal256(array.type):
        array = array.cast(arrow_type(data_type))
    elif not pa.types.is_decimal(array.type):
        # A timestamp finer than a microsecond loses digits here, as it does in DuckDB's TIMESTAMP.
        array = array.cast(_host_type(array.type, data_type), safe=not data_type.is_temporal)
    if data_type.is_ticks:  # libcudf takes no times
        array = _viewed(array, pa.timestamp(array.type.unit))
    return cast(plc.Column.from_arrow(whole_bytes(array)), device_type(data_type))


def in_physical_form(column: plc.Column, data_type: DataType) -> plc.Column:
    """Return a column of a file, which may count another unit, and the time of a day as a duration."""
    ticks = next((t for t, kind in DURATIONS.items() if kind == column.type().id()), None)
    if ticks is not None:
        column = reinterpret(column, plc.DataType(TIMESTAMPS[ticks]))
    return cast(column, device_type(data_type))


def num_bytes(table: Table) -> int:
    """Return the bytes of the device buffers behind a table, which it may share with others, or of its host arrays."""
    columns = table.columns
    # Not by `isinstance`, which for another abstract class is a call of Python
    if type(columns) is LateColumns:
        return columns.nbytes
    if type(columns) is HostColumns:
        size, held = 0, columns.held
        for i in held:
            lying = held[i][1]
            # Of registers not by their property, which is a call for each column of each table
            if type(lying) is Registers:
                size += lying.values.nbytes
            elif isinstance(lying, pa.Array):
                # Its buffers: for the part that it shows pyarrow lets go of the interpreter's lock
                size += lying.get_total_buffer_size()
            else:
                size += lying.nbytes
        return size
    return sum([column.device_buffer_size() for column in columns.values()])


def _for_host(column: plc.Column, data_type: DataType) -> plc.Column:
    """Decimals leave as DECIMAL128, since results are `decimal128`; NULL columns become so on the host."""
    if data_type.is_decimal and not data_type.is_wide_decimal:
        return cast(column, plc.DataType(plc.TypeId.DECIMAL128, -data_type.scale))
    return column


def _exact(array: pa.ChunkedArray, expected: pa.DataType) -> pa.ChunkedArray:
    if array.type == expected:
        return array
    if pa.types.is_null(expected):
        return pa.chunked_array([pa.nulls(len(array))])
    if pa.types.is_large_string(array.type) and array.nbytes >= MAX_ROWS:
        return _short_strings(array)
    if pa.types.is_timestamp(array.type):
        return _viewed(array, expected)
    return array.cast(expected)


def _viewed(array: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray:
    """Return the same counts of the same unit as another type: of the time of a day, or with a zone."""
    return pa.chunked_array([chunk.view(data_type) for chunk in array.chunks], data_type)


def _short_strings(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Strings with 64-bit offsets in chunks that 32-bit offsets can address."""
    pieces = array.nbytes // (MAX_ROWS // 4) + 1
    step = max(1, len(array) // pieces)
    parts = [array.slice(start, step) for start in range(0, len(array), step)]
    return pa.chunked_array([c for p in parts for c in p.cast(pa.string()).chunks], pa.string())


def _host_type(found: pa.DataType, data_type: DataType) -> pa.DataType:
    """The Arrow type to copy: the exact one, except that long strings keep their 64-bit offsets."""
    return found if pa.types.is_large_string(found) else arrow_type(data_type)


def _without_columns(rows: int) -> pa.Table:
    """A host table that has rows and no columns."""
    batch = pa.RecordBatch.from_struct_array(
        pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    )
    return pa.Table.from_batches([batch])


def wait_for(table: Table) -> None:
    """Wait until a table is there; what lies on the host has been waited for."""
    if type(table.columns) is not HostColumns:
        synchronize()


def settled(table: Table) -> Table:
    """Return a table without late columns, which keep all rows of what they are fetched from."""
    columns = table.columns
    if type(columns) is not LateColumns:
        return table
    columns.fetch(list(columns))
    return Table(dict(columns.there), table.num_rows)
