"""How string kernels are applied: a kernel takes one Arrow array of strings and parameters that are the same in all rows.

Parameters that differ from row to row are rare (`left(s, n)` with a column n): the rows are grouped by them and the kernel runs
once for each group, which costs 20 to 100 us.  Where groups have few rows each, Python computes the rows one by one, in 0.5 us.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .... import stopping
from ....plan.arrow.arrow_arrays import array_from, from_numpy, truth_values
from ....plan.expr import Call
from ....plan.types import VARCHAR, DataType, Kind
from .. import table as tables
from ..sort.keys import places_among
from .values.each_value import LOOKS, python_values
from .vectors import Array, Kernel, Mask, Vector, both_valid, null_constant

PIECE_BYTES = 4 << 20
ROWS_ALIKE = 32  # of a group on the average, below which rows are computed one by one
ROWS_AT_ONCE = 1 << 14  # between two looks at whether the query is to stop

# (strings, parameters...) -> an Arrow array of the result type, or numpy values for the rows that are not NULL.
Made: TypeAlias = pa.Array | Array
TextFunction: TypeAlias = Callable[..., Made]
Parameter: TypeAlias = str | bytes | bool | int | float
# The same of one row, as Python has it; None where that is left to the other function
OfRow: TypeAlias = Callable[..., str | bool | None]


def over_text(function: TextFunction, of_row: OfRow | None = None) -> Kernel:
    """Make a kernel of a function of the first argument, whose other arguments are parameters."""

    def kernel(call: Call, args: tuple[Vector, ...]) -> Vector:
        text, *parameters = args
        if all(p.is_constant for p in parameters):
            return _applied(function, call.type, text, [_value(p) for p in parameters])
        return _by_groups(function, of_row, call.type, text, parameters)

    return kernel


def _value(parameter: Vector) -> Parameter:
    return parameter.data if isinstance(parameter.data, str) else parameter.data.item()


def _applied(
    function: TextFunction, data_type: DataType, text: Vector, values: list[Parameter]
) -> Vector:
    if text.is_constant:
        return _result(function(array_from([text.data]), *values), data_type, None).first()
    return _result(_in_pieces(function, text.data, values), data_type, text.mask)


def _in_pieces(function: TextFunction, text: pa.Array, values: list[Parameter]) -> Made:
    """Apply a function to some megabytes at a time: a regular expression gets through few in a second, and is not to be stopped amid them."""
    count = len(text)
    step = max(1, count * PIECE_BYTES // max(text.nbytes, 1))
    if count <= step:
        stopping.check()
        return function(text, *values)
    texts = [text.slice(start, step) for start in range(0, count, step)]
    pieces = []
    for piece in texts:
        stopping.check()
        pieces.append(function(piece, *values))
    return _joined(pieces, texts)


def _joined(pieces: list[Made], texts: Sequence[pa.Array]) -> Made:
    """Put together what a function made of texts, one or more."""
    if all(isinstance(made, np.ndarray) for made in pieces):
        return np.concatenate(pieces)
    # LIKE leaves some to Arrow: while its kernel is compiled, and a last piece of few rows
    return tables.concat_arrays(
        [
            from_numpy(made, tables.validity(piece)) if isinstance(made, np.ndarray) else made
            for made, piece in zip(pieces, texts, strict=True)
        ]
    )


def _result(result: Made, data_type: DataType, mask: Mask | None) -> Vector:
    if isinstance(result, np.ndarray):
        return Vector(data_type, result, mask)
    if data_type.kind is not Kind.VARCHAR:
        arrow = tables.physical_type(data_type)
        result = result if result.type == arrow else result.cast(arrow)
    return Vector.from_arrow(result, data_type)


def _by_groups(
    function: TextFunction,
    of_row: OfRow | None,
    data_type: DataType,
    text: Vector,
    parameters: list[Vector],
) -> Vector:
    count = max(len(v.data) for v in (text, *parameters) if not v.is_constant)
    valid = both_valid(text, *parameters)
    rows = np.arange(count) if valid is None else np.flatnonzero(valid)
    texts = pa.repeat(text.text, len(rows)) if text.is_constant else text.take(rows).data
    values = [p if p.is_constant else p.take(rows) for p in parameters]
    codes = np.zeros(len(rows), np.int64)
    for parameter in values:
        if not parameter.is_constant:
            found = _codes(parameter)
            codes = places_among(codes * (int(found.max(initial=0)) + 1) + found)
    if not len(rows):
        return null_constant(data_type)
    if of_row is not None and int(codes.max()) * ROWS_ALIKE > len(rows):
        return _at(rows, count, _row_by_row(function, of_row, data_type, Vector(VARCHAR, texts), values))  # fmt: skip
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    columns = [
        [_value(p)] * len(starts) if p.is_constant else python_values(p.take(order[starts]))
        for p in values
    ]
    texts = texts.take(from_numpy(order))
    ends = np.append(starts[1:], len(order))
    groups = [texts.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]
    pieces = []
    for place, (group, *here) in enumerate(zip(groups, *columns, strict=True)):
        if place % LOOKS == 0:
            stopping.check()
        pieces.append(function(group, *here))
    return _at(rows[order], count, _result(_joined(pieces, groups), data_type, None))


def _at(rows: Array, count: int, found: Vector) -> Vector:
    """Return values at some of the rows, NULL at others."""
    places = np.full(count, -1)
    places[rows] = np.arange(len(rows))
    return Vector.from_arrow(tables.take_array(found.to_arrow(len(rows)), places), found.type)


def _row_by_row(
    function: TextFunction,
    of_row: OfRow,
    data_type: DataType,
    text: Vector,
    parameters: list[Vector],
) -> Vector:
    """Compute rows without a NULL one by one, and those that this leaves to others by groups."""
    arrow, pieces = tables.physical_type(data_type), []
    for start in range(0, text.length, ROWS_AT_ONCE):
        stopping.check()
        span = np.arange(start, min(start + ROWS_AT_ONCE, text.length))
        columns = [
            [_value(v)] * len(span) if v.is_constant else python_values(v.take(span))
            for v in (text, *parameters)
        ]
        pieces.append(array_from(list(map(of_row, *columns)), arrow))
    made = tables.concat_arrays(pieces)
    rest = np.flatnonzero(truth_values(made.is_null()))
    if len(rest):
        given = [v.take(rest) for v in (text, *parameters)]
        others = _by_groups(function, None, data_type, given[0], given[1:]).to_arrow(len(rest))
        made = pc.replace_with_mask(made, made.is_null(), others.cast(arrow))
    return Vector.from_arrow(made, data_type)


def _codes(parameter: Vector) -> Array:
    if isinstance(parameter.data, pa.Array):
        return tables.to_numpy(pc.dictionary_encode(parameter.data).indices).astype(np.int64)
    return places_among(parameter.data)
