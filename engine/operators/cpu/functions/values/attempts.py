"""error(), which raises in a row, and TRY(), which finds the rows whose values raise by halves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from .....errors import DataError, ExecutionError
from .....plan.expr import Call, Expr, Try
from ... import table as tables
from ...table import Table
from ..vectors import Kernel, Vector, null_constant
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


KERNELS: dict[str, Kernel] = {"error": _error}
