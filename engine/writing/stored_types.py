"""The Arrow types of files, which tell JSON from other text, as results do not."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..plan.types import JSON, DataType, Kind, nested_arrow, to_arrow


def stored_schema(schema: pa.Schema, types: Sequence[DataType]) -> pa.Schema:
    """Return the schema in which Parquet files hold tables of `schema`, whose columns are of `types`."""
    fields = [
        field.with_type(_stored(kind)) if _is_other(kind) else field
        for field, kind in zip(schema, types, strict=True)
    ]
    return pa.schema(fields)


def _is_other(data_type: DataType) -> bool:
    """Whether JSON, or an ARRAY, which is a list in files as those of DuckDB, is in values of a type."""
    return data_type == JSON or data_type.is_array or any(map(_is_other, data_type.children))


def _stored(data_type: DataType) -> pa.DataType:
    if data_type == JSON:
        return pa.json_(pa.string())
    if data_type.kind is Kind.MAP:
        return pa.map_(*map(_stored, data_type.children[0].children))
    if not data_type.is_nested:
        return to_arrow(data_type)
    return nested_arrow(data_type, [_stored(child) for child in data_type.children])
