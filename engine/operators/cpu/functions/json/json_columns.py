"""Values of JSON as values of other types, a column at a time, by DuckDB's rules of what may become what."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .....errors import ConversionError, shown
from .....plan import types as ty
from .....plan.arrow.arrow_arrays import array_from, from_numpy, null_as, scalar_from
from .....plan.expr import Call
from .....plan.json.documents import (
    RepeatedKeys,
    check,
    count_of,
    digits_text,
    is_container,
    kind_of,
    plain_text,
    read,
    text_of,
)
from .....records import dataclass
from ... import table as tables
from ...handwritten_kernels import KernelsByName
from ...nested_arrays import Ints, Mask, list_array, struct_array
from ...sort.text_hashes import buffers_of
from ..nested.nested_casts import of_length
from ..vectors import Kernel, Vector, over_arrays
from . import json_fields, json_scan
from .json_skeletons import skeletons
from .json_texts import CastVector, json_texts, of_each

_FRACTION = re.compile(r"\.|^[^xX]*[eE]")  # of a text that is no integer
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class ColumnMaker:
    """What happens to values that are none of their type: they are NULL, or with `strict` an error.

    An object has all fields of a STRUCT then; with `closed` it has no others, and none twice.
    """

    cast: CastVector
    strict: bool
    closed: bool = False

    def of_texts(self, texts: pa.Array, kind: ty.DataType) -> pa.Array:
        """Return texts of JSON as values of a type; each text is read once."""
        if not pa.types.is_dictionary(texts.type) and json_fields.is_read(kind):
            kernels = json_scan.ready(json_fields.READING, texts)
            if kernels is not None:
                return self._by_kernels(texts, kind, kernels)
        codes = pc.dictionary_encode(tables.decode(texts))
        values = [None if t is None else read(t) for t in codes.dictionary.to_pylist()]
        places = tables.to_numpy(null_as(codes.indices, -1)).astype(np.int64)
        return tables.take_array(self.column(values, kind), places)

    def _by_kernels(self, texts: pa.Array, kind: ty.DataType, kernels: KernelsByName) -> pa.Array:
        unread, text = np.zeros(len(texts), bool), buffers_of(texts)[0]
        reader = json_fields.DocumentReader(
            kernels, text, self.cast, unread, self.strict, self.closed, self.strict
        )
        made = reader.column(json_fields.Documents.of(texts), kind)
        rest = np.flatnonzero(unread)
        if not len(rest):
            return made
        others = self.column([read(t) for t in texts.take(from_numpy(rest)).to_pylist()], kind)
        return json_scan.instead(made, rest, others)

    def column(self, values: Sequence[object], kind: ty.DataType) -> pa.Array:
        """Return values as a physical array; null is NULL in each type."""
        match kind.kind:
            case ty.Kind.NULL:
                return pa.nulls(len(values))
            case ty.Kind.LIST:
                return self._lists(values, kind)
            case ty.Kind.STRUCT:
                return (self._tuples if kind.is_tuple else self._structs)(values, kind)
            case ty.Kind.MAP:
                return self._maps(values, kind)
            case ty.Kind.VARCHAR:
                show = text_of if kind == ty.JSON else _string
                return array_from([None if v is None else show(v) for v in values], pa.string())
        return self._scalars(values, kind)

    def _scalars(self, values: Sequence[object], kind: ty.DataType) -> pa.Array:
        """Numbers and truth values are cast as they are, texts and numbers that no type of Arrow holds as text."""
        parts: list[tuple[list[object], pa.DataType, ty.DataType]] = [
            ([None] * len(values), pa.int64(), ty.BIGINT),
            ([None] * len(values), pa.float64(), ty.DOUBLE),
            ([None] * len(values), pa.string(), ty.VARCHAR),
        ]
        whole, real, text = (part[0] for part in parts)
        of_numbers = kind.is_numeric or kind.kind in (ty.Kind.BOOLEAN, ty.Kind.BLOB)
        is_exact = kind.is_decimal and not kind.is_whole
        for place, value in enumerate(values):
            if isinstance(value, str):
                if self.strict and kind.is_whole and _FRACTION.search(value):
                    self._wrong(value, kind)
                text[place] = value
            elif value is None:
                continue
            elif is_container(value) or not of_numbers:
                self._wrong(value, kind)
            elif (isinstance(value, float) and is_exact) or kind.kind is ty.Kind.BLOB:
                text[place] = digits_text(value) if isinstance(value, float) else text_of(value)
            elif isinstance(value, float):
                real[place] = value
            elif isinstance(value, int) and _LEAST <= value <= _MOST:
                whole[place] = int(value)
            elif kind.is_float:
                real[place] = float(text_of(value))
            elif kind.kind is ty.Kind.BOOLEAN and kind_of(value) == "UBIGINT":
                whole[place] = 1
            else:
                text[place] = text_of(value)
        found = pa.nulls(len(values), tables.physical_type(kind))
        for some, arrow, source in parts:
            if any(v is not None for v in some):
                given = Vector.from_arrow(array_from(some, arrow), source)
                cast = self.cast(given, kind, not self.strict).to_arrow(len(some))
                found = pc.coalesce(found, cast)
        return found

    def _wrong(self, value: object, kind: ty.DataType) -> None:
        if self.strict:
            raise ConversionError(f"The JSON {shown(text_of(value))} is no value of {kind}.")

    def _of(self, values: Sequence[object], allowed: type, kind: ty.DataType) -> list[object]:
        """Return those values that are of a Python type, and None for others."""
        for value in values:
            if value is not None and not isinstance(value, allowed):
                self._wrong(value, kind)
        return [v if isinstance(v, allowed) else None for v in values]

    def _lists(self, values: Sequence[object], kind: ty.DataType) -> pa.Array:
        lists = self._of(values, list, kind)
        lengths, valid = _lengths(lists)
        inside = [e for v in lists if isinstance(v, list) for e in v]
        elements = self.column(inside, kind.children[0])
        made = list_array(lengths, elements, valid, tables.physical_type(kind))
        return of_length(made, kind, not self.strict) if kind.is_array else made

    def _structs(self, values: Sequence[object], kind: ty.DataType) -> pa.Array:
        objects = self._of(values, dict, kind)
        if self.strict:
            for each in objects:
                if isinstance(each, dict):
                    self._check_keys(each, kind)
        fields = [
            self.column([v.get(name) if isinstance(v, dict) else None for v in objects], child)
            for name, child in zip(kind.names, kind.children, strict=True)
        ]
        valid = np.array([v is not None for v in values], bool)  # what is no object has fields
        return struct_array(fields, valid, tables.physical_type(kind))

    def _tuples(self, values: Sequence[object], kind: ty.DataType) -> pa.Array:
        """Arrays by place: what is missing at the end is NULL, and what is more is left out."""
        arrays = self._of(values, list, kind)
        fields = [
            self.column(
                [v[i] if isinstance(v, list) and i < len(v) else None for v in arrays], child
            )
            for i, child in enumerate(kind.children)
        ]
        valid = np.array([v is not None for v in arrays], bool)
        return struct_array(fields, valid, tables.physical_type(kind))

    def _check_keys(self, value: dict[str, object], kind: ty.DataType) -> None:
        for name in kind.names:
            if name not in value:
                raise ConversionError(
                    f'The object {shown(text_of(value))} has no key "{name}", which {kind} has.'
                )
        if self.closed and len(value) > len(kind.names):
            unknown = next(key for key in value if key not in kind.names)
            raise ConversionError(
                f'The object {shown(text_of(value))} has a key "{unknown}", which {kind} has not.'
            )
        if isinstance(value, RepeatedKeys):
            raise ConversionError(f"The object {shown(text_of(value))} has a key twice.")

    def _maps(self, values: Sequence[object], kind: ty.DataType) -> pa.Array:
        objects = self._of(values, dict, kind)
        lengths, valid = _lengths(objects)
        pairs = [pair for v in objects if isinstance(v, dict) for pair in v.items()]
        entry = tables.physical_type(kind).value_type
        key, value = kind.children[0].children
        keys = self.column([k for k, _ in pairs], key)
        if keys.null_count or any(isinstance(v, RepeatedKeys) for v in objects):
            raise ConversionError("The keys of a map are not NULL and differ from each other.")
        parts = [keys, self.column([v for _, v in pairs], value)]
        named = [part.cast(field.type) for part, field in zip(parts, entry, strict=True)]
        entries = struct_array(named, None, entry)
        return list_array(lengths, entries, valid, tables.physical_type(kind))


def _lengths(values: Sequence[object]) -> tuple[Ints, Mask]:
    """Return how many elements or pairs each value has, and which are not NULL."""
    lengths = [len(v) if isinstance(v, list) else count_of(v) for v in values]
    return np.array(lengths, np.int64), np.array([v is not None for v in values], bool)


def _string(value: object) -> str:
    return value if isinstance(value, str) else plain_text(value)


def cast_json(vector: Vector, target: ty.DataType, safe: bool, cast: CastVector) -> Vector:
    """Cast a column from or to JSON: text is JSON where it can be read, and other values become it as `to_json` writes them."""
    source = vector.type
    if (source, target) == (ty.JSON, ty.VARCHAR):
        return Vector(ty.VARCHAR, vector.data)
    if source == ty.JSON:
        maker = ColumnMaker(cast, strict=not safe, closed=True)
        return Vector.from_arrow(maker.of_texts(vector.data, target), target)
    array = vector.to_arrow(vector.length)
    if source == ty.VARCHAR:
        texts = tables.decode(array)
        known = of_each(skeletons(texts), lambda text: _checked(text, safe))
    else:
        texts, known = json_texts(array, source, cast), array
    return Vector(ty.JSON, pc.if_else(known.is_valid(), texts, scalar_from(None, texts.type)))


def _checked(text: str, safe: bool) -> str | None:
    try:
        check(text)
    except ConversionError:
        if safe:
            return None
        raise
    return text


def transform(cast: CastVector, *, strict: bool) -> Kernel:
    """Return the kernel of json_transform, or of its strict form."""

    def kernel(call: Call, args: list[pa.Array]) -> pa.Array:
        return ColumnMaker(cast, strict).of_texts(args[0], call.type)

    return over_arrays(kernel)
