"""Results as they leave in Arrow: UUIDs are texts there, as DuckDB's client gives them, also within lists, structs and maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from ..plan.arrow.nested_buffers import nested_array
from ..plan.expr import Column
from ..plan.text.uuid_text import UUID_LETTERS, uuid_letters
from ..plan.types import Kind

if TYPE_CHECKING:
    import pyarrow as pa

CHANGED = frozenset((Kind.UUID, Kind.LIST, Kind.STRUCT, Kind.MAP))  # or what they may hold is
ROWS_AT_A_TIME = 1 << 24  # whose texts the offsets of an Arrow array address


def exported(table: pa.Table, columns: Sequence[Column] = ()) -> pa.Table:
    """Return a result with the columns that others read; what `columns` it has is known of most, and their types are asked in a fifth of the time."""
    if columns and not [column for column in columns if column.type.kind in CHANGED]:
        return table
    import pyarrow as pa

    kinds = table.schema.types
    if not any(kind.num_fields or isinstance(kind, pa.BaseExtensionType) for kind in kinds):
        return table
    schema = exported_schema(table.schema)
    made = [
        pa.chunked_array([_exported(c, field.type) for c in _pieces(column)], field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(made, schema=schema)


def exported_schema(schema: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([field.with_type(_type(field.type)) for field in schema], schema.metadata)


@cache
def _type(arrow: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    t = pa.types
    if arrow == pa.uuid():
        return pa.string()
    if t.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_type(arrow.value_type)))
    if t.is_fixed_size_list(arrow):
        return pa.list_(arrow.value_field.with_type(_type(arrow.value_type)), arrow.list_size)
    if t.is_map(arrow):
        return pa.map_(_type(arrow.key_type), _type(arrow.item_type))
    if t.is_struct(arrow):
        return pa.struct([field.with_type(_type(field.type)) for field in arrow])
    return arrow


def _pieces(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    for chunk in column.chunks:
        for start in range(0, len(chunk), ROWS_AT_A_TIME):
            yield chunk.slice(start, ROWS_AT_A_TIME)


def _exported(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if array.type == arrow:
        return array
    if pa.types.is_struct(arrow):
        fields = [_exported(array.field(i), field.type) for i, field in enumerate(arrow)]
        return pa.StructArray.from_arrays(fields, fields=list(arrow), mask=array.is_null())
    if not pa.types.is_nested(arrow):
        return _texts(array.storage)
    if pa.types.is_map(arrow):
        entry = pa.struct([arrow.key_field, arrow.item_field])
        parts = [_exported(array.keys, arrow.key_type), _exported(array.items, arrow.item_type)]
        inside = nested_array(entry, len(parts[0]), [None], parts, 0)
    else:
        inside = _exported(array.values, arrow.value_type)
    own = 1 if pa.types.is_fixed_size_list(arrow) else 2
    return nested_array(arrow, len(array), array.buffers()[:own], [inside], offset=array.offset)


def _texts(values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    letters = pa.py_buffer(uuid_letters(values.buffers()[1], values.offset, len(values)))
    texts = pa.Array.from_buffers(pa.binary(UUID_LETTERS), len(values), [None, letters])
    return pc.if_else(values.is_valid(), texts.cast(pa.binary()).cast(pa.string()), None)
