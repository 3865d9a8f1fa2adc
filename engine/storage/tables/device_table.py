"""Tables that live in device memory: what `register` makes of cuDF frames and CuPy arrays, without a copy.

The one file outside of `operators/gpu` that may import pylibcudf.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pylibcudf as plc

from ...errors import TypeMismatch
from ...plan import types as t
from ...plan.arrow.arrow_arrays import array_from
from ...plan.logical import TableStatistics
from ...plan.text.quoted_name import distinct_names
from ..columns.device_value_checks import check_device_text
from .memory_table import MemoryTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...plan.types import DataType

_TYPES = {
    plc.TypeId.BOOL8: t.BOOLEAN,
    plc.TypeId.INT8: t.TINYINT,
    plc.TypeId.INT16: t.SMALLINT,
    plc.TypeId.INT32: t.INTEGER,
    plc.TypeId.INT64: t.BIGINT,
    plc.TypeId.UINT8: t.UTINYINT,
    plc.TypeId.UINT16: t.USMALLINT,
    plc.TypeId.UINT32: t.UINTEGER,
    plc.TypeId.UINT64: t.UBIGINT,
    plc.TypeId.FLOAT32: t.FLOAT,
    plc.TypeId.FLOAT64: t.DOUBLE,
    plc.TypeId.TIMESTAMP_DAYS: t.DATE,
    plc.TypeId.TIMESTAMP_SECONDS: t.TIMESTAMP_S,
    plc.TypeId.TIMESTAMP_MILLISECONDS: t.TIMESTAMP_MS,
    plc.TypeId.TIMESTAMP_MICROSECONDS: t.TIMESTAMP,
    plc.TypeId.TIMESTAMP_NANOSECONDS: t.TIMESTAMP_NS,
    plc.TypeId.STRING: t.VARCHAR,
}
_DECIMAL_DIGITS = {
    plc.TypeId.DECIMAL32: 9,
    plc.TypeId.DECIMAL64: t.INT64_DECIMAL_DIGITS,
    plc.TypeId.DECIMAL128: t.MAX_DECIMAL_DIGITS,
}


class DeviceTable(MemoryTable):
    """A table of pylibcudf columns in the GPU backend's physical forms; goes to the host only when something there asks.

    `device_columns` shares memory with the object that was registered.
    """

    def __init__(self, name: str, columns: Mapping[str, plc.Column]) -> None:
        names = distinct_names(list(columns))
        taken = [_physical(n, c) for n, c in zip(names, columns.values(), strict=True)]
        self.device_columns = {n: c for n, (c, _) in zip(names, taken, strict=True)}
        self._rows = taken[0][0].size() if taken else 0
        empty = pa.table(
            {n: array_from([], t.to_arrow(d)) for n, (_, d) in zip(names, taken, strict=True)}
        )
        super().__init__(name, empty)

    @property
    def num_rows(self) -> int:
        return self._rows

    def column(self, name: str) -> pa.ChunkedArray:
        return self._host.column(name)

    def _check_values(self, name: str, what: str) -> None:
        check_device_text(self.device_columns[name], what)

    def on_host(self) -> MemoryTable:
        return MemoryTable(self.name, self._host)

    def appended(self, rows: pa.Table) -> MemoryTable:
        return self.on_host().appended(rows)

    def statistics(self) -> TableStatistics:
        return TableStatistics(self._rows)

    def _sent(self) -> pa.Table:
        return self._host

    @cached_property
    def _host(self) -> pa.Table:
        arrays = [
            column.to_arrow().cast(t.to_arrow(data_type))
            for column, (_, data_type) in zip(
                self.device_columns.values(), self.fields, strict=True
            )
        ]
        return pa.table(arrays, names=list(self.device_columns))


def column_of(array: object) -> plc.Column:
    """Return a one-dimensional array with `__cuda_array_interface__` as a column that shares its memory."""
    return plc.Column.from_cuda_array_interface(array)


def _physical(name: str, column: plc.Column) -> tuple[plc.Column, DataType]:
    """Return a column in physical form with its SQL type; raises `TypeMismatch` where there is none."""
    kind, scale = column.type().id(), -column.type().scale()
    if kind in _DECIMAL_DIGITS and scale >= 0:
        data_type = t.decimal(max(_DECIMAL_DIGITS[kind], scale), scale)
        if kind == plc.TypeId.DECIMAL32:
            column = plc.unary.cast(column, plc.DataType(plc.TypeId.DECIMAL64, -scale))
        return column, data_type
    if kind not in _TYPES:
        raise TypeMismatch(
            f'The column "{name}" has the libcudf type {kind.name}, which has no SQL type here: cast it before it is registered.'
        )
    return column, _TYPES[kind]
