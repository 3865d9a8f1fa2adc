"""Tables that operators made, as kernels read them: numbers as they lie where that is possible, strings as codes.

They are read once or twice, so that nothing is made as narrow as it could be.  Of integers kernels need to know the extremes,
which are rounded outward to powers of two: a kernel made for one run then fits the next, whose rows are others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pylibcudf as plc

from ....codegen.ranges import I64_MAX
from ....plan.expr import Column
from ....plan.types import VARCHAR, DataType, Kind
from ....storage.columns import encodings as enc
from ....storage.columns.device_decode import decode_on_device
from ....storage.columns.device_encode import (
    UNSIGNED,
    aligned,
    code_type,
    codes_at,
    encode_on_device,
    encoded_as,
)
from ..column_extremes import measured
from ..columns import INT64, as_integers, cast, is_float, reinterpret, width_of, without_nulls
from ..dictionaries import MOST_KEYS, Coded, Held, numbered
from ..functions.kernels_arithmetic import extremes
from ..late_materialization import LateColumns, registers_of
from ..memory.host_table import HostColumns
from ..memory.upload import Staging
from ..table import Table, to_device
from .derived_columns import truths

KEYS_KEPT = 64  # columns of keys whose strings on the host are remembered

Encoded = dict[int, enc.EncodedColumn | None]  # by `Column.id`


def stored_columns(table: Table, columns: Sequence[Column]) -> Encoded:
    """Return columns of a table for kernels; None for those that have no encoding."""
    if type(table.columns) is HostColumns:
        return _from_host(table.columns, columns)
    found = _fetched(table.columns, columns) if type(table.columns) is LateColumns else {}
    whole: dict[Column, plc.Column] = {}
    for column in (c for c in columns if c.id not in found):
        registers = registers_of(table.columns, column.id)
        if registers is not None and registers.null_count() < registers.size():
            integers = aligned(registers)
        else:
            held = table.columns[column.id]
            integers = None if isinstance(held, Coded) else _integers(held, column.type)
        if integers is None:
            found[column.id] = _encoded(held, column.type)
        else:
            whole[column] = integers
    bounds = measured(list(whole.values()))
    for (column, integers), ends in zip(whole.items(), bounds, strict=True):
        found[column.id] = _whole(integers, column.type, ends or (0, 0))
    return found


def _fetched(held: LateColumns, columns: Sequence[Column]) -> Encoded:
    """Those of some columns that lie as codes, or will when they are fetched: what is known of these needs no measuring."""
    fetches = {c: f for c in columns if (f := held.late(c.id)) is not None}
    known = {c: f for c, f in fetches.items() if f.encoding is not None and not f.loose}
    late = held.lying(column.id for column in known)
    found: Encoded = {}
    for column, fetch in known.items():
        assert fetch.encoding is not None
        lying = aligned(late[column.id])
        zero = 0.0 if fetch.encoding.is_float else 0
        codes = without_nulls(reinterpret(lying, code_type(fetch.encoding)), zero)
        ends = fetch.bounds or (None, None)
        found[column.id] = encoded_as(column.type, fetch.encoding, lying, codes, *ends)
    return found


def _integers(held: plc.Column, data_type: DataType) -> plc.Column | None:
    """The integers behind a column of numbers, dates or timestamps, of which the extremes are to be measured."""
    if held.size() == held.null_count() or is_float(held):
        return None
    if data_type.kind in (Kind.BOOLEAN, Kind.VARCHAR, Kind.NULL, Kind.INTERVAL):
        return None
    return None if data_type.is_wide_decimal else as_integers(aligned(held))


def _encoded(held: Held, data_type: DataType) -> enc.EncodedColumn | None:
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
) -> enc.EncodedColumn | None:
    """Integers as they lie: unsigned codes where none is negative, else values of 64 bits."""
    low, high = enc.rounded(bounds, integers.size())
    if high > I64_MAX:
        return None
    width = width_of(integers.type().id())
    if width < 8 and low == 0:
        codes = without_nulls(reinterpret(integers, UNSIGNED[width]), 0)
        high = min(high, (1 << 8 * width) - 1)
    else:
        low, high, width = max(low, -I64_MAX - 1), min(high, I64_MAX), 8
        values = integers
        if values.type().id() == plc.TypeId.UINT64:
            values = reinterpret(values, INT64)
        codes = without_nulls(cast(values, INT64), 0)
    encoding = enc.narrow_for(0, (1 << 8 * width) - 1, 1)
    return encoded_as(data_type, encoding, integers, codes, low, high)


def _of_codes(coded: Coded, data_type: DataType) -> enc.EncodedColumn:
    codes = aligned(coded.codes)
    width = width_of(codes.type().id())
    plain = reinterpret(without_nulls(codes, 0), UNSIGNED[width])
    return encoded_as(data_type, enc.Dictionary(strings_of(coded.keys), width), codes, plain)


_strings: OrderedDict[int, tuple[plc.Column, Any]] = OrderedDict()  # by the identity of keys
_keys: OrderedDict[int, tuple[Any, plc.Column]] = OrderedDict()  # by that of strings


def strings_of(keys: plc.Column) -> Any:
    """Return the keys of codes on the host; they are remembered, since each look waits for the device."""
    known = _strings.get(id(keys))
    if known is None:
        known = keys, keys.to_arrow().cast(pa.string())
        _remember(_strings, id(keys), known)
        _remember(_keys, id(known[1]), (known[1], keys))
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


def decoded(codes: plc.Column, encoding: enc.Encoding, data_type: plc.DataType) -> Held:
    """Return what all or some of a column's codes stand for."""
    strings = encoding.values
    if strings is None:
        return decode_on_device(codes, encoding, data_type)
    if MOST_KEYS < len(strings) > codes.size():
        return to_device(strings.take(codes.to_arrow()), VARCHAR)
    return numbered(codes, keys_of(strings))


def _remember(known: OrderedDict[int, Any], identity: int, pair: Any) -> None:
    """Note a pair, which keeps the object of this identity alive."""
    known[identity] = pair
    while len(known) > KEYS_KEPT:
        known.popitem(last=False)


# From the host


def _from_host(held: HostColumns, columns: Sequence[Column]) -> Encoded:
    """Encode columns on the host and move all in one copy."""
    staging, found = Staging(), dict.fromkeys([column.id for column in columns])
    made: dict[int, tuple[enc.EncodedColumn, slice, slice | None]] = {}
    for column in columns:
        host = held.encoded(column)
        if host is not None:
            bits = host.validity
            place = staging.add(host.codes)
            made[column.id] = host, place, None if bits is None else staging.add(bits)
    memory = staging.copied() if staging.size else None
    return found | {i: _moved(memory, *each) for i, each in made.items()}


def _moved(
    memory: Any, host: enc.EncodedColumn, place: slice, bits: slice | None
) -> enc.EncodedColumn:
    """A column that was made for this, with its buffers in memory of the device."""
    data = None if memory is None else memory.byte_slice(place)
    host.validity = None if bits is None else memory.byte_slice(bits)
    host.codes = codes_at(data, host.encoding, host.rows)
    return host
