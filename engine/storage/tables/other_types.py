"""Types that columns may have and queries cannot read: they have the names that DuckDB gives them, for DESCRIBE and for messages."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import TypeMismatch
from ...plan.arrow.arrow_types import from_arrow, is_bytes
from ...plan.coercion import enum_of
from ...plan.text.quoted_name import quoted_field
from ...plan.types import TIMESTAMP, VARCHAR, DataType, Kind, to_arrow

ENUM_MARK = {b"sql_type": b"ENUM"}  # of a field, whose values are one dictionary


def type_of(arrow: pa.DataType) -> DataType:
    """Return the SQL type of an Arrow column, of the kind OTHER where no query can read it."""
    try:
        return from_arrow(arrow)
    except TypeMismatch:
        return DataType(Kind.OTHER, name=_name(arrow))


def as_enum(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a dictionary of texts in the type that results of an ENUM have."""
    arrow = to_arrow(enum_of(array.dictionary.to_pylist()))
    indices = array.indices.cast(arrow.index_type)
    return pa.DictionaryArray.from_arrays(indices, array.dictionary.cast(arrow.value_type))


def type_of_column(field: pa.Field, column: pa.ChunkedArray) -> DataType:
    """Return the SQL type of a column in memory, of which a dictionary is an ENUM where it is marked as one."""
    marked = field.metadata is not None and field.metadata.items() >= ENUM_MARK.items()
    if not marked or not column.num_chunks:
        return type_of(field.type)
    return enum_of(column.chunk(0).dictionary.to_pylist())


def type_in_file(
    footer: pq.FileMetaData, field: pa.Field, options: Mapping[str, object]
) -> DataType:
    """Return the SQL type of a column of a Parquet file, which has no timestamps of seconds or milliseconds.

    With the option binary_as_string a column of bytes is text, as that of writers that do not say so.
    """
    if pa.types.is_binary(field.type) and options.get("binary_as_string"):
        return VARCHAR
    if not pa.types.is_timestamp(field.type) or field.type.tz is not None:
        return type_of(field.type)
    return (
        type_of(field.type)
        if field.type.unit == "ns" and not is_int96(footer, field.name)
        else TIMESTAMP
    )


def with_logical_types(schema: pa.Schema, footer: pq.FileMetaData) -> pa.Schema:
    """Return the schema of a file with the UUIDs and JSON that its own schema names, and that in Arrow are bytes and text."""
    kinds = [footer.schema.column(i).logical_type.type for i in range(len(footer.schema))]
    if not {"JSON", "UUID"} & {*kinds}:
        return schema
    left = iter(kinds)

    def named(arrow: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(arrow):
            return pa.struct([inside.with_type(named(inside.type)) for inside in arrow])
        if pa.types.is_map(arrow):
            return pa.map_(named(arrow.key_type), named(arrow.item_type))
        if pa.types.is_nested(arrow):
            return pa.list_(arrow.value_field.with_type(named(arrow.value_type)))
        kind = next(left, "")
        return pa.uuid() if kind == "UUID" else pa.json_(pa.string()) if kind == "JSON" else arrow

    return pa.schema([field.with_type(named(field.type)) for field in schema])


def is_int96(footer: pq.FileMetaData, name: str) -> bool:
    """Whether a column of a file has Parquet's old type of timestamps."""
    columns = (footer.schema.column(i) for i in range(len(footer.schema)))
    return any(c.path == name and c.physical_type == "INT96" for c in columns)


def _name(arrow: pa.DataType) -> str:
    t = pa.types
    if t.is_dictionary(arrow):
        return _name(arrow.value_type)
    if t.is_fixed_size_list(arrow):
        return f"{type_of(arrow.value_type)}[{arrow.list_size}]"
    if t.is_map(arrow):
        return f"MAP({type_of(arrow.key_type)}, {type_of(arrow.item_type)})"
    if (
        t.is_list(arrow)
        or t.is_large_list(arrow)
        or t.is_list_view(arrow)
        or t.is_large_list_view(arrow)
    ):
        return f"{type_of(arrow.value_type)}[]"
    if t.is_struct(arrow):
        return f"STRUCT({', '.join(f'{quoted_field(f.name)} {type_of(f.type)}' for f in arrow)})"
    if t.is_time(arrow):
        return "TIME_NS"
    if t.is_timestamp(arrow):
        return "TIMESTAMPTZ_NS"
    if t.is_duration(arrow):
        return "INTERVAL"
    if isinstance(arrow, pa.BaseExtensionType):
        return "UUID" if arrow.extension_name == "arrow.uuid" else str(type_of(arrow.storage_type))
    if is_bytes(arrow):  # of an extension's storage
        return "BLOB"
    return str(arrow).upper()
