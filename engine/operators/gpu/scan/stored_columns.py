"""Columns of the column store on the device: the files are those of the host, whose encodings have the same layout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pylibcudf as plc

from ....plan import physical as p
from ....plan.types import Kind
from ....storage.column_store.column_file import StoredColumn
from ....storage.column_store.column_store import StoredPlace
from ....storage.columns.cache import TableScan
from ....storage.columns.device_decode import codes_of as device_codes_of
from ....storage.columns.device_encode import MOST_STRINGS, aligned, codes_at
from ....storage.columns.encode import largest_dictionary
from ....storage.columns.encodings import EncodedColumn, bits_of, codes_of, values_of
from ...column_tiers import keep_of_device, lift
from ...context import Context
from ..memory.device import is_out_of_memory, on_device, synchronize, take_device
from ..table import to_device


def lift_columns(scan: TableScan, context: Context) -> None:
    """Bring those columns of a scan that the cache lacks into it from the column store."""
    if context.cache.store is not None:
        lift(scan, scan.sources, "gpu", context, _uploaded)


def lift_ahead(scan: p.ParquetScan, context: Context) -> None:
    """Do so in the thread that reads the next chunk."""
    _lift_ahead(scan, (), context)


@on_device
def _lift_ahead(scan: p.ParquetScan, inputs: tuple[()], context: Context) -> None:
    lift_columns(scan, context)


def keep_column(
    scan: p.ParquetScan | p.MemoryScan, source: str, column: EncodedColumn, context: Context
) -> None:
    """Have a column that was encoded on the device written to the column store."""
    if context.cache.store is not None:
        synchronize()  # the writer's thread copies it
        keep_of_device(scan, source, column, context, _downloaded)


def _uploaded(column: StoredColumn, place: StoredPlace) -> tuple[object, int] | None:
    """Return a column on the device and its bytes; None for what is read from Parquet: a dictionary that the device would not make, and where there is no room."""
    value = column.value
    try:
        if isinstance(value, EncodedColumn):
            made = _encoded_on_device(value)
            return None if made is None else (made, made.nbytes)
        data_type = place.table.types[place.source]
        if not column.refused or data_type.kind is not Kind.VARCHAR or not len(value):
            return None
        if pa.types.is_dictionary(value.type):
            return None
        texts = to_device(value, data_type)
        return texts, texts.device_buffer_size()
    except Exception as error:
        if is_out_of_memory(error):
            return None
        raise


def _encoded_on_device(column: EncodedColumn) -> EncodedColumn | None:
    encoding = column.encoding
    values = encoding.values
    if not column.rows:
        return None
    if values is not None and not _makes(values, column.rows):
        return None
    whole = aligned(plc.Column.from_arrow(codes_of(column)))
    codes = codes_at(whole.data(), encoding, column.rows)
    bitmap = whole.null_mask() if column.nulls else None
    return replace(column, codes=codes, validity=bitmap)


def _makes(values: pa.Array, rows: int) -> bool:
    """Whether the device would make a dictionary of these values for so many rows."""
    most = min(MOST_STRINGS, largest_dictionary(rows))
    return len(values) <= most and pa.types.is_string(values.type)


def _downloaded(column: EncodedColumn) -> EncodedColumn:
    """Return a column of the device on the host, in the writer's thread."""
    take_device()
    array = device_codes_of(column).to_arrow()
    codes = values_of(array, column.encoding.code_type)
    if not column.nulls:
        return replace(column, codes=codes, validity=None)
    valid = bits_of(array.buffers()[0], array.offset, len(array))
    packed = np.packbits(valid, bitorder="little")
    # The code of a NULL is 0 on the host
    return replace(column, codes=np.where(valid, codes, codes.dtype.type(0)), validity=packed)
