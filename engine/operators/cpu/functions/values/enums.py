"""Values of an ENUM as texts, as the integers that they are, and of texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .....plan.expr import Call
from .....plan.types import DataType
from ... import table as tables
from ..vectors import Array, Kernel, Mask, Vector, dtype_of


def texts_of(vector: Vector) -> pa.Array:
    """Return the texts of a vector of one dimension."""
    labels = pa.array(vector.type.names, pa.string())
    return labels.take(tables.from_numpy(vector.data, vector.valid))


def of_texts(texts: pa.Array, target: DataType) -> tuple[Array, Mask]:
    """Return the codes of texts, and where one is no value of the type."""
    found = pc.index_in(texts, pa.array(target.names, texts.type))
    wrong = np.asarray(found.is_null())
    return np.asarray(pc.fill_null(found, 0)).astype(dtype_of(target)), wrong


def _same(call: Call, args: tuple[Vector, ...]) -> Vector:
    """The integers that values are, and the values that integers are."""
    (value,) = args
    return Vector(call.type, value.data, value.valid)


KERNELS: dict[str, Kernel] = {
    "enum_code": _same,
    "ticks": _same,
    "time_of_ticks": _same,
}
