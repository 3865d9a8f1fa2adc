"""What `Connection.register` takes: objects of other libraries become Arrow tables, without a copy where they can."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import TypeMismatch
from ..storage.tables.other_types import ENUM_MARK, as_enum

TAKEN = (
    "a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a pandas or Polars frame, a dictionary of arrays or lists, "
    "a list of dictionaries, or an object with __arrow_c_stream__"
)


def ingest(source: object) -> pa.Table:
    """Return an object as an Arrow table; a reader is read to its end.

    Raises `TypeMismatch` for an object that is no table, or whose columns Arrow cannot hold.
    """
    try:
        table = _to_table(source)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise TypeMismatch(
            f"A {_type_name(source)} could not be taken as a table: {reason}."
        ) from error
    if table is None:
        raise TypeMismatch(f"A {_type_name(source)} is no table: give {TAKEN}.")
    return table


def is_table(value: object) -> bool:
    """Whether an object looks like a table, which `ingest` may still refuse for what is in it."""
    if isinstance(value, type):
        return False
    pandas, datasets = sys.modules.get("pandas"), sys.modules.get("pyarrow.dataset")
    if isinstance(value, pa.Table | pa.RecordBatch | pa.RecordBatchReader | Mapping):
        return True
    if datasets is not None and isinstance(value, datasets.Dataset):
        return True
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return True
    return _is_lazy(value) or _is_rows(value) or hasattr(type(value), "__arrow_c_stream__")


def _is_lazy(value: object) -> bool:
    return hasattr(value, "collect") and type(value).__module__.startswith("polars")


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(r, Mapping) for r in value)


def _to_table(source: object) -> pa.Table | None:
    # A library that is not imported yet has made no object to take in
    pandas, datasets = sys.modules.get("pandas"), sys.modules.get("pyarrow.dataset")
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    if datasets is not None and isinstance(source, datasets.Dataset):
        return source.to_table()
    if pandas is not None and isinstance(source, pandas.DataFrame):
        named = source.rename(columns=str)  # a column's name may be a number
        table = pa.Table.from_pandas(named, preserve_index=False).replace_schema_metadata(None)
        return _with_enums(table)
    if _is_lazy(source):
        source = source.collect()  # type: ignore[attr-defined]
    if hasattr(source, "__arrow_c_stream__"):
        return pa.table(source)
    if isinstance(source, Mapping):
        return _from_columns(source)
    if _is_rows(source):
        return pa.Table.from_pylist(source)
    return None


def _with_enums(table: pa.Table) -> pa.Table:
    """Return a table of pandas whose categories are ENUMs where they are texts, as DuckDB takes them."""
    t = pa.types
    for i, field in enumerate(table.schema):
        values = field.type.value_type if t.is_dictionary(field.type) else None
        if values is not None and (t.is_string(values) or t.is_large_string(values)):
            chunks = [as_enum(chunk) for chunk in table.column(i).chunks]
            column = pa.chunked_array(chunks or [as_enum(pa.array([], field.type))])
            table = table.set_column(
                i, pa.field(field.name, column.type, metadata=ENUM_MARK), column
            )
    return table


def _from_columns(columns: Mapping[object, object]) -> pa.Table:
    arrays = {str(name): _column(str(name), values) for name, values in columns.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise TypeMismatch(f"The columns of a table have one length, not {lengths}.")
    return pa.table(arrays)


def _column(name: str, values: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise TypeMismatch(
                f'The column "{name}" has {values.ndim} dimensions: a column has one.'
            )
        if isinstance(values, np.ma.MaskedArray):
            return pa.array(values.data, mask=np.ma.getmaskarray(values))
        return pa.array(values)
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if hasattr(values, "__arrow_c_array__"):
        return pa.array(values)
    return pa.array(list(values))


def _type_name(source: object) -> str:
    kind = type(source)
    module = kind.__module__.split(".")[0]
    return kind.__name__ if module == "builtins" else f"{module}.{kind.__name__}"
