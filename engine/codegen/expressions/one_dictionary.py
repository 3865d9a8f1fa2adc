"""Text of several sources in kernels, by its numbers in one sorted dictionary: comparisons, and CASE with constants and columns as results.

A CASE of 150,000 rows takes 1.4 ms in a kernel, and 6.9 where its strings are made beforehand, which it could be of one column alone.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from ...plan.arrow.arrow_arrays import array_from, scalar_from
from ...plan.expr import Case, Expr, Literal
from ...plan.types import Kind
from ..loop import Lookup, Machine, Number, Select
from ..program_builder import ProgramBuilder
from ..ranges import IntegerRange
from ..row_sources import MOST_STRINGS
from ..typed_values import NotFusable, Value

Translate = Callable[[Expr, ProgramBuilder], Value]


def in_one_dictionary(left: Value, right: Value, kernel: ProgramBuilder) -> tuple[Value, Value]:
    """Return strings of two dictionaries by their codes in one that has the values of both."""
    import pyarrow.compute as pc

    if left.values is right.values:
        return left, right
    if left.values is None or right.values is None:
        raise NotFusable("a comparison of strings without a dictionary")
    both = pa.concat_arrays([left.values, right.values.cast(left.values.type)])
    merged = pc.unique(both).sort()
    return _recoded(left, merged, kernel), _recoded(right, merged, kernel)


def results_in_one_dictionary(
    expr: Case, kernel: ProgramBuilder, translate: Translate
) -> list[Value]:
    """Return the results of a CASE and then what it gives else, as numbers in one dictionary; none where that is no text.

    Raises `NotFusable` for text of many values.
    """
    import pyarrow.compute as pc

    if expr.type.kind is not Kind.VARCHAR:
        return []
    branches = [*expr.results, expr.default]
    others = {e: translate(e, kernel) for e in branches if not isinstance(e, Literal)}
    known = [e.value for e in branches if isinstance(e, Literal) and not e.is_null]
    texts = [array_from(known, pa.string())]
    for value in others.values():
        if value.values is None or len(value.values) > MOST_STRINGS:
            raise NotFusable("a CASE has text of many values among its results")
        texts.append(value.values.cast(pa.string()))
    merged = pc.unique(pa.concat_arrays(texts)).sort()
    if len(merged) > MOST_STRINGS:
        raise NotFusable(f"a CASE gives more than {MOST_STRINGS} different texts")
    return [
        _constant(e, merged) if isinstance(e, Literal) else _recoded(others[e], merged, kernel)
        for e in branches
    ]


def _constant(given: Literal, merged: pa.Array) -> Value:
    import pyarrow.compute as pc

    if given.is_null:
        never = Number(False, Machine.BOOL)
        return Value(Number(0, Machine.I32), never, IntegerRange(0, 0), merged)
    place: int = pc.index(merged, scalar_from(given.value)).as_py()
    return Value(Number(place, Machine.I32), None, IntegerRange(place, place), merged)


def _recoded(value: Value, merged: pa.Array, kernel: ProgramBuilder) -> Value:
    """Return a string by its code in a dictionary that has all values of its own."""
    import numpy as np
    import pyarrow.compute as pc

    codes = np.append(pc.index_in(value.values, value_set=merged), 0).astype(np.int32)
    index = value.term
    if value.valid is not None:
        index = Select(value.valid, index, Number(len(codes) - 1, index.type), index.type)
    term = Lookup(kernel.table(codes, Machine.I32), index, Machine.I32)
    return Value(term, value.valid, IntegerRange(0, max(len(merged) - 1, 0)), merged)
