"""A Python function called with Arrow arrays, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..... import stopping
from .....errors import ExecutionError, SequenceError, TypeMismatch
from .....plan.arrow.arrow_types import from_arrow
from .....plan.types import to_arrow
from .....plan.udf.python_function import PythonFunction
from .row_calls import raised

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
