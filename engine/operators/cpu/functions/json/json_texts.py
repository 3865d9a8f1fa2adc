"""Values of any type as JSON, a column at a time: to_json and what makes arrays and objects of several values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .....errors import ExecutionError
from .....plan.arrow.arrow_arrays import array_from, from_numpy, null_as, scalar_from
from .....plan.expr import Call
from .....plan.json.documents import float_text, read, string_text, text_of
from .....plan.types import DOUBLE, JSON, VARCHAR, DataType, Kind
from ... import table as tables
from ...nested_arrays import Lists, fields_of, list_array
from ..values import byte_maps
from ..vectors import Array, Kernel, Mask, Vector, over_arrays

CastVector = Callable[
    [Vector, DataType, bool], Vector
]  # values, their type, whether others are NULL
_NULL = "null"  # no scalar of Arrow: to make one imports pandas, which takes 0.2 s of a new process
_LEAST_PLAIN, _MOST_PLAIN = 1e-4, 1e16  # doubles that all write without an exponent
_DIGITS_OF_DOUBLE = 15  # of a DECIMAL that is written as a number of that type


def json_texts(array: pa.Array, kind: DataType, cast: CastVector) -> pa.Array:
    """Return the values of a physical array as JSON, of which NULL is null."""
    if pa.types.is_null(array.type):
        return pa.repeat(_NULL, len(array))
    if kind.kind is Kind.LIST:
        inside = json_texts(Lists.of(array).elements, kind.children[0], cast)
        return _or_null(_listed(array, inside, "[", "]"))
    if kind.kind is Kind.MAP:
        keys, values = fields_of(Lists.of(array).elements)
        types = kind.children[0].children
        pairs = _joined(_key_texts(keys, types[0], cast), ":", json_texts(values, types[1], cast))
        return _or_null(_listed(array, pairs, "{", "}"))
    if kind.kind is Kind.STRUCT:
        parts: list[object] = []
        opening, closing = "[]" if kind.is_tuple else "{}"
        for name, inside, child in zip(kind.names, fields_of(array), kind.children, strict=True):
            key = "" if kind.is_tuple else f"{string_text(name)}:"
            parts += [f"{',' if parts else opening}{key}", json_texts(inside, child, cast)]
        made = _joined(*parts, closing)
        return pc.if_else(array.is_valid(), made, _NULL)
    return _or_null(_of_scalars(array, kind, cast))


def _joined(*parts: object) -> pa.Array:
    """Join texts of each row, some of which may have offsets of 64 bits."""
    if any(isinstance(p, pa.Array) and pa.types.is_large_string(p.type) for p in parts):
        wide = pa.large_string()
        parts = tuple(
            p.cast(wide) if isinstance(p, pa.Array) else scalar_from(p, wide) for p in parts
        )
        return pc.binary_join_element_wise(*parts, scalar_from("", wide))
    return pc.binary_join_element_wise(*parts, "")


def _listed(array: pa.Array, inside: pa.Array, opening: str, closing: str) -> pa.Array:
    lists = Lists.of(array)
    texts = list_array(lists.lengths, inside, lists.valid, pa.list_(pa.string()))
    return _joined(opening, pc.binary_join(texts, ","), closing)


def _or_null(texts: pa.Array) -> pa.Array:
    return null_as(texts, _NULL)


def _of_scalars(array: pa.Array, kind: DataType, cast: CastVector) -> pa.Array:
    """Return texts, NULL where a value is."""
    if kind == JSON:
        return of_each(array, lambda text: text_of(read(text)))
    if kind.kind is Kind.VARCHAR:
        return _quoted(array)
    vector = Vector.from_arrow(array, kind)
    if kind.is_float:
        return _double_texts(vector.data.astype(np.float64), vector.valid, cast)
    if kind.is_decimal and not kind.is_whole and kind.precision <= _DIGITS_OF_DOUBLE:
        return _double_texts(vector.data / 10.0**kind.scale, vector.valid, cast)
    texts = cast(vector, VARCHAR, False).to_arrow(len(array))
    if (kind.is_whole and not kind.is_enum) or kind.kind is Kind.BOOLEAN:
        return texts
    if kind.is_decimal:
        return pc.replace_substring_regex(texts, r"^(-?)\.", r"\10.")
    return _quoted(texts)


def _double_texts(values: Array, valid: Mask | None, cast: CastVector) -> pa.Array:
    """Write doubles as casts do, but for the exponents of small and large ones."""
    texts = cast(Vector(DOUBLE, values, valid), VARCHAR, False).to_arrow(len(values))
    sizes = np.abs(values)
    other = ~((sizes == 0) | ((sizes >= _LEAST_PLAIN) & (sizes < _MOST_PLAIN)))
    other = other if valid is None else other & valid
    if not other.any():
        return texts
    return pc.replace_with_mask(
        texts, from_numpy(other), of_each(from_numpy(values[other]), float_text)
    )


def _quoted(array: pa.Array) -> pa.Array:
    """Return texts in quotes, with escapes where JSON wants some."""
    texts = tables.decode(array)
    made = byte_maps.mapped(texts, byte_maps.OF_JSON, pa.string())
    return of_each(texts, string_text) if made is None else _joined('"', made, '"')


def _key_texts(array: pa.Array, kind: DataType, cast: CastVector) -> pa.Array:
    """Return the keys of maps, which JSON has as text: as SQL writes values of their type."""
    texts = cast(Vector.from_arrow(array, kind), VARCHAR, False).to_arrow(len(array))
    return _quoted(texts)


def of_each(array: pa.Array, function: Callable[..., str | None]) -> pa.Array:
    """Apply a function to the distinct values that are not NULL."""
    codes = pc.dictionary_encode(tables.decode(array))
    values = [None if v is None else function(v) for v in codes.dictionary.to_pylist()]
    places = tables.to_numpy(null_as(codes.indices, -1)).astype(np.int64)
    return tables.decode(tables.take_array(array_from(values, pa.string()), places))


def makers(cast: CastVector) -> dict[str, Kernel]:
    """Return the kernels of what makes JSON of other values, whose texts are made by casts."""

    def texts_of(call: Call, args: Sequence[pa.Array]) -> list[pa.Array]:
        return [
            json_texts(array, arg.type, cast) for array, arg in zip(args, call.args, strict=True)
        ]

    def to_json(call: Call, args: list[pa.Array]) -> pa.Array:
        (texts,) = texts_of(call, args)
        return pc.if_else(args[0].is_valid(), texts, scalar_from(None, pa.string()))

    def array(call: Call, args: list[pa.Array]) -> pa.Array:
        if not args:
            return array_from(["[]"])
        parts = [part for text in texts_of(call, args) for part in (",", text)]
        return _joined("[", *parts[1:], "]")

    def json_object(call: Call, args: list[pa.Array]) -> pa.Array:
        if not args:
            return array_from(["{}"])
        if any(key.null_count for key in args[::2]):
            raise ExecutionError("A key of an object of JSON is not NULL.")
        texts = texts_of(call, args)
        parts = [part for text in texts for part in (":", text)]
        parts[::4] = ["{", *[","] * (len(parts) // 4 - 1)]
        return _joined(*parts, "}")

    def member(call: Call, args: list[pa.Array]) -> pa.Array:
        return texts_of(call, args)[0]

    return {
        "to_json": over_arrays(to_json),
        "array_to_json": over_arrays(to_json),
        "row_to_json": over_arrays(to_json),
        "json_array": over_arrays(array),
        "json_object": over_arrays(json_object),
        "json_member": over_arrays(member),
    }


def _pair(call: Call, args: list[pa.Array]) -> pa.Array:
    if args[0].null_count:
        raise ExecutionError("A key of json_group_object() is not NULL.")
    return _joined(_quoted(args[0]), ":", args[1])


def _enclosed(call: Call, args: list[pa.Array]) -> pa.Array:
    text, signs = args
    return _joined(pc.utf8_slice_codeunits(signs, 0, 1), text, pc.utf8_slice_codeunits(signs, 1, 2))


KERNELS: dict[str, Kernel] = {
    "json_pair": over_arrays(_pair),
    "json_enclosed": over_arrays(_enclosed),
}
