"""The column cache as a table: what `SELECT * FROM fuseline_columns()` reads."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import printable
from ...plan.calendar import EPOCH
from ...plan.types import DIGITS, INTEGER_BITS, TICKS, DataType, Kind
from ...storage.columns.encodings import numbers
from ..columns.cache import CachedColumn, ColumnCache, whole
from ..columns.encodings import EncodedColumn

SCHEMA = pa.schema(
    {
        "table_name": pa.string(),
        "column_name": pa.string(),
        "device": pa.string(),
        "encoding": pa.string(),
        "rows": pa.int64(),
        "nulls": pa.int64(),
        "min": pa.string(),
        "max": pa.string(),
        "distinct_count": pa.int64(),
        "bytes": pa.int64(),
        "plain_bytes": pa.int64(),
        "hits": pa.int64(),
        "tier": pa.string(),
        "worker": pa.int64(),
    }
)
PLAIN_BYTES = {
    Kind.FLOAT: 4,
    Kind.DOUBLE: 8,
    Kind.DATE: 4,
    Kind.INTERVAL: 16,
    **dict.fromkeys(TICKS, 8),
}
CUDF_MASK_ROWS = 64 * 8  # of which the bits fill libcudf's unit of allocation for bitmaps
CUDF_WIDE_OFFSETS = (1 << 31) - 1  # characters from which libcudf's offsets to them have 8 bytes
COUNTED_AT_ONCE = 1 << 20  # codes, which counting makes 8 bytes wide

_string_bytes: WeakKeyDictionary[EncodedColumn, int] = WeakKeyDictionary()


def cached_columns(
    cache: ColumnCache, names: Mapping[Hashable, str], worker: int | None = None
) -> pa.Table:
    """Return the cached columns of the tables that have these names, by identity; `worker` is that of a cluster whose cache it is."""
    known = {identity: printable(name) for identity, name in names.items()}
    rows = [_row(known[whole(c.source)], c) for c in cache.stats() if whole(c.source) in known]
    rows.sort(key=lambda row: (row["table_name"], row["column_name"], row["device"]))
    return pa.Table.from_pylist([row | {"worker": worker} for row in rows], SCHEMA)


def _row(table: str, cached: CachedColumn) -> dict[str, object]:
    row = {
        "table_name": table,
        "column_name": cached.column,
        "device": cached.device,
        "bytes": cached.value.nbytes if cached.tier == "store" else cached.bytes,
        "hits": cached.hits,
        "tier": cached.tier,
    }
    value = cached.value
    if isinstance(value, EncodedColumn):
        return row | _encoded(value, cached.device)
    return row | _unencoded(value, cached)


def _unencoded(value: Any, cached: CachedColumn) -> dict[str, object]:
    """A column as scans leave it: an Arrow array, or on the GPU one of pylibcudf, codes with their strings as `keys`, compact text."""
    if not isinstance(value, pa.Array | pa.ChunkedArray):
        row = {"rows": value.size(), "nulls": value.null_count()}
        if hasattr(value, "keys"):
            return row | {"encoding": f"cudf dictionary values={value.keys.size()}"}
        if hasattr(value, "plain_bytes"):
            return row | {"encoding": value.description, "plain_bytes": value.plain_bytes}
        return row | {"encoding": "cudf", "plain_bytes": cached.bytes}
    row = {"rows": len(value), "nulls": value.null_count}
    if pa.types.is_dictionary(value.type):
        return row | {"encoding": f"arrow dictionary values={len(value.dictionary)}"}
    return row | {"encoding": "arrow", "plain_bytes": cached.bytes}


def _encoded(column: EncodedColumn, device: str) -> dict[str, object]:
    low, high = _extremes(column)
    values = column.encoding.values
    return {
        "encoding": str(column.encoding),
        "rows": column.rows,
        "nulls": column.nulls,
        "min": low,
        "max": high,
        "distinct_count": None if values is None else len(values),
        "plain_bytes": plain_bytes(column) if device == "cpu" else cudf_bytes(column),
    }


def _extremes(column: EncodedColumn) -> tuple[str | None, str | None]:
    """The least and the greatest value, as SQL writes them."""
    values = column.encoding.values
    if values is not None:
        return (values[0].as_py(), values[-1].as_py()) if len(values) else (None, None)
    return _text(column.low, column.type), _text(column.high, column.type)


def _text(value: int | None, data_type: DataType) -> str | None:
    """The text of a register value: unscaled decimals, day numbers, microseconds."""
    if value is None:
        return None
    if data_type.is_decimal:
        return f"{Decimal(value).scaleb(-data_type.scale, DIGITS):f}"
    try:
        match data_type.kind:
            case Kind.BOOLEAN:
                return str(value != 0).lower()
            case Kind.DATE:
                return str(date(1970, 1, 1) + timedelta(days=value))
            case Kind.TIMESTAMP:
                return str(EPOCH + timedelta(microseconds=value))
    except OverflowError:  # outside of Python's years
        return f"{value} {'days' if data_type.kind is Kind.DATE else 'us'} from 1970"
    return str(value)


def plain_bytes(column: EncodedColumn) -> int:
    """Return what the values take in Arrow's plain layout."""
    bitmap = -(-column.rows // 8) if column.nulls else 0
    if column.type.kind is Kind.BOOLEAN:
        return -(-column.rows // 8) + bitmap
    if column.type.kind is Kind.VARCHAR:
        return _bytes_of_strings(column) + 4 * (column.rows + 1) + bitmap
    return _fixed_bytes(column) + bitmap


def cudf_bytes(column: EncodedColumn) -> int:
    """Return what the values take as libcudf reads them: truth values in bytes, and wide offsets to many characters."""
    bitmap = -(-column.rows // CUDF_MASK_ROWS) * CUDF_MASK_ROWS // 8 if column.nulls else 0
    if column.type.kind is Kind.BOOLEAN:
        return column.rows + bitmap
    if column.type.kind is Kind.VARCHAR:
        characters = _bytes_of_strings(column)
        width = 4 if characters < CUDF_WIDE_OFFSETS else 8
        return characters + (width * (column.rows + 1) if column.rows else 0) + bitmap
    return _fixed_bytes(column) + bitmap


def _fixed_bytes(column: EncodedColumn) -> int:
    kind = column.type.kind
    if column.type.is_decimal:
        width = 16 if column.type.is_wide_decimal else 8
    else:
        width = INTEGER_BITS[kind] // 8 if kind in INTEGER_BITS else PLAIN_BYTES[kind]
    return width * column.rows


def _bytes_of_strings(column: EncodedColumn) -> int:
    """How often each code occurs, times the length of its string; counted once for a column."""
    known = _string_bytes.get(column)
    if known is None:
        lengths = numbers(pc.binary_length(column.encoding.values)).astype(np.int64)
        counts = np.zeros(len(lengths), np.int64)
        codes = _on_host(column.flat().codes) if len(lengths) else np.empty(0, np.uint8)
        for start in range(0, len(codes), COUNTED_AT_ONCE):
            counts += np.bincount(codes[start : start + COUNTED_AT_ONCE], minlength=len(lengths))
        if column.nulls and len(lengths):
            counts[0] -= column.nulls  # the code of a NULL is 0
        known = int(counts @ lengths)
        _string_bytes[column] = known
    return known


def _on_host(codes: Any) -> Any:
    """Codes as a NumPy array; those of the GPU are a pylibcudf column."""
    return codes if isinstance(codes, np.ndarray) else numbers(codes.to_arrow())
