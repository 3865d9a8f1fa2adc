"""A compiled Python function over the rows of a chunk, or over lists of the values of groups; Python itself computes those for which the compiled one fails.

What a Python function gave, in the type that it is declared to give.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..... import stopping
from .....codegen.udf.function_text import bounds, register_kind
from .....codegen.udf.row_kernel import fold_kernel, row_kernel
from .....errors import ExecutionError, FuselineError, OutOfRange, SequenceError, TypeMismatch
from .....plan.arrow.arrow_arrays import array_from, null_as
from .....plan.arrow.arrow_types import from_arrow
from .....plan.types import DataType, to_arrow
from .....plan.udf.python_function import PythonCall, PythonFold, PythonFunction
from .....records import dataclass
from ... import table as tables
from ...handwritten_kernels import kept_in
from ..kernels_casts import cast
from ..vectors import Array, Mask, Vector, both_valid, dtype_of, null_constant
from .row_calls import arrow_values, beyond, each, of_rows, raised, turn

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


def folded(fold: PythonFold, lists: Sequence[Vector], num_rows: int) -> Vector:
    """Return the result for each group, of which a list has the values; a NULL list has none."""
    alone = all(v.is_constant for v in lists)
    count = 1 if alone else num_rows
    arrays = [v.to_arrow(count) for v in lists]
    lengths = null_as(pc.list_value_length(arrays[0]), 0)
    offsets = np.concatenate([[0], np.cumsum(tables.to_numpy(lengths), dtype=np.int64)])
    values = [
        Vector.from_arrow(_flat(a), t)
        for a, t in zip(arrays, fold.function.parameters, strict=True)
    ]
    total = int(offsets[-1])
    valid = both_valid(*values)
    counts: Mask = np.ones(total, bool) if valid is None else np.ascontiguousarray(valid)
    given = [register(v, register_kind(v.type), total) for v in values]
    stopping.check()
    found = _run(fold, offsets, counts, given)
    return found.first() if alone else found


def _flat(array: pa.Array) -> pa.Array:
    return tables.decode(tables.combine(array.flatten()))


def _run(fold: PythonFold, offsets: Array, counts: Mask, given: list[Array]) -> Vector:
    groups = len(offsets) - 1
    results: Array = np.zeros(groups, RESULTS[register_kind(fold.type)])
    failures = np.zeros(groups, np.bool_)
    kernel = fold_kernel(fold, kept_in() or Path())
    failed = kernel.over([offsets, counts, *given])(0, groups, results, failures)
    made = Vector(fold.type, results.astype(dtype_of(fold.type), copy=False))
    if not failed:
        return made
    rows = np.flatnonzero(failures)

    def call() -> list[object]:
        return [_by_python(fold, offsets[g], offsets[g + 1], counts, given) for g in rows]

    with turn():
        again = stopping.apart(call)
    answer = typed(arrow_values(again, fold.function.finish), fold.function.finish)
    joined = pa.concat_arrays([made.to_arrow(groups), answer.to_arrow(len(rows))])
    places = np.arange(groups)
    places[rows] = groups + np.arange(len(rows))
    return Vector.from_arrow(tables.take_array(joined, places), fold.type)


def _by_python(fold: PythonFold, first: int, last: int, counts: Mask, given: list[Array]) -> object:
    """Return the result for a group, with integers of any size, or raise what its functions do."""
    aggregate = fold.function
    try:
        state: object = aggregate.start
        for row in range(first, last):
            if counts[row]:
                state = aggregate.step.python(state, *(a[row].item() for a in given))
        return aggregate.finish.python(state)
    except Exception as error:  # whatever a function may raise
        stopping.check()
        raise raised(aggregate.finish, error) from error


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
        found = answer if isinstance(answer, pa.Array) else array_from(answer)
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
