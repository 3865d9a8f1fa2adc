"""cuDF frames and CuPy arrays, in and out, without a trip over the host."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from ..errors import DeviceError, install
from ..frame.exported import exported
from ..plan.types import Kind

if TYPE_CHECKING:
    import cudf
    import pyarrow as pa

    from ..connection import Result
    from ..storage.tables.memory_table import MemoryTable


def ingest_device(name: str, source: object) -> MemoryTable | None:
    """Return an object in device memory as a table that shares it, None for an object of the host.

    Takes cuDF frames and series and dictionaries of arrays with `__cuda_array_interface__`.
    """
    cudf = sys.modules.get("cudf")  # which is imported already where an object of it exists
    if cudf is not None and isinstance(source, cudf.Series):
        source = source.to_frame(source.name or "values")
    if cudf is not None and isinstance(source, cudf.DataFrame):
        from ..storage.tables.device_table import DeviceTable

        table, _ = source.to_pylibcudf()
        names = [str(n) for n in source.columns]
        return DeviceTable(name, dict(zip(names, table.columns(), strict=True)))
    if isinstance(source, Mapping) and source and all(_on_device(v) for v in source.values()):
        from ..storage.tables.device_table import DeviceTable, column_of

        return DeviceTable(name, {str(n): column_of(v) for n, v in source.items()})
    return None


def _on_device(values: object) -> bool:
    return hasattr(values, "__cuda_array_interface__") and not hasattr(
        values, "__array_interface__"
    )


def to_cudf(result: Result) -> cudf.DataFrame:
    """Return a result as a cudf.DataFrame, sharing device memory when the result is on the GPU.

    Raises `DeviceError` where cudf is not installed.
    """
    # cuDF's columns of timestamps know no zone, nor the time of a day
    others = any(c.type.kind in (Kind.TIME, Kind.TIMESTAMPTZ) for c in result.columns)
    if result.device != "gpu" or others:
        return cudf_of(exported(result.to_arrow()))
    from ..operators.gpu.table import Table, plc_table

    assert isinstance(result.table, Table)
    return _cudf().DataFrame.from_pylibcudf(
        plc_table(result.table, result.columns), {"columns": result.names}
    )


def cudf_of(rows: pa.Table) -> cudf.DataFrame:
    """Return a cudf.DataFrame of Arrow rows; raises `DeviceError` where cudf is not installed."""
    return _cudf().DataFrame.from_arrow(rows)


def _cudf() -> ModuleType:
    try:
        import cudf
    except ImportError as error:
        raise DeviceError(f"cudf is not installed: {install('cudf')}.") from error
    return cudf
