"""Columns of tables that operators made, as kernels read them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ....codegen.typed_values import NotFusable
from ....plan.expr import Column
from ....plan.types import Kind
from ....storage.columns.encode import encode
from ....storage.columns.encodings import EncodedColumn, Narrow, Plain
from ..table import Table, decimal_limbs, to_numpy, validity
from .derived_columns import truths


def stored_column(table: Table, column: Column, threads: int) -> EncodedColumn:
    """Return a column of a table that an operator made as kernels read it; raises `NotFusable` for one that has no encoding."""
    held = table.encoded.get(column.id)
    if held is None:
        array = table[column]
        held = _truths_or_numbers(array, column) or encode(array, column.type, threads)
        if held is None:
            raise NotFusable(f'"{column.name}" ({column.type}) has no narrow encoding')
        table.encoded[column.id] = held
    return held


def _truths_or_numbers(array: pa.Array, column: Column) -> EncodedColumn | None:
    """Numbers in 8 bytes, which takes less time than to narrow them for kernels that read them once."""
    data_type = column.type
    if data_type.kind is Kind.BOOLEAN:
        return truths(array)
    if data_type.kind in (Kind.VARCHAR, Kind.INTERVAL, Kind.NULL, Kind.UBIGINT):
        return None
    mask = validity(array)
    if data_type.is_wide_decimal:
        low, high = decimal_limbs(array).T
        fits = high == low >> 63
        if mask is not None:
            fits |= ~mask
        if not fits.all():
            return None
        values = np.ascontiguousarray(low)
    else:
        values = to_numpy(array)
    if mask is not None:
        values = np.where(mask, values, values.dtype.type(0))
    bitmap = None if mask is None else np.packbits(mask, bitorder="little")
    ends: tuple[int | None, int | None] = (None, None)
    encoding: Narrow | Plain = Plain(values.itemsize)
    if not data_type.is_float:
        values = values.astype(np.int64, copy=False)
        encoding = Narrow(0, 1, 8)
        valid = values if mask is None else values[mask]
        if len(valid):
            ends = outward(int(valid.min()), int(valid.max()))
    size = values.nbytes + (0 if bitmap is None else bitmap.nbytes)
    return EncodedColumn(
        data_type, encoding, len(array), values, bitmap, array.null_count, *ends, size
    )


def outward(low: int, high: int) -> tuple[int, int]:
    """Round an interval outward to powers of two, so that the kernels of one run fit the values of the next."""
    return -(1 << (-low - 1).bit_length()) if low < 0 else 0, (
        (1 << high.bit_length()) - 1 if high >= 0 else -1
    )
