"""How a function of Python values becomes a kernel: it is called once for each distinct row of arguments without a NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..... import stopping
from .....plan.arrow.arrow_arrays import array_from, null_as
from .....plan.expr import Call
from .....plan.types import DataType, Kind
from ... import table as tables
from ...sort.keys import group_codes, places_among
from .. import kernels_wide as wide, vectors as vec

PythonValue: TypeAlias = str | bytes | int | float | bool | Sequence[object] | None
ValueFunction: TypeAlias = Callable[..., PythonValue]
LOOKS = 1000  # values between two looks at whether the query is to stop


def of_values(function: ValueFunction, required: int | None = None) -> vec.Kernel:
    """Make a kernel of a function that takes text, numbers and truth values as Python has them; it may return None.

    Of the first `required` arguments, by default of all, a NULL makes NULL; others are None then.
    """

    def kernel(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
        varying = [v for v in args if not v.is_constant]
        if any(v.is_null for v in args[:required]):
            return vec.null_constant(call.type)
        if not varying:
            return _column([function(*map(python_value, args))], call.type).first()
        valid = vec.both_valid(*args[:required])
        count = len(varying[0].data)
        rows = np.arange(count) if valid is None else np.flatnonzero(valid)
        if not len(rows):
            return vec.null_constant(call.type)
        taken = [v if v.is_constant else v.take(rows) for v in args]
        first, codes = _distinct([v for v in taken if not v.is_constant])
        columns = [
            [python_value(v)] * len(first) if v.is_constant else python_values(v.take(first))
            for v in taken
        ]
        found: list[PythonValue] = []
        for start in range(0, len(first), LOOKS):
            stopping.check()
            found += map(function, *(column[start : start + LOOKS] for column in columns))
        places = np.full(count, -1)
        places[rows] = codes
        made = _column(found, call.type).to_arrow(len(found))
        return vec.Vector.from_arrow(tables.take_array(made, places), call.type)

    return kernel


def _distinct(vectors: Sequence[vec.Vector]) -> tuple[vec.Array, vec.Array]:
    """Return a row of each distinct value of all columns together, and which of them each row has."""
    codes = np.zeros(vectors[0].length, np.int64)
    for vector in vectors:
        found = _codes(vector)
        codes = places_among(codes * (int(found.max(initial=0)) + 1) + found)
    first = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first, codes


def _codes(vector: vec.Vector) -> vec.Array:
    if vector.type.is_nested:
        return group_codes([vector.data])[0].astype(np.int64)
    if isinstance(vector.data, pa.Array):
        codes = pc.dictionary_encode(vector.data)
        known = null_as(codes.indices, len(codes.dictionary))
        return tables.to_numpy(known).astype(np.int64)
    data = vector.data
    if data.dtype.kind == "f":  # whose -0.0 is another value for some
        data = data.view(np.int32 if data.itemsize == 4 else np.int64)
    found = places_among(data)
    return found if vector.valid is None else np.where(vector.valid, found + 1, 0)


def python_value(vector: vec.Vector) -> PythonValue:
    """Return a constant as Python has it."""
    if vector.is_null:
        return None
    if isinstance(vector.data, str):
        return vector.data
    if isinstance(vector.data, pa.Scalar):
        return vector.data.as_py()
    return wide.to_int(vector.data) if vector.data.dtype == vec.WIDE else vector.data.item()


def python_values(vector: vec.Vector) -> list[PythonValue]:
    if isinstance(vector.data, pa.Array):
        return list(vector.data.to_pylist())
    if vector.data.dtype == vec.WIDE:
        return [wide.to_int(value) for value in vector.data]
    values = list(vector.data.tolist())
    if vector.valid is None:
        return values
    return [v if known else None for v, known in zip(values, vector.valid.tolist(), strict=True)]


def _column(values: list[PythonValue], data_type: DataType) -> vec.Vector:
    if data_type.kind is Kind.VARCHAR:
        return vec.Vector(data_type, array_from(values, pa.string()))
    if data_type.is_ranked:
        return vec.Vector(data_type, array_from(values, tables.physical_type(data_type)))
    known = np.array([v is not None for v in values])
    filled = [0 if v is None else v for v in values]
    if data_type.is_wide_decimal:
        data = np.array([vec.wide_limbs(int(v)) for v in filled], vec.WIDE)  # type: ignore[arg-type]
    else:
        data = np.array(filled, vec.dtype_of(data_type))
    return vec.Vector(data_type, data, None if known.all() else known)
