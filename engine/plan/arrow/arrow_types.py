"""The SQL types that hold Arrow's columns, and Arrow's tables of Python's values; the way back is `types.to_arrow`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import TypeMismatch
from .. import types as ty
from .arrow_arrays import array_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

_WITH_PARAMETERS = (ty.Kind.DECIMAL, ty.Kind.LIST, ty.Kind.STRUCT, ty.Kind.MAP, ty.Kind.OTHER)


def arrow_table(rows: Sequence[Sequence[object]], schema: pa.Schema) -> pa.Table:
    """Return rows of Python's values as a table."""
    import pyarrow as pa

    columns = ([row[i] for row in rows] for i in range(len(schema)))
    return pa.table(
        [array_from(values, f.type) for values, f in zip(columns, schema, strict=True)],
        schema=schema,
    )


def is_bytes(arrow: pa.DataType) -> bool:
    """Whether Arrow's values are bytes without a meaning, in whichever layout."""
    import pyarrow as pa

    t = pa.types
    return any(
        test(arrow)
        for test in (t.is_binary, t.is_large_binary, t.is_fixed_size_binary, t.is_binary_view)
    )


def from_arrow(arrow: pa.DataType, name: str = "") -> ty.DataType:
    """Return the SQL type that holds an Arrow column; raises `TypeMismatch`, naming the column, where none does."""
    import pyarrow as pa

    t = pa.types
    if t.is_dictionary(arrow):
        return from_arrow(arrow.value_type, name)
    if t.is_decimal(arrow) and arrow.precision <= ty.MAX_DECIMAL_DIGITS and arrow.scale >= 0:
        return ty.decimal(max(arrow.precision, arrow.scale), arrow.scale)
    if t.is_string(arrow) or t.is_large_string(arrow) or t.is_string_view(arrow):
        return ty.VARCHAR
    if getattr(arrow, "extension_name", "") == "arrow.json":
        return ty.JSON
    if is_bytes(arrow):
        return ty.BLOB
    if t.is_date(arrow):
        return ty.DATE
    if t.is_timestamp(arrow) and arrow.tz is not None:
        return ty.TIMESTAMPTZ
    if t.is_time(arrow) and arrow.unit != "ns":
        return ty.TIME
    if t.is_fixed_size_list(arrow) and arrow.list_size:
        return ty.array_of(from_arrow(arrow.value_type, name), arrow.list_size)
    if any(
        test(arrow) for test in (t.is_list, t.is_large_list, t.is_list_view, t.is_large_list_view)
    ):
        return ty.list_of(from_arrow(arrow.value_type, name))
    if t.is_map(arrow):
        return ty.map_of(from_arrow(arrow.key_type, name), from_arrow(arrow.item_type, name))
    if t.is_struct(arrow) and arrow.num_fields:
        return ty.struct_of((f.name, from_arrow(f.type, name)) for f in arrow)
    kinds = [ty.DataType(kind) for kind in ty.Kind if kind not in _WITH_PARAMETERS]
    plain = {ty.to_arrow(kind): kind for kind in kinds} | {pa.float16(): ty.FLOAT}
    if arrow in plain:
        return plain[arrow]
    column = f'Column "{name}" has' if name else "A column has"
    raise TypeMismatch(
        f"{column} the Arrow type {arrow}, which has no SQL type here: cast it before it is registered."
    )
