"""Structs made of values, and their fields."""

from __future__ import annotations

import pyarrow as pa

from .....plan.expr import Call
from ... import table as tables
from ...nested_arrays import fields_of, struct_array
from ..vectors import Kernel, Vector, over_arrays


def _pack(call: Call, args: list[pa.Array]) -> pa.Array:
    arrow = tables.physical_type(call.type)
    fields = [tables.as_element(a, f.type) for a, f in zip(args, arrow, strict=True)]
    return struct_array(fields, None, arrow)


def _field(call: Call, args: tuple[Vector, ...]) -> Vector:
    """One field of each struct, by its name; operators above see its own array and nothing of the struct."""
    struct, name = args
    place = struct.type.names.index(str(name.data))
    array = struct.to_arrow(struct.length)
    found = Vector.from_arrow(fields_of(array)[place], call.type)
    return found.first() if struct.is_constant else found


KERNELS: dict[str, Kernel] = {"struct_pack": over_arrays(_pack), "struct_field": _field}
