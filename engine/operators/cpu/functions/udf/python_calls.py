"""The values of a Python function for rows of arguments, by whichever way it is called."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from .....plan.types import DataType
from .....plan.udf.python_function import PythonCall
from ... import table as tables
from ..vectors import Vector, both_valid, null_constant
from .array_calls import of_arrays
from .compiled_calls import of_kernel
from .row_calls import of_rows
from .typed_results import typed


def called(call: PythonCall, args: Sequence[Vector], num_rows: int) -> Vector:
    """Return the values of a function in `num_rows` rows; raises `ExecutionError` with what it raised as the cause."""
    function = call.function
    own = args[: len(call.args)]
    if not function.takes_nulls and any(v.is_null for v in own):
        return null_constant(call.type)
    alone = all(v.is_constant for v in args) and not call.drawn
    count = 1 if alone else num_rows
    valid = None if function.takes_nulls else both_valid(*own)
    rows = None if valid is None or not valid.ndim else np.flatnonzero(valid)
    taken = own if rows is None else [v if v.is_constant else v.take(rows) for v in own]
    many = count if rows is None else len(rows)
    if not many:
        return null_constant(call.type)
    if call.image is not None:
        made = of_kernel(call, taken, many)
    else:
        given = [_logical(v, a.type, many) for v, a in zip(taken, call.args, strict=True)]
        if function.way == "vectorized":
            answer = of_arrays(function, given, many)
        else:
            answer = of_rows(function, given, [a.type for a in call.args], many)
        made = typed(answer, function)
    found = made if rows is None else _placed(made, rows, count)
    return found.first() if alone else found


def _logical(vector: Vector, data_type: DataType, count: int) -> pa.Array:
    return tables.to_logical(tables.decode(vector.to_arrow(count)), data_type)


def _placed(made: Vector, rows: np.ndarray, count: int) -> Vector:
    """Put values to the rows that they are of; the others are NULL."""
    places = np.full(count, -1)
    places[rows] = np.arange(len(rows))
    return Vector.from_arrow(tables.take_array(made.to_arrow(len(rows)), places), made.type)
