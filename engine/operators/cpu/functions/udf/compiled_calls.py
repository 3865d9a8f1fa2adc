"""A compiled Python function over the rows of a chunk; Python itself computes those for which the compiled one fails.

What a Python function gave, in the type that it is declared to give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from .....codegen.udf.function_text import bounds, register_kind
from .....codegen.udf.row_kernel import row_kernel
from .....errors import ExecutionError, FuselineError, OutOfRange
from .....plan.arrow.arrow_types import from_arrow
from .....plan.types import DataType, to_arrow
from .....plan.udf.python_function import PythonCall, PythonFunction
from ... import table as tables
from ...handwritten_kernels import kept_in
from ..kernels_casts import cast
from ..vectors import Array, Mask, Vector, dtype_of, null_constant
from .row_calls import arrow_values, beyond, each

RESULTS = {"whole": np.int64, "real": np.float64, "single": np.float32, "truth": np.bool_}
_TAKEN = {**RESULTS, "single": np.float64}


def of_kernel(call: PythonCall, args: Sequence[Vector], count: int) -> Vector:
    """Return the values of a function in rows without a NULL."""
    kernel = row_kernel(call, kept_in() or Path())
    given = [register(v, register_kind(v.type), count) for v in args]
    kind = register_kind(call.type)
    values: Array = np.zeros(count, RESULTS[kind])
    failures = np.zeros(count, np.bool_)
    some = kernel.over(given)(0, count, values, failures)
    for vector in filter(_is_wide, args):
        beyond_64 = np.broadcast_to(~_fits(vector), count)
        failures |= beyond_64
        some = some or bool(beyond_64.any())
    if some:
        failed = np.flatnonzero(failures)
        exact = [_WideNumbers(v) if _is_wide(v) else a for v, a in zip(args, given, strict=True)]
        return _with_python(call, exact, values, failed)
    return Vector(call.type, values.astype(dtype_of(call.type), copy=False))


def _is_wide(vector: Vector) -> bool:
    """Whether whole numbers have 128 bits, as sums of them do."""
    return vector.type.is_wide_decimal


def _fits(vector: Vector) -> Mask:
    """Return which numbers of 128 bits fit into 64."""
    low, high = vector.data["low"].view(np.int64), vector.data["high"]
    fits: Mask = high == low >> 63
    return fits


@dataclass(frozen=True, slots=True)
class _WideNumbers:
    """Numbers of 128 bits as Python's, one at a time."""

    vector: Vector

    def __getitem__(self, row: int) -> np.ndarray:
        data = self.vector.data
        held = data[row] if data.ndim else data
        return np.array((int(held["high"]) << 64) + int(held["low"]), object)


def register(vector: Vector, kind: str, count: int) -> Array:
    data = np.asarray(vector.data)
    if _is_wide(vector):
        data = np.where(_fits(vector), data["low"].view(np.int64), 0)
    if data.dtype == np.uint64 and data.max(initial=0) > np.iinfo(np.int64).max:
        raise OutOfRange(
            "A compiled Python function takes whole numbers of 64 bits with a sign, and an argument is larger."
        )
    wide: Array = data.astype(_TAKEN[kind], copy=False)
    return np.ascontiguousarray(np.broadcast_to(wide, count))


def _with_python(
    call: PythonCall, given: Sequence[Array | _WideNumbers], values: Array, failed: Array
) -> Vector:
    """Have Python compute some rows: it says what is wrong with them, or has numbers of any size."""
    made = each(call.function, ([a[row].item() for a in given] for row in failed))
    if call.type.is_temporal:  # a whole number, as the arguments are
        values[failed] = [_within(v, call) for v in made]
        return Vector(call.type, values.astype(dtype_of(call.type)))
    found = typed(arrow_values(made, call.function), call.function)
    count = len(values)
    joined = pa.concat_arrays(
        [
            Vector(call.type, values.astype(dtype_of(call.type))).to_arrow(count),
            found.to_arrow(len(failed)),
        ]
    )
    places = np.arange(count)
    places[failed] = count + np.arange(len(failed))
    return Vector.from_arrow(tables.take_array(joined, places), call.type)


def _within(value: object, call: PythonCall) -> int:
    low, high = bounds(call.type)
    if not isinstance(value, int) or not low <= value <= high:
        raise beyond(call.function, value)
    return value


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
