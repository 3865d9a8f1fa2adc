"""Tables that operators made, as kernels read them: numbers as they lie where that is possible, strings as codes.

They are read once or twice, so that nothing is made as narrow as it could be.  Of integers kernels need to know the extremes,
which are rounded outward to powers of two: a kernel made for one run then fits the next, whose rows are others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pylibcudf as plc

from ....codegen.groups.results import Registers
from ....codegen.ranges import I64_MAX
from ....plan.expr import Column
from ....plan.types import VARCHAR, DataType, Kind
from ....storage.columns.device_encode import UNSIGNED, aligned, encode_on_device
from ....storage.columns.encodings import (
    Dictionary,
    EncodedColumn,
    Narrow,
    Plain,
    code_width,
)
from ...cpu.table import to_physical
from ..columns import FLOAT64, INT64, as_integers, cast, is_float, reinterpret, without_nulls
from ..dictionaries import MOST_KEYS, Coded, Held
from ..functions.kernels_arithmetic import extremes
from ..late_materialization import LateColumns
from ..memory.host_table import HostColumns, Lying
from ..memory.upload import Staging
from ..table import Table, to_device
from .derived_columns import truths

KEYS_KEPT = 64  # columns of keys whose strings on the host are remembered
FEW_ROWS = 64  # up to which a wide interval costs nothing: no table is made of it
FLOAT32 = plc.DataType(plc.TypeId.FLOAT32)
_WIDTHS = {
    plc.TypeId.UINT8: 1,
    plc.TypeId.UINT16: 2,
    plc.TypeId.UINT32: 4,
    plc.TypeId.INT8: 1,
    plc.TypeId.INT16: 2,
    plc.TypeId.INT32: 4,
}

Encoded = dict[Column, EncodedColumn | None]


def stored_columns(table: Table, columns: Sequence[Column]) -> Encoded:
    """Return columns of a table for kernels; None for those that have no encoding."""
    if isinstance(table.columns, HostColumns):
        return _from_host(table.columns, columns)
    found = _fetched(table.columns, columns) if isinstance(table.columns, LateColumns) else {}
    measured: list[tuple[Column, plc.Column, Any]] = []
    for column in (c for c in columns if c not in found):
        held = table.columns[column.id]
        integers = None if isinstance(held, Coded) else _integers(held, column.type)
        if integers is None:
            found[column] = _encoded(held, column.type)
        else:
            measured.append((column, integers, plc.reduce.minmax(integers)))
    # All are being measured before the first answer is waited for
    for column, integers, (low, high) in measured:
        bounds = int(low.to_py()), int(high.to_py())
        found[column] = _whole(integers, column.type, bounds)
    return found


def _fetched(held: LateColumns, columns: Sequence[Column]) -> Encoded:
    """Those of some columns that lie as codes, or will when they are fetched: what is known of these needs no measuring."""
    known = {c: f for c in columns if (f := held.late(c.id)) is not None and f.encoding is not None}
    late = held.lying(column.id for column in known)
    found: Encoded = {}
    for column, fetch in known.items():
        assert fetch.encoding is not None
        lying = aligned(late[column.id])
        nulls, width = lying.null_count(), fetch.encoding.width
        if isinstance(fetch.encoding, Plain):
            codes = without_nulls(lying, 0.0)
        else:
            codes = without_nulls(reinterpret(lying, UNSIGNED.get(width, INT64)), 0)
        bitmap = lying.null_mask() if nulls else None
        found[column] = _column(column.type, fetch.encoding, codes, bitmap, nulls, fetch.bounds)
    return found


def _integers(held: plc.Column, data_type: DataType) -> plc.Column | None:
    """The integers behind a column of numbers, dates or timestamps, of which the extremes are to be measured."""
    if held.size() == held.null_count() or is_float(held):
        return None
    if data_type.kind in (Kind.BOOLEAN, Kind.VARCHAR, Kind.NULL, Kind.INTERVAL):
        return None
    return None if data_type.is_wide_decimal else as_integers(aligned(held))


def _encoded(held: Held, data_type: DataType) -> EncodedColumn | None:
    if isinstance(held, Coded):
        return _of_codes(held, data_type)
    if data_type.kind is Kind.BOOLEAN and held.size() > held.null_count():
        return truths(aligned(held))
    if data_type.is_wide_decimal and held.size() > held.null_count():
        low, high = extremes(held)
        if low < -I64_MAX - 1 or high > I64_MAX:
            return None
        narrow = cast(aligned(held), plc.DataType(plc.TypeId.DECIMAL64, -data_type.scale))
        return _whole(as_integers(narrow), data_type, (low, high))
    return encode_on_device(held, data_type)


def _whole(
    integers: plc.Column, data_type: DataType, bounds: tuple[int, int]
) -> EncodedColumn | None:
    """Integers as they lie: unsigned codes where none is negative, else values of 64 bits."""
    rows, nulls = integers.size(), integers.null_count()
    low, high = rounded(bounds, rows)
    if high > I64_MAX:
        return None
    bitmap = integers.null_mask() if nulls else None
    width = _WIDTHS.get(integers.type().id(), 8)
    if width < 8 and low == 0:
        codes = without_nulls(reinterpret(integers, UNSIGNED[width]), 0)
        high = min(high, (1 << 8 * width) - 1)
    else:
        low, high, width = max(low, -I64_MAX - 1), min(high, I64_MAX), 8
        values = integers
        if values.type().id() == plc.TypeId.UINT64:
            values = reinterpret(values, INT64)
        codes = without_nulls(cast(values, INT64), 0)
    return _column(data_type, Narrow(0, 1, width), codes, bitmap, nulls, (low, high))


def rounded(bounds: tuple[int, int], rows: int) -> tuple[int, int]:
    """Return an interval that does not depend on each single value: from 0 or a power of two to another."""
    step = 8 if rows <= FEW_ROWS else 1

    def limit(size: int) -> int:
        bits = -(-size.bit_length() // step) * step
        return (1 << min(bits, 63)) if size < 1 << 63 else 1 << 64

    low, high = bounds
    return (-limit(-low - 1) if low < 0 else 0), max(limit(max(high, 0)) - 1, 0)


def _of_codes(coded: Coded, data_type: DataType) -> EncodedColumn:
    codes = aligned(coded.codes)
    nulls = codes.null_count()
    width = _WIDTHS[codes.type().id()]
    bitmap = codes.null_mask() if nulls else None
    plain = reinterpret(without_nulls(codes, 0), UNSIGNED[width])
    return _column(data_type, Dictionary(strings_of(coded.keys), width), plain, bitmap, nulls, None)


_strings: OrderedDict[int, tuple[plc.Column, Any]] = OrderedDict()  # by the identity of keys
_keys: OrderedDict[int, tuple[Any, plc.Column]] = OrderedDict()  # by that of strings


def strings_of(keys: plc.Column) -> Any:
    """Return the keys of codes on the host; they are remembered, since each look waits for the device."""
    known = _strings.get(id(keys))
    if known is None:
        known = keys, keys.to_arrow().cast(pa.string())
        _remember(_strings, id(keys), known)
    return known[1]


def keys_of(strings: Any) -> plc.Column:
    """Return the strings of a dictionary on the device; few are remembered, and known to `strings_of`."""
    known = _keys.get(id(strings))
    if known is None:
        known = strings, to_device(strings, VARCHAR)
        if len(strings) <= MOST_KEYS:
            _remember(_keys, id(strings), known)
            _remember(_strings, id(known[1]), (known[1], strings))
    return known[1]


def _remember(known: OrderedDict[int, Any], identity: int, pair: Any) -> None:
    """Note a pair, which keeps the object of this identity alive."""
    known[identity] = pair
    while len(known) > KEYS_KEPT:
        known.popitem(last=False)


def _column(
    data_type: DataType,
    encoding: Narrow | Dictionary | Plain,
    codes: plc.Column,
    bitmap: Any,
    nulls: int,
    bounds: tuple[int, int] | None,
) -> EncodedColumn:
    low, high = bounds or (None, None)
    rows = codes.size()
    size = rows * encoding.width + (0 if bitmap is None else -(-rows // 8))
    return EncodedColumn(data_type, encoding, rows, codes, bitmap, nulls, low, high, size)


# From the host


def _from_host(held: HostColumns, columns: Sequence[Column]) -> Encoded:
    """Encode columns on the host and move all in one copy."""
    staging = Staging()
    made = {
        column: _staged_registers(held.lying(column), column.type, staging)
        or _staged(held.array(column), column.type, staging)
        for column in columns
    }
    memory = staging.copied() if staging.size else None
    return {
        column: None if parts is None else _moved(memory, column.type, *parts)
        for column, parts in made.items()
    }


def _staged(array: pa.Array, data_type: DataType, staging: Staging) -> Any:
    """Put codes and bitmap into the staging memory; return all that says what they are, None without an encoding."""
    if data_type.kind in (Kind.NULL, Kind.INTERVAL):
        return None
    valid = np.asarray(array.is_valid()) if array.null_count else None
    encoding: Narrow | Dictionary | Plain
    bounds: tuple[int, int] | None = None
    if data_type.kind is Kind.VARCHAR:
        values = pc.unique(array).drop_null()
        values = values.take(pc.sort_indices(values))
        encoding = Dictionary(values, code_width(len(values)))
        codes = np.asarray(pc.index_in(array, value_set=values).fill_null(0))
    elif data_type.is_float:
        encoding = Plain(4 if data_type.kind is Kind.FLOAT else 8)
        codes = np.asarray(array.fill_null(0))
    elif data_type.kind is Kind.BOOLEAN:
        encoding, bounds = Narrow(0, 1, 1), (0, 1)
        codes = np.asarray(array.fill_null(False))
    else:
        integers = _host_integers(array, data_type, valid)
        if integers is None:
            return None
        encoding, codes, bounds = Narrow(0, 1, 8), integers, _bounds(integers)
    unsigned = np.dtype(f"u{encoding.width}")
    stored = codes if codes.dtype.kind == "f" else codes.astype(unsigned)
    bits = None if valid is None else staging.add(np.packbits(valid, bitorder="little"))
    return encoding, len(array), array.null_count, bounds, staging.add(stored), bits


def _staged_registers(held: Lying, data_type: DataType, staging: Staging) -> Any:
    """As `_staged`, of numbers as in registers, which are codes as they are; None for anything else."""
    if not isinstance(held, Registers) or held.type != data_type:
        return None
    values, encoding = held.values, _encoding_of_registers(held)
    if encoding is None:
        return None
    if isinstance(encoding, Plain):
        values = values.astype(np.dtype(f"f{encoding.width}"), copy=False)
    valid = None if held.valid is None or held.valid.all() else held.valid
    stored = values if valid is None else np.where(valid, values, values.dtype.type(0))
    nulls = 0 if valid is None else len(valid) - int(np.count_nonzero(valid))
    bits = None if valid is None else staging.add(np.packbits(valid, bitorder="little"))
    bounds = _bounds(stored) if isinstance(encoding, Narrow) else None
    return encoding, len(stored), nulls, bounds, staging.add(stored), bits


def _encoding_of_registers(held: Registers) -> Narrow | Plain | None:
    kind, lying = held.type.kind, held.values.dtype
    if held.type.is_float:
        return Plain(4 if kind is Kind.FLOAT else 8) if lying.kind == "f" else None
    others = (Kind.BOOLEAN, Kind.VARCHAR, Kind.UBIGINT)
    return Narrow(0, 1, 8) if lying == np.int64 and kind not in others else None


def _bounds(integers: Any) -> tuple[int, int]:
    low, high = (int(integers.min()), int(integers.max())) if len(integers) else (0, 0)
    low, high = rounded((low, high), len(integers))
    return max(low, -I64_MAX - 1), min(high, I64_MAX)


def _host_integers(array: pa.Array, data_type: DataType, valid: Any) -> Any:
    """Integers as in registers, 0 for NULL; None beyond 64 bits."""
    physical = to_physical(array, data_type)
    if data_type.is_wide_decimal:
        start = 2 * physical.offset
        limbs = np.frombuffer(physical.buffers()[1], np.int64)[start : start + 2 * len(array)]
        integers, high = limbs[0::2].copy(), limbs[1::2]
        fits = high == integers >> 63
    elif data_type.kind is Kind.UBIGINT:
        unsigned = np.asarray(physical.fill_null(0))
        integers, fits = unsigned.view(np.int64), unsigned <= np.uint64(I64_MAX)
    else:
        if data_type.is_temporal:
            physical = physical.view(pa.int32() if data_type.kind is Kind.DATE else pa.int64())
        return np.asarray(physical.fill_null(0)).astype(np.int64)
    if valid is not None:
        integers[~valid] = 0
        fits = fits | ~valid
    return integers if bool(fits.all()) else None


def _moved(
    memory: Any,
    data_type: DataType,
    encoding: Narrow | Dictionary | Plain,
    rows: int,
    nulls: int,
    bounds: tuple[int, int] | None,
    place: slice,
    bits: slice | None,
) -> EncodedColumn:
    if isinstance(encoding, Plain):
        kind = FLOAT32 if encoding.width == 4 else FLOAT64
    else:
        kind = UNSIGNED.get(encoding.width, INT64)
    data = None if memory is None else memory.byte_slice(place)
    codes = plc.Column(kind, rows, data, None, 0, 0, [])
    bitmap = None if bits is None else memory.byte_slice(bits)
    return _column(data_type, encoding, codes, bitmap, nulls, bounds)
