"""A Python aggregate over lists of its arguments' values: a compiled loop, and Python itself for groups of which that fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..... import stopping
from .....codegen.udf.function_text import register_kind
from .....codegen.udf.row_kernel import fold_kernel
from .....plan.udf.python_aggregate import PythonFold
from ... import table as tables
from ...handwritten_kernels import kept_in
from ..vectors import Array, Mask, Vector, both_valid, dtype_of
from .compiled_calls import RESULTS, register, typed
from .row_calls import arrow_values, raised, turn


def folded(fold: PythonFold, lists: Sequence[Vector], num_rows: int) -> Vector:
    """Return the result for each group, of which a list has the values; a NULL list has none."""
    alone = all(v.is_constant for v in lists)
    count = 1 if alone else num_rows
    arrays = [v.to_arrow(count) for v in lists]
    lengths = pc.fill_null(pc.list_value_length(arrays[0]), 0)
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
