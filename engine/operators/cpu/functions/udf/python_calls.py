"""The values of a Python function for rows of arguments, by whichever way it is called.

A Python function called with Arrow arrays, a batch of rows at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ..... import stopping
from .....errors import ExecutionError, SequenceError, TypeMismatch
from .....plan.arrow.arrow_types import from_arrow
from .....plan.types import DataType, to_arrow
from .....plan.udf.python_function import PythonCall, PythonFunction
from ... import table as tables
from ..vectors import Vector, both_valid, null_constant
from .compiled_calls import of_kernel, typed
from .row_calls import of_rows, raised


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


NONE_OF = "What it returns is an Arrow array, or what pyarrow.array() takes: a NumPy array, a pandas Series, a list."


def of_arrays(function: PythonFunction, args: Sequence[pa.Array], count: int) -> pa.Array:
    """Return the values for a batch of rows; a query that is stopped amid the call leaves it to itself."""
    stopping.check()
    given = [pa.nulls(count)] if not args else list(args)
    try:
        answer = stopping.apart(lambda: function.python(*(args or ())))
    except SequenceError:
        raise
    except Exception as error:  # whatever a function may raise
        stopping.check()
        if function.null_on_error:
            return pa.nulls(count, to_arrow(function.result))
        raise raised(function, error) from error
    stopping.check()
    found = _array(answer, function)
    if len(found) != len(given[0]):
        raise ExecutionError(
            f'The Python function "{function.name}" gave {len(found):,} values for {count:,} rows: '
            "a vectorized function gives one value for each row of its batch."
        )
    return found


def _array(answer: object, function: PythonFunction) -> pa.Array:
    if isinstance(answer, pa.ChunkedArray):
        answer = answer.combine_chunks()
    try:
        found = answer if isinstance(answer, pa.Array) else pa.array(answer)
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        if pa.types.is_dictionary(found.type):
            found = found.dictionary_decode()
        from_arrow(found.type)
    except (pa.ArrowException, TypeError, ValueError, TypeMismatch) as error:
        raise ExecutionError(
            f'The Python function "{function.name}" gave a {type(answer).__name__} of which there is no column: {NONE_OF}'
        ) from error
    return found
