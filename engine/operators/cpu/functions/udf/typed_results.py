"""What a Python function gave, in the type that it is declared to give."""

from __future__ import annotations

import pyarrow as pa

from .....errors import ExecutionError, FuselineError, OutOfRange
from .....plan.arrow.arrow_types import from_arrow
from .....plan.types import DataType, to_arrow
from .....plan.udf.python_function import PythonFunction
from ... import table as tables
from ..kernels_casts import cast
from ..vectors import Vector, null_constant

NULLS = (
    'The Python function "{}" gave a NULL for arguments of which none is NULL: '
    'give null_handling="special", with which it gets the rows of NULL arguments too.'
)


def typed(answer: pa.Array, function: PythonFunction) -> Vector:
    """Return what a function gave in the type that it is declared to give, cast as SQL casts."""
    if answer.null_count and not (function.takes_nulls or function.null_on_error):
        raise ExecutionError(NULLS.format(function.name))
    try:
        return _cast(answer, function.result)
    except (FuselineError, pa.ArrowException) as error:
        what = error.message if isinstance(error, FuselineError) else str(error)
        kind = OutOfRange if isinstance(error, OutOfRange) else ExecutionError
        raise kind(
            f'The Python function "{function.name}" gave what {function.result} does not hold: {what}'
        ) from error


def _cast(answer: pa.Array, target: DataType) -> Vector:
    if answer.type == to_arrow(target):
        return Vector.from_arrow(tables.to_physical(answer, target), target)
    if pa.types.is_null(answer.type):
        return null_constant(target)
    source = from_arrow(answer.type)
    return cast(Vector.from_arrow(tables.to_physical(answer, source), source), target, False)
