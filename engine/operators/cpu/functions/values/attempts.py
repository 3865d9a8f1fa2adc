"""error(), which raises in a row, and TRY(), which finds the rows whose values raise by halves; and values of an ENUM as texts and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from .....errors import DataError, ExecutionError
from .....plan.arrow.arrow_arrays import array_from, from_numpy, null_as, truth_values
from .....plan.expr import Call, Expr, Try
from .....plan.types import DataType
from ... import table as tables
from ...table import Table
from ..vectors import Array, Kernel, Mask, Vector, dtype_of, null_constant
from .each_value import python_value, python_values

Evaluate = Callable[[Expr, Table], pa.Array]


def attempted(expr: Try, args: Sequence[Vector], evaluate: Evaluate) -> Vector:
    """Return the values of the body, NULL in rows in which it raises."""
    count = next((len(v.data) for v in args if not v.is_constant), 1)
    arrays = {c.id: v.to_arrow(count) for c, v in zip(expr.captured, args, strict=True)}
    arrow = tables.physical_type(expr.type)
    parts = [tables.decode(part).cast(arrow) for part in _parts(expr, arrays, 0, count, evaluate)]
    made = Vector.from_arrow(tables.concat_arrays(parts), expr.type)
    return made.first() if all(v.is_constant for v in args) else made


def _parts(
    expr: Try, arrays: dict[int, pa.Array], start: int, stop: int, evaluate: Evaluate
) -> list[pa.Array]:
    """Return the values of some rows in pieces: all at once where none raises, else those of each half."""
    rows = Table({key: a.slice(start, stop - start) for key, a in arrays.items()}, stop - start)
    try:
        return [evaluate(expr.body, rows)]
    except DataError:
        if stop - start == 1:
            return [pa.nulls(1, tables.physical_type(expr.type))]
    middle = (start + stop) // 2
    first = _parts(expr, arrays, start, middle, evaluate)
    return first + _parts(expr, arrays, middle, stop, evaluate)


def _error(call: Call, args: tuple[Vector, ...]) -> Vector:
    (text,) = args
    values = [python_value(text)] if text.is_constant else python_values(text)
    for value in values:
        if value is not None:
            raise ExecutionError(str(value))
    return null_constant(call.type)


def texts_of(vector: Vector) -> pa.Array:
    """Return the texts of a vector of one dimension."""
    labels = array_from(vector.type.names, pa.string())
    return labels.take(from_numpy(vector.data, vector.valid))


def of_texts(texts: pa.Array, target: DataType) -> tuple[Array, Mask]:
    """Return the codes of texts, and where one is no value of the type."""
    found = pc.index_in(texts, array_from(target.names, texts.type))
    wrong = truth_values(found.is_null())
    return tables.to_numpy(null_as(found, 0)).astype(dtype_of(target)), wrong


def _same(call: Call, args: tuple[Vector, ...]) -> Vector:
    """The integers that values are, and the values that integers are."""
    (value,) = args
    return Vector(call.type, value.data, value.valid)


KERNELS: dict[str, Kernel] = {
    "error": _error,
    "enum_code": _same,
    "ticks": _same,
    "time_of_ticks": _same,
}
