"""The CPU backend's table: Arrow arrays by column id, in physical form, and how rows are picked from it.

Physical forms: DECIMAL of up to 18 digits is an int64 of the unscaled value, a wider one is decimal128(38, scale); VARCHAR
is `string`, `large_string` or a dictionary of int32 codes; UUID is 16 bytes; LIST and STRUCT are `list` and `struct` of
children in these forms; the other types are as in `plan.types.to_arrow`.  Arrays are
contiguous and may start at an offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from operator import attrgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import OutOfRange
from ...plan.arrow.arrow_arrays import array_from, bits_of, from_numpy, scalar_from
from ...plan.expr import Column
from ...plan.node import Once
from ...plan.text.uuid_text import UUID_BYTES
from ...plan.types import DataType, Kind, nested_arrow, to_arrow
from ...records import dataclass
from ...storage.columns.encodings import LIMBS, Array, EncodedColumn, numbers, values_of
from . import nested_arrays
from .deferred_columns import DeferredColumns
from .functions import interval_records
from .memory.chunks import each
from .string_bytes import picked_bytes, string_bytes

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MIN_REPEATS = 8  # of a string, for rows to have codes of it
NBYTES = attrgetter("nbytes")
FEW_TEXTS = 1 << 9  # strings that are copied as fast as their codes
UNCHECKED = pc.TakeOptions(boundscheck=False)
STRING_LIMIT = (1 << 31) - 1  # bytes that the int32 offsets of `string` can address


@dataclass(frozen=True)
class Table:
    """Arrays of equal length by `Column.id`; `num_rows` counts rows of a table without columns too.

    `encoded` are columns as kernels read them, made when a pipeline first asks for them.
    """

    arrays: Mapping[int, pa.Array] = field(repr=False)
    num_rows: int
    encoded: dict[int, EncodedColumn] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, column: Column) -> pa.Array:
        return self.arrays[column.id]

    @Once
    def nbytes(self) -> int:
        """The bytes of all columns, of those that are not gathered yet about; Arrow takes 2 us to count those of one."""
        return self.size(self.arrays)

    def size(self, column_ids: Iterable[int]) -> int:
        """The bytes of some columns, about, where they are not gathered yet."""
        arrays = self.arrays
        if type(arrays) is DeferredColumns:  # a class of `abc`, whose check is a function of Python
            return arrays.size(column_ids)
        return sum(map(NBYTES, map(arrays.__getitem__, column_ids)))


def physical_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type in which operators expect `data_type` (for VARCHAR the plain one of three)."""
    if data_type.is_decimal:
        return pa.decimal128(38, data_type.scale) if data_type.is_wide_decimal else pa.int64()
    if data_type.is_nested:
        return nested_arrow(data_type, [physical_type(child) for child in data_type.children])
    if data_type.is_enum:
        return to_arrow(data_type.codes)
    return pa.binary(UUID_BYTES) if data_type.kind is Kind.UUID else to_arrow(data_type)


def to_physical(array: pa.Array | pa.ChunkedArray, data_type: DataType) -> pa.Array:
    """Return an Arrow column of any representation of `data_type` in its physical form."""
    if isinstance(array, pa.ChunkedArray):
        array = combine(array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if data_type.kind is Kind.VARCHAR:
        return _physical_strings(array)
    if data_type.is_enum:
        return _enum_codes(array, data_type)
    array = decode(array)
    if data_type.is_nested:
        arrow = physical_type(data_type)
        if str(array.type) != str(arrow) or data_type.holds(Kind.INTERVAL):  # names of elements too
            return nested_arrays.changed(array, data_type, arrow, _physical_child)
        return array
    if data_type.is_decimal:
        wide = pa.decimal128(38, data_type.scale)
        if not isinstance(array, pa.Decimal128Array) or array.type.scale != data_type.scale:
            array = array.cast(wide)
        if data_type.is_wide_decimal:
            return array if array.type == wide else _relabel(array, wide)
        return from_numpy(decimal_limbs(array)[:, 0], validity(array), pa.int64())
    if data_type.kind is Kind.INTERVAL:
        return from_numpy(interval_records.of_arrow(spans_of(array)), validity(array), array.type)
    expected = physical_type(data_type)
    if array.type == expected:
        return array
    if isinstance(array, pa.TimestampArray) and array.type.tz is not None:
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    # A timestamp finer than a microsecond loses digits here, as it does in DuckDB's TIMESTAMP.
    return array.cast(expected, safe=not data_type.is_temporal)


def _enum_codes(array: pa.Array, data_type: DataType) -> pa.Array:
    """Return the places of values, of a dictionary or of texts, among the names of an ENUM."""
    expected = physical_type(data_type)
    names = array_from(data_type.names, pa.string())
    if isinstance(array, pa.DictionaryArray):
        own = array.dictionary.cast(names.type)
        if not own.equals(names):
            return pc.index_in(own, names).take(array.indices).cast(expected)
        array = array.indices
    elif not pa.types.is_integer(array.type):
        array = pc.index_in(array, names)
    return array.cast(expected)


def _physical_child(array: pa.Array, data_type: DataType) -> pa.Array:
    """Elements and fields lie in one form: text with 32-bit offsets, and without a dictionary."""
    return as_element(to_physical(array, data_type), physical_type(data_type))


def as_element(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Return an array without a dictionary, in an element's or a field's type.

    One of that type stays: casting part of an array of structs with a field of type NULL cuts that field short.
    """
    array = decode(array)
    return array if array.type == arrow else array.cast(arrow)


def to_logical(array: pa.Array, data_type: DataType) -> pa.Array:
    """Return a physical array in the exact Arrow type in which results of `data_type` leave the engine."""
    expected = to_arrow(data_type)
    if isinstance(array, pa.DictionaryArray):
        array = decode(array)
    if data_type.is_nested and (array.type != expected or data_type.holds(Kind.INTERVAL)):
        return nested_arrays.changed(array, data_type, expected, to_logical)
    if data_type.kind is Kind.INTERVAL:
        valid = validity(array)
        return from_numpy(interval_records.to_arrow(spans_of(array), valid), valid, array.type)
    if array.type == expected:
        return array
    if data_type.is_enum:
        names = array_from(data_type.names, pa.string())
        return pa.DictionaryArray.from_arrays(array.cast(expected.index_type), names)
    if data_type.kind is Kind.UUID:
        return pa.ExtensionArray.from_storage(expected, array.cast(expected.storage_type))
    if data_type.is_decimal:
        if isinstance(array, pa.Decimal128Array):
            _check_precision(array, data_type)
            return _relabel(array, expected)
        return _widen(array, expected)
    return array.cast(expected)


def combine(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return one contiguous array, with one dictionary and strings of 64-bit offsets where 32 do not suffice."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    if array.num_chunks == 1:
        return array.chunk(0)
    if array.num_chunks == 0:
        return array_from([], array.type)
    return concat_arrays(array.chunks)


def decode(array: pa.Array) -> pa.Array:
    """Return a dictionary array as its plain values, anything else as it is."""
    if not isinstance(array, pa.DictionaryArray):
        return array
    return _pick(array.dictionary, array.indices, with_codes=False)


def to_numpy(array: pa.Array) -> Array:
    """Return the values of a fixed-width array as numpy, a view unless they are bits; arbitrary where NULL.

    Dates are int32 days, timestamps int64 microseconds, booleans bool, dictionary arrays their codes.
    """
    if isinstance(array, pa.DictionaryArray):
        return to_numpy(array.indices)
    if isinstance(array, pa.BooleanArray):
        return bits_of(array.buffers()[1], array.offset, len(array))
    return numbers(array)


def spans_of(array: pa.Array) -> Array:
    """Return the records of an array of intervals, a view; arbitrary where NULL."""
    return values_of(array, interval_records.SPAN)


def decimal_limbs(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return a decimal128 array as rows of two int64: the low 64 bits (to be read unsigned) and the high ones."""
    return values_of(array, LIMBS)


def validity(array: pa.Array) -> Mask | None:
    """Return where an array is not NULL, or None when it has no NULL; a NULL dictionary value counts."""
    if isinstance(array, pa.NullArray):
        return np.zeros(len(array), bool)
    if isinstance(array, pa.DictionaryArray):
        valid = validity(array.indices)
        entries = validity(array.dictionary)
        if entries is None or not len(entries):
            return valid
        codes = to_numpy(array)
        reached: Mask = entries[codes if valid is None else np.where(valid, codes, 0)]
        return reached if valid is None else reached & valid
    if array.null_count == 0:
        return None
    return bits_of(array.buffers()[0], array.offset, len(array))


def take_array(array: pa.Array, indices: Indices) -> pa.Array:
    """Return the rows at `indices`; -1 gives NULL."""
    if len(indices) and np.minimum.reduce(indices) < 0:
        picks = from_numpy(indices, indices >= 0, pa.int64())
    else:
        picks = from_numpy(indices)
    return _pick(array, picks)


def take(table: Table, indices: Indices, columns: Iterable[Column] | None = None) -> Table:
    """Return the rows at `indices` (all valid) of `columns`, by default of all."""
    picks = from_numpy(indices)
    if type(table.arrays) is not DeferredColumns:
        return _picked(table, picks, columns)
    ids = list(table.arrays) if columns is None else [c.id for c in columns]
    there, picked = table.arrays.picked(ids, indices)
    return Table({**_picked(Table(there, 0), picks, None).arrays, **picked}, len(indices))


def fetch(table: Table, columns: Iterable[Column]) -> None:
    """Gather some columns of a table, where they are late, and no others."""
    if type(table.arrays) is DeferredColumns:
        table.arrays.fetch([c.id for c in columns])


def gather(table: Table, indices: Indices, columns: Iterable[Column] | None = None) -> Table:
    """Return the rows at `indices` as `take` does, and a row of NULLs for each -1."""
    missing = indices < 0
    if not missing.any():
        return take(table, indices, columns)
    return _picked(table, from_numpy(indices, ~missing, pa.int64()), columns)


def filter(
    table: Table, selected: Mask | Indices, columns: Iterable[Column] | None = None
) -> Table:
    """Return the rows that a boolean mask, or an array of ascending row numbers, selects."""
    is_mask = selected.dtype == np.bool_
    indices = selected.nonzero()[0] if is_mask else selected.astype(np.int64, copy=False)
    if len(indices) == table.num_rows:
        return Table(_chosen(table, columns), table.num_rows)
    return take(table, indices, columns)


def slice(table: Table, offset: int, count: int | None = None) -> Table:
    """Return `count` rows from `offset` on without copying; beyond the end there are none."""
    start = min(offset, table.num_rows)
    length = table.num_rows - start if count is None else min(count, table.num_rows - start)
    return Table({i: a.slice(start, length) for i, a in table.arrays.items()}, length)


def concat_arrays(arrays: Sequence[pa.Array]) -> pa.Array:
    """Return arrays of one SQL type, in any of its physical forms, one after the other."""
    if len(arrays) == 1:
        return arrays[0]
    types = {a.type for a in arrays}
    if len(types) > 1:
        arrays = [decode(a) for a in arrays]
        wide = any(isinstance(a, pa.LargeStringArray) for a in arrays)
        target = pa.large_string() if wide else next(a.type for a in arrays)
        arrays = [a if a.type == target else a.cast(target) for a in arrays]
    first = arrays[0]
    if isinstance(first, pa.DictionaryArray):
        if not all(
            a.dictionary is first.dictionary or a.dictionary.equals(first.dictionary)
            for a in arrays
        ):
            arrays = pa.chunked_array(arrays).unify_dictionaries().chunks
    elif isinstance(first, pa.StringArray) and sum(string_bytes(a) for a in arrays) > STRING_LIMIT:
        arrays = [a.cast(pa.large_string()) for a in arrays]
    return pa.concat_arrays(arrays)


def _chosen(table: Table, columns: Iterable[Column] | None) -> Mapping[int, pa.Array]:
    return table.arrays if columns is None else {c.id: table.arrays[c.id] for c in columns}


def _picked(table: Table, picks: pa.Array, columns: Iterable[Column] | None) -> Table:
    chosen = _chosen(table, columns)
    picked = each(partial(_pick, picks=picks), list(chosen.values()), len(picks))
    return Table(dict(zip(chosen, picked, strict=True)), len(picks))


def _pick(array: pa.Array, picks: pa.Array, with_codes: bool = True) -> pa.Array:
    """`take` that turns strings into `large_string` where the result may pass the limit of 32-bit offsets.

    `with_codes`: of few strings that come many times, as those of a small table in a join, the result is a dictionary: what follows
    numbers them by their codes.
    """
    texts = with_codes and isinstance(array, pa.StringArray | pa.LargeStringArray)
    if texts and len(picks) >= MIN_REPEATS * max(len(array), FEW_TEXTS) and not array.null_count:
        return pa.DictionaryArray.from_arrays(picks.cast(pa.int32()), array)
    is_short = isinstance(array, pa.StringArray)
    may_pass = is_short and array.nbytes * len(picks) > STRING_LIMIT
    if may_pass and picked_bytes(array, picks) > STRING_LIMIT:
        array = array.cast(pa.large_string())
    return pc.call_function("take", [array, picks], UNCHECKED)


def _physical_strings(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.StringArray | pa.LargeStringArray):
        return array
    if isinstance(array, pa.DictionaryArray):
        values = array.dictionary
        if isinstance(values, pa.BinaryArray):
            values = values.view(pa.string())
        elif isinstance(values, pa.StringViewArray):
            values = values.cast(pa.string())
        indices = array.indices.cast(pa.int32())
        if values.null_count:
            return pa.DictionaryArray.from_arrays(indices, values).dictionary_decode()
        return pa.DictionaryArray.from_arrays(indices, values)
    # Of a file that says no more of its text, which is checked after
    if isinstance(array, pa.BinaryArray):
        return array.view(pa.string())
    return array.cast(pa.large_string() if array.nbytes > STRING_LIMIT else pa.string())


def _relabel(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """The same bits under another precision, which a cast would check value by value."""
    return pa.Array.from_buffers(arrow, len(array), array.buffers(), array.null_count, array.offset)


def _widen(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Unscaled int64 values as a decimal128 column."""
    low = values_of(array, np.int64)
    limbs = np.empty((len(low), 2), np.int64)
    limbs[:, 0] = low
    np.right_shift(low, 63, out=limbs[:, 1])
    return from_numpy(limbs, validity(array), arrow)


def _check_precision(array: pa.Array, data_type: DataType) -> None:
    """Raise `OutOfRange` for a decimal128 that holds more digits than its type."""
    if data_type.precision >= 38 or not len(array):
        return
    limit = scalar_from(
        10**data_type.precision, pa.decimal128(38, 0)
    )  # abs() would round to 28 digits
    unscaled = _relabel(array, pa.decimal128(38, 0))
    extremes = pc.min_max(unscaled)
    if any(v.is_valid and v.as_py().copy_abs() >= limit.as_py() for v in extremes.values()):
        raise OutOfRange(
            f"A value has more digits than {data_type} holds: cast to a wider DECIMAL."
        )


def settled(table: Table) -> Table:
    """Return a table that refers to nothing but its own arrays."""
    return Table(dict(table.arrays), table.num_rows, table.encoded)
