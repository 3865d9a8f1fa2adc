"""Columns of tiers below on the device, and those that go there: memory of the host and files have the device's encodings, in the same layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pylibcudf as plc

from ....errors import ExecutionError
from ....plan import physical as p
from ....plan.arrow.arrow_arrays import bits_of
from ....plan.types import DataType, Kind
from ....storage.column_store.column_file import StoredColumn
from ....storage.column_store.column_store import StoredPlace
from ....storage.columns.cache import (
    HOST,
    CacheKey,
    ChunkCache,
    TableScan,
    encoded_key,
    kernel_key,
    row_groups,
    whole,
)
from ....storage.columns.device_encode import MOST_STRINGS, aligned, codes_at
from ....storage.columns.encode import largest_dictionary
from ....storage.columns.encodings import EncodedColumn
from ....storage.file_identity import FileIdentity, SourceIdentity
from ....storage.tables.column_chunks import row_ranges
from ...column_tiers import keep_of_device, lift
from ...context import Context
from ..columns import INT32, TEXT, binary, scalar
from ..memory.device import is_out_of_memory, make_room, on_device, synchronize, take_device
from ..memory.link import Uploads, downloaded, downloaded_texts
from ..table import concat_columns, to_device

if TYPE_CHECKING:
    from ....storage.tables.parquet import ParquetTable


def lift_columns(scan: TableScan, context: Context) -> None:
    """Bring those columns of a scan that the cache lacks into it from memory of the host, or from the column store, for kernels that are launched from now on."""
    cache = context.cache
    if not cache.is_lasting and isinstance(scan, p.ParquetScan):
        _take_rows(scan, context)
    if cache.store is None and not cache.lasting.used(HOST):
        return
    with Uploads(in_order=cache.is_lasting) as uploads:
        _lift(scan, uploads, context)


def _lift(scan: TableScan, uploads: Uploads, context: Context) -> None:
    lift(scan, scan.sources, "gpu", context, partial(_uploaded, uploads, context))


def _take_rows(scan: p.ParquetScan, context: Context) -> None:
    """Have a chunk read what the device has whole of its columns where they lie, without a copy over the link.

    19 hot queries of TPC-H within a tenth of its columns lift 792 bytes instead of 971 (counted on a GPU that is not there).
    """
    cache, selection = context.cache, row_groups(scan)
    table = cast("ParquetTable", scan.table)
    ranges = [] if selection is None else list(row_ranges(table, selection))
    if len(ranges) != 1:
        return
    ((first, end),) = ranges
    for source in dict.fromkeys(scan.sources):
        key = kernel_key(scan, source, "gpu")
        column = cache.lasting.get(encoded_key(table.identity, None, source, "gpu"))
        if not isinstance(column, EncodedColumn) or column.nulls or column.others:
            continue
        if not cache.holds(key):
            width = column.encoding.width
            lying = column.codes.data().byte_slice(slice(first * width, end * width))
            codes = aligned(codes_at(lying, column.encoding, end - first))
            cache.put(key, replace(column, rows=end - first, codes=codes), 0)


def lift_ahead(scans: Sequence[p.ParquetScan], context: Context) -> None:
    """Do so for a chunk, in the thread that reads the next one, beside the kernels of the one before."""
    _lift_ahead(scans, (), context)


@on_device
def _lift_ahead(scans: Sequence[p.ParquetScan], inputs: tuple[()], context: Context) -> None:
    cache = context.cache
    assert isinstance(cache, ChunkCache)
    with Uploads(in_order=False) as uploads:
        for scan in scans:
            _take_rows(scan, context)
            _lift(scan, uploads, context)
        cache.begun.set()


def keep_column(
    scan: p.ParquetScan | p.MemoryScan, source: str, column: EncodedColumn, context: Context
) -> None:
    """Have a column that was encoded on the device written to the column store."""
    if context.cache.store is not None:
        synchronize()  # the writer's thread copies it
        keep_of_device(scan, source, column, context, _downloaded)


def to_host_tier(key: CacheKey, value: object, is_refused: bool) -> tuple[object, int] | None:
    """Copy a column of files that leaves the device; None for one that is decoded from others, or for which the host has no memory.

    Tables in memory are on the host already.
    """
    if not isinstance(whole(key.source), FileIdentity | SourceIdentity):
        return None
    take_device()
    try:
        made = on_host(value) if isinstance(value, EncodedColumn) or is_refused else None
    except (MemoryError, ExecutionError):
        return None
    return None if made is None else (made, made.nbytes)


def on_host(value: object) -> EncodedColumn | pa.Array | None:
    """Return a column that kernels or operators read as the host has it, or text as it is; None for any other."""
    if isinstance(value, EncodedColumn):
        return downloaded(value)
    if not isinstance(value, plc.Column) or value.type().id() != plc.TypeId.STRING:
        return None
    return downloaded_texts(value)


def _uploaded(
    uploads: Uploads, context: Context, column: StoredColumn, place: StoredPlace
) -> tuple[object, int] | None:
    """Return a column on the device and its bytes; None for what is read from Parquet: a dictionary that the device would not make, and where there is no room.

    Without room for a chunk that is an error, which has smaller ones come.
    """
    value = column.value
    make_room(value.nbytes, context)
    try:
        if isinstance(value, EncodedColumn):
            made = _encoded_on_device(value, place, uploads)
            return None if made is None else (made, made.nbytes)
        data_type = place.table.types[place.source]
        if not column.refused or data_type.kind is not Kind.VARCHAR or not len(value):
            return None
        if pa.types.is_dictionary(value.type):
            return None
        texts = _texts_on_device(value, data_type, uploads)
        return texts, texts.device_buffer_size()
    except Exception as error:
        if context.cache.is_lasting and is_out_of_memory(error):
            return None
        raise


def _encoded_on_device(
    column: EncodedColumn, place: StoredPlace, uploads: Uploads
) -> EncodedColumn | None:
    column = column.flat()
    encoding = column.encoding
    values = encoding.values
    if not column.rows:
        return None
    if values is not None and not _makes(values, place.table.num_rows):
        return None
    codes = codes_at(uploads.add(column.codes), encoding, column.rows)
    bitmap = uploads.add(column.validity) if column.nulls else None
    return replace(column, codes=codes, validity=bitmap)


def _texts_on_device(
    texts: pa.Array | pa.ChunkedArray, data_type: DataType, uploads: Uploads
) -> plc.Column:
    pieces = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    columns = [_text_on_device(piece, data_type, uploads) for piece in pieces if len(piece)]
    if len(columns) > 1:
        uploads.wait()
    return concat_columns(columns)


def _text_on_device(array: pa.Array, data_type: DataType, uploads: Uploads) -> plc.Column:
    rows = len(array)
    bitmap, ends, characters = array.buffers()
    if not pa.types.is_string(array.type) or characters is None:
        return to_device(array, data_type)
    offsets = np.frombuffer(ends, np.int32)[array.offset : array.offset + rows + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last:
        return to_device(array, data_type)
    starts = plc.Column(INT32, rows + 1, uploads.add(offsets), None, 0, 0, [])
    if first:  # the device is faster than the host, and takes what lies in locked memory
        uploads.wait()
        starts = binary(starts, scalar(first, INT32), plc.binaryop.BinaryOperator.SUB, INT32)
    mask = None
    if array.null_count:
        valid = bits_of(bitmap, array.offset, rows)
        mask = uploads.add(np.packbits(valid, bitorder="little"))
    data = uploads.add(np.frombuffer(characters, np.uint8)[first:last])
    return plc.Column(TEXT, rows, data, mask, array.null_count, 0, [starts])


def _makes(values: pa.Array, rows: int) -> bool:
    """Whether the device would make a dictionary of these values for so many rows."""
    most = min(MOST_STRINGS, largest_dictionary(rows))
    return len(values) <= most and pa.types.is_string(values.type)


def _downloaded(column: EncodedColumn) -> EncodedColumn:
    """Return a column of the device on the host, in the writer's thread."""
    take_device()
    return downloaded(column)
